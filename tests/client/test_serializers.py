"""Tests of serializers: what they take, what they give, what their errors name."""

import json

import pytest

from barnabas.base.errors import ConfigFault
from barnabas.client.config import PRODUCER, parse
from barnabas.client.errors import Serialization
from barnabas.client.serializers import Serialize, as_bytes, serializer_of


def made(given: object, part: str = "value") -> Serialize:
    serialize = serializer_of(
        parse(PRODUCER, {"bootstrap.servers": "a:1", f"{part}.serializer": given}), part
    )
    assert serialize is not None
    return serialize


class TestWithoutASerializer:
    def test_nothing_given_is_none(self) -> None:
        assert serializer_of(parse(PRODUCER, bootstrap_servers="a:1"), "key") is None

    @pytest.mark.parametrize(
        ("data", "expected"),
        [
            (None, None),
            (b"x", b"x"),
            ("é", b"\xc3\xa9"),
            (bytearray(b"y"), b"y"),
            (memoryview(b"z"), b"z"),
        ],
    )
    def test_bytes_and_text_are_taken(self, data: object, expected: bytes | None) -> None:
        assert as_bytes("t", data) == expected

    def test_other_types_are_not(self) -> None:
        with pytest.raises(TypeError, match="bytes, bytearray, memoryview, str or None is needed"):
            as_bytes("t", 5)


class TestByName:
    @pytest.mark.parametrize(
        "name", ["str", "string", "org.apache.kafka.common.serialization.StringSerializer"]
    )
    def test_text(self, name: str) -> None:
        assert made(name)("t", "é") == b"\xc3\xa9"

    def test_bytes(self) -> None:
        assert made("bytes")("t", bytearray(b"x")) == b"x"
        with pytest.raises(Serialization, match="bytes, bytearray, memoryview or None is needed"):
            made("bytes")("t", "text")

    def test_json(self) -> None:
        assert json.loads(made("json")("t", {"a": [1, "é"]}) or b"") == {"a": [1, "é"]}

    def test_none_stays_none(self) -> None:
        assert [made(name)("t", None) for name in ("str", "bytes", "json")] == [None, None, None]

    def test_an_unknown_name_is_refused(self) -> None:
        with pytest.raises(ConfigFault, match=r"value\.serializer: 'avro' is not one of bytes, str, json"):
            made("avro")


class TestCallables:
    def test_one_that_takes_the_object(self) -> None:
        assert made(lambda data: b"<" + data + b">")("t", b"x") == b"<x>"

    def test_one_that_takes_topic_and_object(self) -> None:
        assert made(lambda topic, data: f"{topic}:{data}".encode())("t", 5) == b"t:5"

    def test_one_with_defaults_takes_the_object(self) -> None:
        def serialize(data: str, encoding: str = "utf-16-le") -> bytes:
            return data.encode(encoding)

        assert made(serialize)("t", "a") == b"a\0"

    def test_a_builtin(self) -> None:
        assert made(str.encode)("t", "x") == b"x"

    def test_an_object_with_a_serialize_method_or_its_class(self) -> None:
        class Upper:
            def serialize(self, topic: str, data: str) -> bytes:
                return data.upper().encode()

        assert made(Upper())("t", "a") == b"A"
        assert made(Upper)("t", "a") == b"A"

    def test_what_cannot_be_called_is_refused(self) -> None:
        with pytest.raises(ConfigFault, match=r"key\.serializer: int cannot be called"):
            made(5, "key")


class TestErrors:
    def test_they_name_topic_part_and_type_and_have_the_cause(self) -> None:
        with pytest.raises(
            Serialization, match="orders: the key of type dict cannot be serialized: str or None is needed"
        ) as caught:
            made("str", "key")("orders", {})
        assert isinstance(caught.value.__cause__, TypeError)
        assert not caught.value.retriable

    def test_a_serializer_must_give_bytes(self) -> None:
        with pytest.raises(Serialization, match="the serializer gave int, not bytes"):
            made(lambda data: 5)("t", b"x")

    def test_other_buffers_become_bytes(self) -> None:
        assert made(lambda data: bytearray(data))("t", b"x") == b"x"

    def test_none_is_a_tombstone(self) -> None:
        assert made(lambda data: None)("t", b"x") is None
