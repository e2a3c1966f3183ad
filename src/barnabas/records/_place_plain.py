"""Where rows of columns go, and what they come to, in plain Python; see `kernel.Kernel`.

`murmur2` is the hash of Kafka's default partitioner.  `row_sum` is our own: it is kept in markers beside a
broker's offsets, so neither twin may ever change it.
"""

import struct
from array import array
from typing import Final

from barnabas.base.errors import Misuse
from barnabas.records._columns_plain import (
    BinaryColumn,
    HeaderColumn,
    TimeColumn,
    held_binary,
    held_headers,
    held_times,
    read_binary,
    read_header_pairs,
    read_time,
)

__all__ = ["murmur2", "place", "row_sum"]

UNPLACED: Final = -1
_M: Final = 0x5BD1_E995
_SEED: Final = 0x9747_B28C
_MASK32: Final = 0xFFFF_FFFF
_MASK64: Final = 0xFFFF_FFFF_FFFF_FFFF
_PRIME: Final = 0x9E37_79B9_7F4A_7C15
_NOT_GIVEN: Final = -(2**63)


def murmur2(data: bytes) -> int:
    """MurmurHash2 with Kafka's seed, as an unsigned 32-bit number."""
    size = len(data)
    h = _SEED ^ size
    whole = size & ~3
    for (k,) in struct.iter_unpack("<I", data[:whole]):
        k = k * _M & _MASK32
        k = (k ^ k >> 24) * _M & _MASK32
        h = (h * _M & _MASK32) ^ k
    if rest := data[whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * _M & _MASK32
    h = (h ^ h >> 13) * _M & _MASK32
    return h ^ h >> 15


def place(
    rows: int, partition_count: int, keys: BinaryColumn | None = None, chosen: TimeColumn | None = None
) -> tuple[bytearray, list[tuple[int, int, int]]]:
    if rows < 0 or partition_count < 1:
        raise Misuse(f"{rows} rows cannot be placed in {partition_count} partitions")
    held, numbers = held_binary(keys, rows), held_times(chosen, rows)
    groups: dict[int, list[int]] = {}
    for row in range(rows):
        partition = read_time(numbers, row, _NOT_GIVEN)
        if partition == _NOT_GIVEN:
            key = read_binary(held, row)
            partition = UNPLACED if key is None else (murmur2(key) & 0x7FFF_FFFF) % partition_count
        elif not 0 <= partition < partition_count:
            raise Misuse(f"row {row}: there is no partition {partition}, only 0 to {partition_count - 1}")
        groups.setdefault(partition, []).append(row)
    order = array("i")
    bounds = []
    for partition, members in sorted(groups.items()):
        bounds.append((partition, len(order), len(order) + len(members)))
        order.extend(members)
    return bytearray(order.tobytes()), bounds


def row_sum(
    rows: int,
    keys: BinaryColumn | None = None,
    values: BinaryColumn | None = None,
    headers: HeaderColumn | None = None,
    seed: int = 0,
) -> int:
    if rows < 0:
        raise Misuse(f"{rows} rows cannot be summed up")
    held_keys, held_values, pairs = (
        held_binary(keys, rows),
        held_binary(values, rows),
        held_headers(headers, rows),
    )
    total = 0
    for row in range(rows):
        h = _mixed(seed & _MASK64, read_binary(held_keys, row))
        h = _mixed(h, read_binary(held_values, row))
        for name, value in read_header_pairs(pairs, row):
            h = _mixed(_mixed(h, name.encode()), value)
        total += _stirred(h)
    return total & _MASK64


def _mixed(h: int, data: bytes | None) -> int:
    """The hash with one more field in it; null differs from empty."""
    h = _stirred(h ^ (0 if data is None else len(data) + 1))
    if data:
        padded = data + bytes(-len(data) % 8)
        for (word,) in struct.iter_unpack("<Q", padded):
            h = _stirred(h ^ word)
    return h


def _stirred(h: int) -> int:
    h = h * _PRIME & _MASK64
    return h ^ h >> 32
