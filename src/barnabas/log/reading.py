"""What can be asked of a partition's log: batches by offset, records by time, transactions, epochs.

Nothing here changes the log; `PartitionLog` does.  One caller at a time.
"""

from typing import Final, NamedTuple

from barnabas.base.buffers import FileSlice
from barnabas.log.epochs import EpochEntry
from barnabas.log.errors import OffsetOutOfRange
from barnabas.log.files import Files
from barnabas.log.loading import LoadedLog
from barnabas.log.timestamps import FoundOffset, find_largest_timestamp, find_timestamp
from barnabas.log.txn_index import AbortedTransaction

__all__ = ["ReadResult", "ReadableLog"]


class ReadResult(NamedTuple):
    """Whole batches, or none, and where to read on."""

    slice: FileSlice | None
    next_offset: int


class ReadableLog:
    """The segments of a partition, with its offsets, producers and epochs."""

    __slots__ = ("_files", "epochs", "log_end_offset", "log_start_offset", "producers", "segments")

    def __init__(self, files: Files, loaded: LoadedLog) -> None:
        self.segments: Final = loaded.segments
        self.producers = loaded.producers
        self.epochs: Final = loaded.epochs
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self._files: Final = files

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    @property
    def latest_epoch(self) -> int:
        """The last leader epoch known, or -1."""
        return self.epochs.latest_epoch

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest transaction began that is undecided, or decided by a marker that may be lost."""
        first = self.producers.first_unstable_offset
        return None if first is None else max(first, self.log_start_offset)

    def last_stable_offset(self, high_watermark: int) -> int:
        """The bound for readers of committed data, given that `high_watermark` is replicated.

        Markers below it are settled for good: the high watermark never falls within an epoch.
        """
        self.producers.replicated_to(high_watermark)
        first = self.first_unstable_offset
        return high_watermark if first is None else min(first, high_watermark)

    def segment_starts(self) -> list[int]:
        """The base offsets, oldest first; the first one raised to the log start."""
        starts = self.segments.bases
        starts[0] = max(starts[0], self.log_start_offset)
        return starts

    def read(
        self, offset: int, *, max_bytes: int, upper_bound: int | None = None, min_one_batch: bool = True
    ) -> ReadResult:
        """Whole batches from the one that holds `offset`, of one segment, all below `upper_bound`.

        `min_one_batch` gives the first batch even when it is larger than `max_bytes`.  The slice
        stays readable after truncation or deletion.  Raises OffsetOutOfRange.
        """
        end = self.log_end_offset
        if not self.log_start_offset <= offset <= end:
            raise OffsetOutOfRange(offset, self.log_start_offset, end)
        if upper_bound is not None and upper_bound < end:
            end = upper_bound
        if offset >= end or (max_bytes <= 0 and not min_one_batch):
            return ReadResult(None, offset)
        segments = self.segments
        for slot in range(segments.floor_slot(offset), len(segments)):
            segment = segments[slot]
            if segment.base_offset >= end:
                break
            found = segment.read(offset, max_bytes=max_bytes, upper_bound=end, min_one_batch=min_one_batch)
            if found is not None:
                return ReadResult(found.data, found.next_offset)
        return ReadResult(None, offset)

    def bytes_behind(self, offset: int, data: FileSlice, enough: int) -> int:
        """How many bytes lie between the beginning of `data`, read from `offset`, and the end of the log.

        Counts no further than to `enough`.
        """
        segments = self.segments
        behind = -data.position
        for slot in range(segments.floor_slot(offset), len(segments)):
            behind += segments[slot].size_bytes
            if behind >= enough:
                break
        return behind

    def aborted_transactions(self, first: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions that touch offsets [first, end), by first offset."""
        found: list[AbortedTransaction] = []
        for segment in self.segments.from_slot(self.segments.floor_slot(first)):
            if segment.txn_index.exists:
                here, complete = segment.txn_index.overlapping(first, end)
                found += here
                if complete:
                    break
        return sorted(found, key=lambda transaction: transaction.first_offset)

    def offset_for_timestamp(self, timestamp: int) -> FoundOffset | None:
        """The first record, from the log start on, that is not older than `timestamp`."""
        for segment in self.segments:
            if segment.largest.timestamp >= timestamp:
                found = find_timestamp(self._files, segment, timestamp, self.log_start_offset)
                if found is not None:
                    return found
        return None

    def max_timestamp_offset(self) -> FoundOffset | None:
        """The first record that has the largest timestamp of the log."""
        largest = max(self.segments, key=lambda segment: segment.largest.timestamp)
        return find_largest_timestamp(self._files, largest)

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        """The largest known epoch not above `epoch` and the offset behind it; (-1, -1) when there is none."""
        return self.epochs.end_offset(epoch, self.log_end_offset) or (-1, -1)

    def epoch_at(self, offset: int) -> int:
        """The leader epoch in which `offset` was written, or -1."""
        return self.epochs.epoch_at(offset)

    def epoch_entries(self) -> tuple[EpochEntry, ...]:
        return self.epochs.entries
