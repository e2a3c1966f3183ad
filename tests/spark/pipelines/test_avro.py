"""Avro values are decoded by a declared schema; whatever does not fit is a fault, never another error."""

import contextlib
import json
import pickle
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.spark.pipelines.avro import AvroFault, AvroSchema


def zigzag(number: int) -> bytes:
    value = (number << 1) ^ (number >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def text(value: str) -> bytes:
    return zigzag(len(value.encode())) + value.encode()


def schema(*types: Any) -> AvroSchema:
    fields = [{"name": f"f{number}", "type": each} for number, each in enumerate(types)]
    return AvroSchema(json.dumps({"type": "record", "name": "r", "fields": fields}))


NULLABLE = ["null", "string"]
POINT = {"type": "record", "name": "point", "fields": [{"name": "x", "type": "int"}]}


@pytest.mark.parametrize(
    ("declared", "ddl", "data", "value"),
    [
        ("boolean", "BOOLEAN", b"\x01", True),
        ("int", "INT", zigzag(-3), -3),
        ("long", "BIGINT", zigzag(2**62), 2**62),
        ("float", "FLOAT", struct.pack("<f", 1.5), 1.5),
        ("double", "DOUBLE", struct.pack("<d", 2.5), 2.5),
        ("bytes", "BINARY", zigzag(2) + b"ab", b"ab"),
        ("string", "STRING", text("héllo"), "héllo"),
        (NULLABLE, "STRING", zigzag(0), None),
        (NULLABLE, "STRING", zigzag(1) + text("x"), "x"),
        (POINT, "STRUCT<`x`: INT>", zigzag(4), (4,)),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "STRING", zigzag(1), "B"),
        ({"type": "fixed", "name": "f", "size": 2}, "BINARY", b"xy", b"xy"),
        (
            {"type": "array", "items": "int"},
            "ARRAY<INT>",
            zigzag(2) + zigzag(1) + zigzag(2) + zigzag(0),
            [1, 2],
        ),
        ({"type": "array", "items": "int"}, "ARRAY<INT>", zigzag(-1) + zigzag(1) + zigzag(7) + b"\0", [7]),
        (
            {"type": "map", "values": "int"},
            "MAP<STRING, INT>",
            zigzag(1) + text("k") + zigzag(5) + b"\0",
            {"k": 5},
        ),
        ({"type": "int", "logicalType": "date"}, "DATE", zigzag(1), date(1970, 1, 2)),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            "TIMESTAMP",
            zigzag(1500),
            datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC),
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
            "DECIMAL(5, 2)",
            zigzag(2) + (-12345 % 2**16).to_bytes(2, "big"),
            Decimal(-12345 + 0).scaleb(-2),
        ),
        ({"type": "string", "logicalType": "uuid"}, "STRING", text("u"), "u"),
    ],
)
def test_every_type_is_decoded(declared: Any, ddl: str, data: bytes, value: Any) -> None:
    found = schema(declared)
    assert found.ddl == f"STRUCT<`f0`: {ddl}>"
    assert found.decode(data) == (value,)


def test_a_name_stands_for_what_it_was_given_to() -> None:
    assert schema(POINT, "point").decode(zigzag(1) + zigzag(2)) == ((1,), (2,))


def test_the_prefix_of_a_schema_registry_is_passed_over() -> None:
    assert schema("int").decode(b"\0\0\0\0\x07" + zigzag(3), 5) == (3,)
    with pytest.raises(AvroFault, match="it ends too early"):
        schema("int").decode(b"\0\0", 5)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "it ends too early"),
        (zigzag(100) + b"x", "it ends too early"),
        (zigzag(-5), "a length is -5"),
        (text("x") + b"more", "4 bytes are left over"),
        (zigzag(1) + b"\xff", "a string is not UTF-8"),
        (b"\xff" * 12, "a number is too long"),
    ],
)
def test_a_value_that_does_not_fit_is_a_fault(data: bytes, fault: str) -> None:
    with pytest.raises(AvroFault, match=f"^{fault}$"):
        schema("string").decode(data)


@pytest.mark.parametrize(
    ("declared", "fault"),
    [
        ("nothing", "the type 'nothing' is not known"),
        (["int", "string"], "of unions, only one of null and one other type is known"),
        (7, "7 is no type"),
        ({"type": "fixed", "size": -1}, "size must be a whole number, not -1"),
        ({"type": "record", "fields": []}, "a record wants fields"),
        ({"type": "record", "fields": [{}]}, "a field wants a name"),
        ({"type": "enum"}, "an enum wants symbols"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 50}, "a decimal has 50 digits"),
    ],
)
def test_a_schema_that_is_not_known_is_refused(declared: Any, fault: str) -> None:
    with pytest.raises(AvroFault, match=fault):
        schema(declared)


@pytest.mark.parametrize("words", ["{", "[]", '"int"', '{"type": "enum"}'])
def test_a_schema_must_be_a_record(words: str) -> None:
    with pytest.raises(AvroFault, match=r"it is not JSON|it must be a record"):
        AvroSchema(words)


EVERYTHING = schema(
    "int",
    NULLABLE,
    {"type": "array", "items": POINT},
    {"type": "map", "values": "double"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "int", "logicalType": "date"},
)


@given(st.binary(max_size=60))
def test_rubbish_is_a_fault_or_a_value(data: bytes) -> None:
    with contextlib.suppress(AvroFault):
        EVERYTHING.decode(data)


def test_a_schema_travels() -> None:
    assert pickle.loads(pickle.dumps(schema("int"))).decode(zigzag(5)) == (5,)
