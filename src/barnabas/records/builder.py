"""Making batches: record by record under a size limit, from ready payload bytes, and control batches.

M1  A batch never passes its size limit, unless its first record alone does: that one is always taken, as
    in Java's client, for only the broker can say whether it is too large.
M2  A payload that does not shrink is stored plain, whatever codec was asked for (librdkafka does the same),
    so compression never breaks M1.
M3  Timestamps, producer ids and offsets are arguments: nothing here reads a clock or counts on its own.
"""

from collections.abc import Iterable
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from barnabas.base.errors import Misuse
from barnabas.records import kernel
from barnabas.records.batch import (
    ATTRIBUTE_CODEC_MASK,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_TRANSACTIONAL,
    HEADER,
    HEADER_BYTES,
    LENGTH_COUNTS_FROM,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    RecordBatch,
    seal_batch,
)
from barnabas.records.codecs import Codec, compress
from barnabas.records.errors import InvalidRecord
from barnabas.records.kernel import PayloadBuilder
from barnabas.records.record import Header

__all__ = [
    "NO_LEADER_EPOCH",
    "BatchBuilder",
    "ControlType",
    "EndTxnMarker",
    "Row",
    "assemble_batch",
    "build_batch",
    "end_txn_marker",
    "read_end_txn_marker",
]

NO_LEADER_EPOCH: Final = -1
_SIZE_LIMIT_MAX: Final = 2**31 - 1

Data = bytes | bytearray | memoryview
Row = tuple[int, Data | None, Data | None, Iterable[Header]]  # timestamp, key, value, headers


class BatchBuilder:
    """Collects records, encoded at once, until the batch would pass `size_limit` bytes in all (M1).

    `append(timestamp, key, value, headers=())` adds one record and says True, or says False and changes
    nothing when it does not fit; `append_columns` adds rows of Arrow columns and says how many;
    `append_payload` adds the records of another batch, all or none.  `build` makes the batch and leaves the
    builder empty, ready for the next.
    The limit holds for the bytes before compression.  A caller that knows how well its data compresses
    may pass `expected_ratio` (compressed / plain, at most 1) to fill batches further; M1 then holds only
    as far as the expectation does.
    """

    __slots__ = ("_codec", "_level", "_payload", "append", "append_columns", "append_payload")

    def __init__(
        self,
        size_limit: int,
        *,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        expected_ratio: float = 1.0,
    ) -> None:
        if not HEADER_BYTES <= size_limit <= _SIZE_LIMIT_MAX:
            raise Misuse(f"a batch of at most {size_limit} bytes cannot be built")
        if not 0.0 < expected_ratio <= 1.0:
            raise Misuse(f"the expected ratio {expected_ratio} is not above 0 and at most 1")
        payload_limit = int((size_limit - HEADER_BYTES) / expected_ratio)
        self._payload = PayloadBuilder(min(payload_limit, _SIZE_LIMIT_MAX), reserve=HEADER_BYTES)
        self._codec = codec
        self._level = level
        # The kernel's own method: a wrapper would cost more than the work.
        self.append = self._payload.append
        self.append_columns = self._payload.append_columns
        self.append_payload = self._payload.append_payload

    def __len__(self) -> int:
        return self._payload.count

    @property
    def record_count(self) -> int:
        return self._payload.count

    @property
    def size_bytes(self) -> int:
        """The size of the batch if it were built now without compression."""
        return HEADER_BYTES + self._payload.size

    @property
    def max_timestamp(self) -> int:
        return self._payload.max_timestamp

    def build(
        self,
        *,
        base_offset: int = 0,
        leader_epoch: int = NO_LEADER_EPOCH,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        transactional: bool = False,
        seal: bool = True,
    ) -> bytearray:
        """The batch of all appended records.  Raises Misuse when there are none.

        Without `seal` its CRC is left 0, for who changes the header once more and seals it then.
        """
        payload = self._payload
        count = payload.count
        if count == 0:
            raise Misuse("a batch without records cannot be built")
        last_offset_delta = payload.last_offset_delta
        base_timestamp, max_timestamp = payload.base_timestamp, payload.max_timestamp
        buffer = payload.take()
        codec = self._codec if _compress_payload(buffer, self._codec, self._level) else Codec.NONE
        HEADER.pack_into(
            buffer,
            0,
            base_offset,
            len(buffer) - LENGTH_COUNTS_FROM,
            leader_epoch,
            MAGIC,
            0,
            codec | (ATTRIBUTE_TRANSACTIONAL if transactional else 0),
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )
        if seal:
            seal_batch(buffer, 0, len(buffer))
        return buffer


def build_batch(
    rows: Iterable[Row],
    *,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
) -> bytearray:
    """One batch of all `rows`, however large, with offsets that follow each other."""
    builder = BatchBuilder(_SIZE_LIMIT_MAX, codec=codec, level=level)
    for timestamp, key, value, headers in rows:
        if not builder.append(timestamp, key, value, headers):
            raise Misuse(f"the records pass the format's {_SIZE_LIMIT_MAX} bytes for a batch")
    return builder.build(
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
    )


def assemble_batch(
    payload: Data,
    *,
    record_count: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    attributes: int = 0,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
) -> bytearray:
    """A batch around `payload`, records already encoded against `base_offset` and `base_timestamp`.

    For rewriting: records kept by compaction keep their bytes as long as both bases stay the same.
    `attributes` are those of the batch; their codec bits give way to `codec`.
    `record_count` 0 with an empty payload makes the empty batch that marks a compacted range.
    """
    buffer = bytearray(HEADER_BYTES)
    buffer += payload
    used = codec if _compress_payload(buffer, codec, level) else Codec.NONE
    HEADER.pack_into(
        buffer,
        0,
        base_offset,
        len(buffer) - LENGTH_COUNTS_FROM,
        leader_epoch,
        MAGIC,
        0,
        attributes & ~ATTRIBUTE_CODEC_MASK | used,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    seal_batch(buffer, 0, len(buffer))
    return buffer


def _compress_payload(buffer: bytearray, codec: Codec, level: int | None) -> bool:
    """Compress what follows the header in place, unless that makes it no smaller (M2)."""
    if codec is Codec.NONE:
        return False
    with memoryview(buffer) as view, view[HEADER_BYTES:] as payload:
        packed = compress(codec, payload, level)
        if len(packed) >= len(payload):
            return False
    buffer[HEADER_BYTES:] = packed
    return True


class ControlType(IntEnum):
    """What the key of a control record says; the types from 2 on belong to KRaft's own log."""

    ABORT = 0
    COMMIT = 1


class EndTxnMarker(NamedTuple):
    """The end of a producer's transaction in one partition."""

    committed: bool
    coordinator_epoch: int


_CONTROL_KEY: Final = Struct(">hh")  # version, type; librdkafka wants exactly these 4 bytes
_END_TXN_VALUE: Final = Struct(">hi")  # version, coordinator epoch
_CONTROL_VERSION: Final = 0


def end_txn_marker(
    *,
    committed: bool,
    coordinator_epoch: int,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """The control batch that ends a transaction: one record, no sequence, never compressed."""
    control = ControlType.COMMIT if committed else ControlType.ABORT
    key = _CONTROL_KEY.pack(_CONTROL_VERSION, control)
    value = _END_TXN_VALUE.pack(_CONTROL_VERSION, coordinator_epoch)
    return assemble_batch(
        kernel.encode([(timestamp, key, value, ())]),
        record_count=1,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def read_end_txn_marker(batch: RecordBatch) -> EndTxnMarker | None:
    """What the control batch says, or None when it is not about a transaction.

    Later versions of key and value may be longer; what version 0 has comes first.
    Raises InvalidRecord when the batch is no control batch of one well-formed record.
    """
    if not batch.is_control or batch.is_compressed or batch.record_count != 1:
        raise InvalidRecord(f"{batch!r} is not a control batch of one record")
    (record,) = kernel.decode(batch.payload, 1, batch.base_offset, batch.base_timestamp)
    key, value = record.key, record.value
    if key is None or len(key) < _CONTROL_KEY.size:
        raise InvalidRecord(f"the key of a control record has 4 bytes, not {key!r}")
    version, control = _CONTROL_KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecord(f"version {version} of a control record's key does not exist")
    if control not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if value is None or len(value) < _END_TXN_VALUE.size:
        raise InvalidRecord(f"the value of a transaction marker has 6 bytes, not {value!r}")
    version, coordinator_epoch = _END_TXN_VALUE.unpack_from(value)
    if version < 0:
        raise InvalidRecord(f"version {version} of a transaction marker's value does not exist")
    return EndTxnMarker(control == ControlType.COMMIT, coordinator_epoch)
