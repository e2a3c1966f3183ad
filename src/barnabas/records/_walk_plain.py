"""The walk over the records of a payload in plain Python: every length checked before it is used.

P1  Positions are indexes into one bytes object, checked before each read; no read relies on IndexError.
P2  Timestamps and offsets wrap at 64 bits, as the Java that defined the format does.
P3  The order of the checks, and so the error for bytes with several faults, is that of `_kernel_walk.pxi`.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.records import faults
from barnabas.records.faults import RECORD_BYTES_MIN, malformed

__all__ = [
    "INT32_MAX",
    "INT64_MAX",
    "INT64_MIN",
    "Data",
    "Header",
    "Walked",
    "check_count",
    "piece",
    "read_headers",
    "walk",
    "wrap",
]

Data = bytes | bytearray | memoryview
Header = tuple[str, bytes | None]

INT32_MAX: Final = 2**31 - 1
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1


class Walked(NamedTuple):
    """One record as positions in its payload; sizes of -1 are null."""

    position: int  # where its length begins
    attributes: int
    timestamp_delta: int
    behind_timestamp: int
    offset_delta: int
    behind_offset: int
    key: int
    key_size: int
    value: int
    value_size: int
    headers: int
    header_count: int
    end: int


def wrap(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def _varint(data: bytes, position: int, end: int, width: int, field: int, index: int) -> tuple[int, int]:
    """The zig-zag varint of at most `width` bytes (5 or 10) at `position`, and the position behind it."""
    value = shift = 0
    bits = 32 if width == 5 else 64
    for at in range(position, min(position + width, end)):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> bits:
                break
            return (value >> 1) ^ -(value & 1), at + 1
        shift += 7
    kind = faults.NOT_VARINT if end - position >= width else faults.CUT
    raise malformed(kind, field, index, 0, 0)


def _sized(data: bytes, position: int, end: int, smallest: int, field: int, index: int) -> tuple[int, int]:
    size, position = _varint(data, position, end, 5, field, index)
    if size < smallest or size > end - position:
        raise malformed(faults.SIZE, field, index, size, end - position)
    return size, position


def _read_record(data: bytes, start: int, index: int, count: int) -> Walked:
    if start == len(data):
        raise malformed(faults.ENDED, 0, index, count, 0)
    size, position = _varint(data, start, len(data), 5, faults.LENGTH_FIELD, index)
    if size < RECORD_BYTES_MIN - 1 or size > len(data) - position:
        raise malformed(faults.LENGTH, faults.LENGTH_FIELD, index, size, len(data) - position)
    end = position + size
    attributes = data[position]
    timestamp_delta, position = _varint(data, position + 1, end, 10, faults.TIMESTAMP_DELTA, index)
    behind_timestamp = position
    offset_delta, behind_offset = _varint(data, position, end, 5, faults.OFFSET_DELTA, index)
    key_size, key = _sized(data, behind_offset, end, -1, faults.KEY_LENGTH, index)
    value_size, value = _sized(data, key + max(key_size, 0), end, -1, faults.VALUE_LENGTH, index)
    header_count, headers = _sized(data, value + max(value_size, 0), end, 0, faults.HEADER_COUNT, index)
    position = headers
    for _ in range(header_count):
        size, position = _sized(data, position, end, 0, faults.HEADER_KEY_LENGTH, index)
        size, position = _sized(data, position + size, end, -1, faults.HEADER_VALUE_LENGTH, index)
        position += max(size, 0)
    if position != end:
        raise malformed(faults.LEFTOVER, 0, index, end - position, 0)
    return Walked(
        start, attributes, timestamp_delta, behind_timestamp, offset_delta, behind_offset,
        key, key_size, value, value_size, headers, header_count, end,
    )  # fmt: skip


def check_count(data: bytes, count: int) -> None:
    """Refuse a count that the bytes cannot hold: a lie in the header must not buy memory."""
    if count < 0 or count > len(data) // RECORD_BYTES_MIN:
        raise malformed(faults.COUNT, 0, 0, count, len(data))


def walk(data: bytes, count: int, index: int = 0, position: int = 0) -> Iterator[Walked]:
    """The records of a payload from `index` on; the last step proves that nothing follows them."""
    check_count(data, count)
    for index in range(index, count):  # noqa: B020 -- the parameter is where the range begins
        walked = _read_record(data, position, index, count)
        position = walked.end
        yield walked
    if position != len(data):
        raise malformed(faults.TRAILING, 0, count, len(data) - position, 0)


def piece(data: bytes, position: int, size: int) -> bytes | None:
    return None if size < 0 else data[position : position + size]


def read_headers(data: bytes, walked: Walked) -> tuple[Header, ...]:
    pairs: list[Header] = []
    position = walked.headers
    for _ in range(walked.header_count):
        size, position = _varint(data, position, walked.end, 5, faults.HEADER_KEY_LENGTH, 0)
        key = data[position : position + size].decode(errors="replace")
        size, position = _varint(data, position + size, walked.end, 5, faults.HEADER_VALUE_LENGTH, 0)
        pairs.append((key, piece(data, position, size)))
        position += max(size, 0)
    return tuple(pairs)
