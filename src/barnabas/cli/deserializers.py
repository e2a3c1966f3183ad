"""Keys and values as text, by the names that Kafka's deserializers have.

The class's full name, its bare name and a short form mean the same: LongDeserializer, long.
A number reads as Java prints it, so that the output is that of kafka-console-consumer.
"""

import struct
import uuid
from collections.abc import Callable
from typing import Final

import click

from barnabas.base.errors import BarnabasError

__all__ = ["Deserializer", "NotDeserialized", "deserializer"]

Deserializer = Callable[[bytes], bytes]
_SUFFIX: Final = "Deserializer"


class NotDeserialized(BarnabasError):
    """The bytes are not what the deserializer reads."""


def deserializer(name: str, flag: str) -> Deserializer | None:
    """The one of this name; None when bytes are to stay as they are.  Raises UsageError."""
    short = name.rpartition(".")[2].removesuffix(_SUFFIX).lower()
    short = _OTHER_NAMES.get(short, short)
    if short in _AS_THEY_ARE:
        return None
    if short not in _BY_NAME:
        known = ", ".join(sorted([*_BY_NAME, *_AS_THEY_ARE]))
        raise click.UsageError(f"{flag}: there is no {name!r}; there are {known}.")
    return _BY_NAME[short]


def _number(layout: str, what: str, text: Callable[[float], str] = str) -> Deserializer:
    reader = struct.Struct(layout)

    def read(data: bytes) -> bytes:
        if len(data) != reader.size:
            raise NotDeserialized(f"{len(data)} bytes are no {what}, which has {reader.size}")
        return text(reader.unpack(data)[0]).encode()

    return read


def _java_double(value: float, digits_max: int = 17) -> str:
    """As Double.toString: the shortest digits, with an exponent below 0.001 and from 10,000,000 on."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return _plain(value, digits_max)
    digits, _, exponent = f"{value:.{_shortest(value, digits_max) - 1}e}".partition("e")
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def _plain(value: float, digits_max: int) -> str:
    text = f"{value:.{_shortest(value, digits_max)}g}"
    if "e" in text:  # %g takes an exponent where Java does not yet
        text = f"{float(text):f}".rstrip("0")
    return text if "." in text and not text.endswith(".") else f"{text.rstrip('.')}.0"


def _shortest(value: float, digits_max: int) -> int:
    """The fewest digits that give the number back, as a float of four bytes or of eight."""
    layout = "f" if digits_max < 10 else "d"
    for digits in range(1, digits_max):
        if struct.pack(layout, float(f"{value:.{digits}g}")) == struct.pack(layout, value):
            return digits
    return digits_max


def _java_float(value: float) -> str:
    return _java_double(value, 9)


def _boolean(data: bytes) -> bytes:
    if data not in (b"\0", b"\1"):
        raise NotDeserialized(f"{data[:8]!r} is no boolean")
    return b"true" if data == b"\1" else b"false"


def _uuid(data: bytes) -> bytes:
    try:
        return str(uuid.UUID(data.decode())).encode()
    except ValueError as error:
        raise NotDeserialized(f"{data[:40]!r} is no UUID") from error


def _void(data: bytes) -> bytes:
    raise NotDeserialized(f"{len(data)} bytes are there, where there should be none")


_AS_THEY_ARE: Final = ("bytes", "string")
_OTHER_NAMES: Final = {"bytearray": "bytes", "bytebuffer": "bytes", "int": "integer"}
_BY_NAME: Final[dict[str, Deserializer]] = {
    "boolean": _boolean,
    "double": _number(">d", "double", _java_double),
    "float": _number(">f", "float", _java_float),
    "integer": _number(">i", "integer"),
    "long": _number(">q", "long"),
    "short": _number(">h", "short"),
    "uuid": _uuid,
    "void": _void,
}
