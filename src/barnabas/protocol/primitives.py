"""Variable-length integers and tag sections: the slow paths that generated codecs fall back to.

Generated code reads the first byte of a varint itself and calls in here only when more follow.
Functions that read take (data, position) and give back the new position; running off the end
raises IndexError, which every decoder turns into DecodeError.
"""

from typing import Final

from barnabas.protocol.errors import DecodeError

__all__ = ["UVARINTS", "read_uvarint", "rest_of_uvarint", "skip_tags", "uvarint"]

Data = bytes | bytearray | memoryview

_UVARINT_MAX: Final = 2**32 - 1


def rest_of_uvarint(data: Data, position: int, first: int) -> tuple[int, int]:
    """An unsigned varint whose `first` byte, above 127, is read already: (value, new position)."""
    value = first & 0x7F
    shift = 7
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise DecodeError(f"varint at byte {position - 5} is longer than 5 bytes")
    if value > _UVARINT_MAX:
        raise DecodeError(f"varint before byte {position} exceeds 32 bits")
    return value, position


def read_uvarint(data: Data, position: int) -> tuple[int, int]:
    """An unsigned varint: (value, new position)."""
    first = data[position]
    if first < 0x80:
        return first, position + 1
    return rest_of_uvarint(data, position + 1, first)


def skip_tags(data: Data, position: int, first: int) -> int:
    """The position after a tag section of which no tag is known; `first` is its first byte."""
    count, position = rest_of_uvarint(data, position, first) if first > 127 else (first, position)
    size = len(data)
    for _ in range(count):
        _, position = read_uvarint(data, position)
        length, position = read_uvarint(data, position)
        position += length
        if position > size:
            raise DecodeError(f"tagged field of {length} bytes passes the end, {size}")
    return position


def _encode_uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


UVARINTS: Final = tuple(_encode_uvarint(value) for value in range(256))  # most lengths are short


def uvarint(value: int) -> bytes:
    """The bytes of an unsigned varint."""
    return UVARINTS[value] if value < 256 else _encode_uvarint(value)
