"""barnabas.cli.deserializers."""

import struct
import uuid

import click
import pytest

from barnabas.cli.deserializers import NotDeserialized, deserializer


def read(name: str, data: bytes) -> str:
    reader = deserializer(name, "--value-deserializer")
    assert reader is not None
    return reader(data).decode()


class TestNames:
    @pytest.mark.parametrize(
        "name", ["long", "LongDeserializer", "org.apache.kafka.common.serialization.LongDeserializer"]
    )
    def test_the_class_and_its_short_form_mean_the_same(self, name: str) -> None:
        assert read(name, struct.pack(">q", -5)) == "-5"

    @pytest.mark.parametrize("name", ["string", "StringDeserializer", "ByteArrayDeserializer", "bytes"])
    def test_text_and_bytes_stay_as_they_are(self, name: str) -> None:
        assert deserializer(name, "--key-deserializer") is None

    def test_another_name_is_wrong_usage(self) -> None:
        with pytest.raises(
            click.UsageError, match="--key-deserializer: there is no 'avro'; there are boolean"
        ):
            deserializer("avro", "--key-deserializer")


@pytest.mark.parametrize(
    ("name", "layout", "value", "text"),
    [
        ("int", ">i", 2**31 - 1, "2147483647"),
        ("short", ">h", -2, "-2"),
        ("double", ">d", 1.5, "1.5"),
        ("double", ">d", 0.0, "0.0"),
        ("double", ">d", -0.0, "-0.0"),
        ("double", ">d", 100.0, "100.0"),
        ("double", ">d", 1234567.0, "1234567.0"),
        ("double", ">d", 9999999.5, "9999999.5"),
        ("double", ">d", 1e7, "1.0E7"),
        ("double", ">d", 1.25e-5, "1.25E-5"),
        ("double", ">d", 0.001, "0.001"),
        ("double", ">d", 0.1 + 0.2, "0.30000000000000004"),
        ("double", ">d", 1.7976931348623157e308, "1.7976931348623157E308"),
        ("double", ">d", float("nan"), "NaN"),
        ("double", ">d", float("-inf"), "-Infinity"),
        ("float", ">f", 0.1, "0.1"),
        ("float", ">f", 3.4028235e38, "3.4028235E38"),
        ("float", ">f", 16777216.0, "1.6777216E7"),
    ],
)
def test_numbers_are_printed_as_java_prints_them(name: str, layout: str, value: float, text: str) -> None:
    assert read(name, struct.pack(layout, value)) == text


def test_booleans_and_uuids() -> None:
    assert (read("boolean", b"\1"), read("boolean", b"\0")) == ("true", "false")
    name = str(uuid.uuid4())
    assert read("uuid", name.upper().encode()) == name


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("long", b"123", "3 bytes are no long, which has 8"),
        ("boolean", b"\2", "is no boolean"),
        ("uuid", b"no", "b'no' is no UUID"),
        ("uuid", b"\xff", "is no UUID"),
        ("void", b"x", "1 bytes are there, where there should be none"),
    ],
)
def test_bytes_that_are_something_else(name: str, data: bytes, why: str) -> None:
    with pytest.raises(NotDeserialized, match=why):
        read(name, data)
