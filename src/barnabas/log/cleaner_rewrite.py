"""What compaction leaves of one batch: the bytes as they are, a smaller batch, an empty one, or nothing.

W1  Base offset, last offset, leader epoch, producer id, epoch and sequence of a batch never change, so
    neither do its records' offsets nor what a producer's next sequence must be.
W2  Records that stay keep their bytes; a batch that keeps all of them is copied whole.
W3  The first pass that meets a tombstone as the last record of its key, or a marker whose transaction is
    gone, writes a delete horizon into the batch (KIP-534); the first pass after that time drops it.
W4  The last batch of a producer that is still known stays, empty if need be: it holds the sequence that a
    restart must find.  So does the batch that ends the cleaned range: it holds the offset.

Feed every batch of the pass in order, with its CRC checked: a rewritten batch gets a new CRC, which would
turn damage into truth.  No file is touched here; runs in the cleaner's thread on objects of its own.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas.log.cleaner_transactions import CleanedTransactions
from barnabas.log.offset_map import OffsetMap
from barnabas.records import kernel
from barnabas.records.batch import ATTRIBUTE_CODEC_MASK, ATTRIBUTE_DELETE_HORIZON, NO_TIMESTAMP, RecordBatch
from barnabas.records.builder import assemble_batch
from barnabas.records.codecs import decompress

__all__ = ["DECOMPRESSED_BYTES_MAX", "BatchCleaner", "LastRecord", "Retained", "plain_payload"]

DECOMPRESSED_BYTES_MAX: Final = 2**31 - 1  # what a batch can hold at all; it was admitted once

Data = bytes | bytearray | memoryview


class LastRecord(NamedTuple):
    """What the log remembers last of a producer: its last data batch, or only a marker of its epoch."""

    last_data_offset: int | None
    producer_epoch: int


class Retained(NamedTuple):
    """What is written for a batch."""

    data: Data
    last_offset: int
    max_timestamp: int
    record_count: int


def plain_payload(batch: RecordBatch) -> Data:
    """The records area, decompressed.  Raises the errors of `records`."""
    payload = batch.payload
    return decompress(batch.codec, payload, DECOMPRESSED_BYTES_MAX) if batch.is_compressed else payload


class BatchCleaner:
    """One pass over the batches of a log, oldest first."""

    __slots__ = (
        "_delete_retention_ms",
        "_end_offset",
        "_last_records",
        "_now_ms",
        "_offsets",
        "_transactions",
    )

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        *,
        now_ms: int,
        delete_retention_ms: int,
        last_records: Mapping[int, LastRecord],
        end_offset: int,
    ) -> None:
        """`end_offset` is the offset behind the range that the pass cleans (W4)."""
        self._offsets: Final = offsets
        self._transactions: Final = transactions
        self._now_ms: Final = now_ms
        self._delete_retention_ms: Final = delete_retention_ms
        self._last_records: Final = last_records
        self._end_offset: Final = end_offset

    def clean(self, batch: RecordBatch) -> Retained | None:
        """What to write for the batch, or None.  Raises the errors of `records` when it is malformed."""
        if batch.is_control:
            return self._clean_marker(batch)
        if self._transactions.data(batch):
            return self._none_of(batch)
        if batch.record_count == 0:
            return self._all_of(batch) if self._must_stay(batch) else None
        if batch.base_offset > self._offsets.latest_offset:
            return self._all_of(batch)
        return self._clean_data(batch)

    def _clean_marker(self, batch: RecordBatch) -> Retained | None:
        if not self._transactions.marker(batch):
            return self._all_of(batch)
        if batch.record_count == 0:
            return self._all_of(batch) if self._must_stay(batch) else None
        horizon_ms = batch.delete_horizon_ms
        if horizon_ms is None:
            return self._some_of(batch, batch.payload, b"\x01", self._horizon_ms())
        return self._none_of(batch) if horizon_ms <= self._now_ms else self._all_of(batch)

    def _clean_data(self, batch: RecordBatch) -> Retained | None:
        payload = plain_payload(batch)
        horizon_ms = batch.delete_horizon_ms
        retained = self._offsets.retain(
            payload,
            batch.record_count,
            batch.base_offset,
            tombstones=horizon_ms is None or horizon_ms > self._now_ms,
        )
        if retained.kept == 0:
            return self._none_of(batch)
        if horizon_ms is None and retained.tombstones:
            return self._some_of(batch, payload, retained.keep, self._horizon_ms())
        if retained.kept == batch.record_count:
            return self._all_of(batch)
        return self._some_of(batch, payload, retained.keep, None)

    def _horizon_ms(self) -> int:
        return self._now_ms + self._delete_retention_ms

    def _must_stay(self, batch: RecordBatch) -> bool:
        if batch.next_offset == self._end_offset:
            return True
        last = self._last_records.get(batch.producer_id) if batch.has_producer_id else None
        if last is None:
            return False
        if last.last_data_offset is not None:
            return batch.last_offset == last.last_data_offset
        return batch.is_control and batch.producer_epoch == last.producer_epoch

    def _all_of(self, batch: RecordBatch) -> Retained:
        return Retained(batch.view, batch.last_offset, batch.max_timestamp, batch.record_count)

    def _none_of(self, batch: RecordBatch) -> Retained | None:
        if not self._must_stay(batch):
            return None
        data = assemble_batch(
            b"",
            record_count=0,
            last_offset_delta=batch.last_offset_delta,
            base_timestamp=NO_TIMESTAMP,
            max_timestamp=batch.max_timestamp,
            base_offset=batch.base_offset,
            leader_epoch=batch.leader_epoch,
            attributes=batch.attributes & ~(ATTRIBUTE_DELETE_HORIZON | ATTRIBUTE_CODEC_MASK),
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
        )
        return Retained(data, batch.last_offset, batch.max_timestamp, 0)

    def _some_of(self, batch: RecordBatch, payload: Data, mask: Data, horizon_ms: int | None) -> Retained:
        """The batch with the records of the mask; `horizon_ms` takes the place of the base timestamp."""
        base_timestamp, attributes = batch.base_timestamp, batch.attributes
        if horizon_ms is not None:
            base_timestamp, attributes = horizon_ms, attributes | ATTRIBUTE_DELETE_HORIZON
        shift = batch.base_timestamp - base_timestamp
        kept, count = kernel.filter(payload, batch.record_count, mask, shift)
        max_timestamp = batch.log_append_time
        if max_timestamp is None:
            max_timestamp = kernel.check(kept, count, base_timestamp, consecutive=False).max_timestamp
        data = assemble_batch(
            kept,
            record_count=count,
            last_offset_delta=batch.last_offset_delta,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            base_offset=batch.base_offset,
            leader_epoch=batch.leader_epoch,
            attributes=attributes,
            codec=batch.codec,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
        )
        return Retained(data, batch.last_offset, max_timestamp, count)
