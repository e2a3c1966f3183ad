"""kio as the judge: an independent codec, generated from Kafka's own definitions, a class per version.

kio has other Python types for some fields (ErrorCode, timedelta, datetime, UUID, tuples) and drops
the unit from their names; fields correspond by position.
"""

import dataclasses
import datetime
import io
import types
import typing
import uuid
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st
from kio.index import load_entity_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from barnabas.protocol.schema import Field, Struct

EXCHANGED = (EntityType.request, EntityType.response)
_EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)
_MS = datetime.timedelta(milliseconds=1)


def known_versions(name: str) -> list[int]:
    """The versions of a schema (an API in snake case, or a data schema) that kio has."""
    return sorted(schema_name_map.get(name, {}))


def load(name: str, version: int, kind: EntityType) -> type[Any]:
    assert kind is not EntityType.nested
    entity: type[Any] = load_entity_schema(name, version, kind)
    return entity


def write(message: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(message))(buffer, message)
    return buffer.getvalue()


def read(kind: type[Any], data: bytes) -> Any:
    message, size = entity_reader(kind)(data, 0)
    assert size == len(data)
    return message


def fields(ours: type[Struct], kind: type[Any]) -> Iterator[tuple[Field, Any]]:
    """Our fields and kio's, side by side."""
    version = int(kind.__version__)
    present = [field for field in ours.FIELDS if field.versions.has(version)]
    theirs = dataclasses.fields(kind)
    assert len(present) == len(theirs), f"{ours.__name__} v{version}: {[f.name for f in theirs]}"
    for field, other in zip(present, theirs, strict=True):
        shortened = field.name.removesuffix("_ms").removesuffix("_timestamp")
        assert other.name in (field.name, shortened) or _same(field.name, other.name), (
            field.name,
            other.name,
        )
        yield field, other


def _same(ours: str, theirs: str) -> bool:
    return ours.replace("_", "").startswith(theirs.replace("_", ""))


def narrowed(ours: type[Struct], kind: type[Any]) -> Any:
    """The values that kio can express, for `strategies.messages`."""
    pairs = {field.name: other for field, other in fields(ours, kind)}

    def choose(field: Field) -> Any:
        other = pairs[field.name]
        if field.struct is not None:
            return narrowed(field.struct, _entity(other.type))
        wire = other.metadata["kafka_type"]
        if wire == "error_code":
            return st.sampled_from([int(code) for code in ErrorCode])
        if wire == "timedelta_i64":
            return st.integers(-(10**12), 10**12)
        if wire == "datetime_i64":
            seconds = st.integers(0, 10**10).map(lambda value: value * 1000)
            return st.just(-1) | seconds if _is_optional(other.type) else seconds
        if wire == "float64":
            return st.floats(allow_nan=False, allow_infinity=False)
        return None

    return choose


def to_kio(message: Struct, kind: type[Any]) -> Any:
    """The same message as kio's class of the version has it."""
    values = {}
    for field, other in fields(type(message), kind):
        value = getattr(message, field.name)
        if value is None and field.struct is not None and field.tag is not None:
            continue  # kio has the default struct where we have None
        values[other.name] = _value(value, field, other)
    for other in dataclasses.fields(kind):
        if other.name not in values and other.default is dataclasses.MISSING:
            values[other.name] = _entity(other.type)()
    return kind(**values)


def _value(value: Any, field: Field, other: Any) -> Any:
    if value is None:
        return None
    if field.is_array:
        return tuple(_item(item, field, other) for item in value)
    return _item(value, field, other)


def _item(value: Any, field: Field, other: Any) -> Any:
    if field.struct is not None:
        return to_kio(value, _entity(other.type))
    match other.metadata["kafka_type"]:
        case "error_code":
            return ErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            return value * _MS
        case "datetime_i64":
            return None if value == -1 and _is_optional(other.type) else _EPOCH + value * _MS
        case "uuid":
            return None if value == bytes(16) else uuid.UUID(bytes=value)
        case "bytes" | "records":
            return bytes(value)
    return value


def _is_optional(annotation: Any) -> bool:
    return types.NoneType in typing.get_args(annotation)


def _entity(annotation: Any) -> type[Any]:
    """The struct class inside tuple[X, ...], X | None and their mixtures."""
    for argument in typing.get_args(annotation):
        if argument not in (types.NoneType, ...):
            return _entity(argument)
    assert isinstance(annotation, type)
    return annotation
