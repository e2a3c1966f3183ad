"""Producer state on disk: the `.snapshot` files of a partition, in Apache Kafka's format.

Big-endian: version i16 = 1, CRC-32C u32 of everything behind it, entry count i32, then per producer: id i64,
epoch i16, last sequence i32, last offset i64, offset delta i32, timestamp i64, coordinator epoch i32, first
offset of the open transaction i64 (-1 for none).  Only the newest batch of a producer is kept, so after a
restart older duplicates look like gaps; so it is in Kafka.

The file's name is the offset up to which it is true.  Stateless.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final

import crc32c as _crc32c_package

from barnabas.log.errors import CorruptSnapshot
from barnabas.log.producers import ProducerEntry, SeenBatch

__all__ = ["decode_snapshot", "encode_snapshot"]

_HEAD: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
_VERSION: Final = 1
_crc32c = _crc32c_package.crc32c


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """The file's bytes."""
    packed = [
        _ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.batches[-1].offset_delta if entry.batches else 0,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.transaction_first_offset,
        )
        for entry in entries
    ]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEAD.pack(_VERSION, _crc32c(body)) + body


def decode_snapshot(path: str, content: bytes) -> list[ProducerEntry]:
    """The producers in the file.  Raises CorruptSnapshot, naming `path`."""
    if len(content) < _HEAD.size + _COUNT.size:
        raise CorruptSnapshot(f"{path}: {len(content)} bytes are too few for a snapshot")
    version, crc = _HEAD.unpack_from(content)
    if version != _VERSION:
        raise CorruptSnapshot(f"{path}: version {version} instead of {_VERSION}")
    body = memoryview(content)[_HEAD.size :]
    if (actual := _crc32c(body)) != crc:
        raise CorruptSnapshot(f"{path}: the stored CRC is {crc:#010x}, the bytes have {actual:#010x}")
    (count,) = _COUNT.unpack_from(body)
    if count < 0 or len(body) != _COUNT.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{path}: {len(content)} bytes do not hold {count} producers")
    return [_entry(*fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]


def _entry(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    transaction_first_offset: int,
) -> ProducerEntry:
    batches = [SeenBatch(last_sequence, last_offset, offset_delta, timestamp)] if last_offset >= 0 else []
    return ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp, transaction_first_offset, batches)
