"""Avro values of a declared record schema, decoded in Python.

Types: all primitive ones, record, enum, array, map, fixed, and a union of null with one other type; logical
types date, timestamp-millis and -micros, and decimal.  All else is refused when the schema is read.  Pure.
"""

import json
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

from barnabas.base.errors import BarnabasError

__all__ = ["AvroFault", "AvroSchema"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ITEMS_MAX: Final = 10_000_000
_DEPTH_MAX: Final = 64


class AvroFault(BarnabasError):
    """A schema or a value that is not understood."""


class _Cursor:
    """Reads one value's bytes from front to back."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position

    def take(self, count: int) -> bytes:
        end = self.position + count
        if count < 0 or end > len(self.data):
            raise AvroFault("it ends too early")
        found = self.data[self.position : end]
        self.position = end
        return found

    def long(self) -> int:
        """A zigzag varint."""
        shift = value = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise AvroFault("a number is too long")

    def count(self) -> int:
        found = self.long()
        if not 0 <= found <= _ITEMS_MAX:
            raise AvroFault(f"a length is {found}")
        return found


class _Type(NamedTuple):
    ddl: str
    read: Callable[[_Cursor], Any]


def _boolean(cursor: _Cursor) -> bool:
    return cursor.take(1) != b"\0"


def _text(cursor: _Cursor) -> str:
    try:
        return cursor.take(cursor.count()).decode()
    except UnicodeDecodeError:
        raise AvroFault("a string is not UTF-8") from None


_PRIMITIVES: Final[Mapping[str, _Type]] = {
    "null": _Type("STRING", lambda cursor: None),
    "boolean": _Type("BOOLEAN", _boolean),
    "int": _Type("INT", _Cursor.long),
    "long": _Type("BIGINT", _Cursor.long),
    "float": _Type("FLOAT", lambda cursor: struct.unpack("<f", cursor.take(4))[0]),
    "double": _Type("DOUBLE", lambda cursor: struct.unpack("<d", cursor.take(8))[0]),
    "bytes": _Type("BINARY", lambda cursor: cursor.take(cursor.count())),
    "string": _Type("STRING", _text),
}


class AvroSchema:
    """A record schema: `ddl` is its type in Spark, `decode` reads a value as a tuple of its fields."""

    def __init__(self, text: str) -> None:
        """Raises AvroFault."""
        try:
            declared = json.loads(text)
        except ValueError as error:
            raise AvroFault(f"it is not JSON: {error}") from error
        if not isinstance(declared, dict) or declared.get("type") != "record":
            raise AvroFault("it must be a record")
        self._text = text
        self._top = _Reader().type_of(declared, 0)
        self.ddl = self._top.ddl

    def decode(self, value: bytes, skipped: int = 0) -> Any:
        """The fields of a value behind its first `skipped` bytes.  Raises AvroFault."""
        cursor = _Cursor(value, skipped)
        if skipped > len(value):
            raise AvroFault("it ends too early")
        found = self._top.read(cursor)
        if cursor.position != len(value):
            raise AvroFault(f"{len(value) - cursor.position} bytes are left over")
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroSchema, (self._text,)  # the readers are closures, which do not travel


class _Reader:
    """Turns a schema into readers; knows the names declared so far."""

    def __init__(self) -> None:
        self._named: dict[str, _Type] = {}

    def type_of(self, declared: object, depth: int) -> _Type:
        if depth > _DEPTH_MAX:
            raise AvroFault("it is nested too deep")
        if isinstance(declared, str):
            found = _PRIMITIVES.get(declared) or self._named.get(declared)
            if found is None:
                raise AvroFault(f"the type {declared!r} is not known; a record cannot hold itself")
            return found
        if isinstance(declared, list):
            return self._union(declared, depth)
        if not isinstance(declared, dict):
            raise AvroFault(f"{declared!r} is no type")
        kind = declared.get("type")
        if "logicalType" in declared and (logical := self._logical(declared, depth)) is not None:
            return logical
        match kind:
            case "record":
                found = self._record(declared, depth)
            case "enum":
                found = self._enum(declared)
            case "fixed":
                size = _whole(declared, "size")
                found = _Type("BINARY", lambda cursor: cursor.take(size))
            case "array":
                return self._array(declared, depth)
            case "map":
                return self._map(declared, depth)
            case _:
                return self.type_of(kind, depth + 1)
        name = declared.get("name")
        if isinstance(name, str):
            self._named[name] = found
        return found

    def _record(self, declared: Mapping[str, Any], depth: int) -> _Type:
        fields = declared.get("fields")
        if not isinstance(fields, list) or not fields:
            raise AvroFault("a record wants fields")
        names, types = [], []
        for field in fields:
            if not isinstance(field, dict) or not isinstance(field.get("name"), str):
                raise AvroFault("a field wants a name")
            names.append(field["name"])
            types.append(self.type_of(field.get("type"), depth + 1))
        readers = [each.read for each in types]
        inner = ", ".join(f"`{name}`: {each.ddl}" for name, each in zip(names, types, strict=True))
        return _Type(f"STRUCT<{inner}>", lambda cursor: tuple(read(cursor) for read in readers))

    def _enum(self, declared: Mapping[str, Any]) -> _Type:
        symbols = declared.get("symbols")
        if not isinstance(symbols, list):
            raise AvroFault("an enum wants symbols")

        def read(cursor: _Cursor) -> Any:
            number = cursor.long()
            if not 0 <= number < len(symbols):
                raise AvroFault(f"an enum has no symbol {number}")
            return symbols[number]

        return _Type("STRING", read)

    def _union(self, declared: list[object], depth: int) -> _Type:
        others = [each for each in declared if each != "null"]
        if len(others) != 1:
            raise AvroFault("of unions, only one of null and one other type is known")
        inner = self.type_of(others[0], depth + 1)
        branches = [None if each == "null" else inner.read for each in declared]

        def read(cursor: _Cursor) -> Any:
            number = cursor.long()
            if not 0 <= number < len(branches):
                raise AvroFault(f"a union has no branch {number}")
            branch = branches[number]
            return None if branch is None else branch(cursor)

        return _Type(inner.ddl, read)

    def _array(self, declared: Mapping[str, Any], depth: int) -> _Type:
        inner = self.type_of(declared.get("items"), depth + 1)
        return _Type(f"ARRAY<{inner.ddl}>", lambda cursor: _blocks(cursor, inner.read))

    def _map(self, declared: Mapping[str, Any], depth: int) -> _Type:
        inner = self.type_of(declared.get("values"), depth + 1)

        def read(cursor: _Cursor) -> dict[str, Any]:
            return dict(_blocks(cursor, lambda each: (_text(each), inner.read(each))))

        return _Type(f"MAP<STRING, {inner.ddl}>", read)

    def _logical(self, declared: Mapping[str, Any], depth: int) -> _Type | None:
        """None: a logical type that is not known, which counts as what it is made of."""
        kind, logical = declared.get("type"), declared.get("logicalType")
        if (kind, logical) == ("int", "date"):
            return _Type("DATE", lambda cursor: _safe(lambda: date(1970, 1, 1) + timedelta(cursor.long())))
        if kind == "long" and logical in ("timestamp-millis", "timestamp-micros"):
            scale = 1000 if logical == "timestamp-millis" else 1
            return _Type(
                "TIMESTAMP",
                lambda cursor: _safe(lambda: _EPOCH + timedelta(microseconds=cursor.long() * scale)),
            )
        if logical == "decimal" and kind in ("bytes", "fixed"):
            precision, scale = _whole(declared, "precision"), int(declared.get("scale", 0))
            if not 0 < precision <= 38:
                raise AvroFault(f"a decimal has {precision} digits, more than 38")
            plain = self.type_of(
                {name: v for name, v in declared.items() if name != "logicalType"}, depth + 1
            )

            def read(cursor: _Cursor) -> Decimal:
                return Decimal(int.from_bytes(plain.read(cursor), "big", signed=True)).scaleb(-scale)

            return _Type(f"DECIMAL({precision}, {scale})", read)
        return None


def _blocks(cursor: _Cursor, read: Callable[[_Cursor], Any]) -> list[Any]:
    """The items of an array or a map: blocks of a count and as many items, until one of none."""
    items: list[Any] = []
    while count := cursor.long():
        if count < 0:
            count = -count
            cursor.long()  # the block's bytes, for those who skip it
        if count > _ITEMS_MAX or count > len(cursor.data):
            raise AvroFault(f"a block has {count} items")
        items += [read(cursor) for _ in range(count)]
    return items


def _safe(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except OverflowError:
        raise AvroFault("a time is out of range") from None


def _whole(declared: Mapping[str, Any], name: str) -> int:
    value = declared.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise AvroFault(f"{name} must be a whole number, not {value!r}")
    return value
