"""One segment: a run of record batches in one file, with its sparse indexes.

S1  base_offset <= every offset held; offsets rise strictly from batch to batch, and each fits in an
    i32 relative to base_offset.
S2  `size_bytes` counts whole batches only; what lies behind it in the file (preallocated space, the rest of
    a failed write) is never read and is overwritten by the next append.
S3  An index entry names the first byte of a batch and that batch's last offset.
S4  The tail holds the newest batches of an active segment (last offset, position), so that readers at the
    end of the log touch no index and no file but the one that is sent to them.  Readers before that find
    the batch behind their last answer in `_places`.

Owns one segment's bytes.  Knows no topic, leader, retention rule or clock.  One caller at a time; slices that
were handed out stay readable whatever happens here.
"""

import logging
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from barnabas.base.buffers import FileSlice, SharedFile
from barnabas.log.errors import CorruptSegment
from barnabas.log.files import Bytes, Files
from barnabas.log.index import OffsetIndex, OffsetPosition, TimeIndex, TimestampOffset
from barnabas.log.layout import INDEX, LOG, TIME_INDEX, TXN_INDEX, offset_name
from barnabas.log.reader_places import ReaderPlaces
from barnabas.log.scan import BatchPlace, BatchScanner, batch_at, first_batch_ending_at, walk_batches
from barnabas.log.tail import TAIL_BATCHES_MAX, Tail
from barnabas.log.txn_index import TransactionIndex
from barnabas.records.batch import RecordBatch

__all__ = ["RELATIVE_OFFSET_MAX", "Mark", "Segment", "SegmentSlice"]

_log = logging.getLogger(__name__)

RELATIVE_OFFSET_MAX: Final = 2**31 - 1


class Mark(NamedTuple):
    """One batch of an append: where it begins in the data, what it holds."""

    start: int
    last_offset: int
    max_timestamp: int


class SegmentSlice(NamedTuple):
    """Whole batches of a segment (None when the first is too large), and the offset behind them."""

    data: FileSlice | None
    next_offset: int


class Segment:
    """The files `<base offset>.log`, `.index`, `.timeindex`, `.txnindex` in `folder`, plus `suffix`.

    `size_bytes` is what the caller knows of the file: 0 for a new one.  `next_offset` is the offset behind
    the last batch, -1 when not known yet.  Nothing is opened until it is needed.
    """

    __slots__ = (
        "_bytes_since_index",
        "_cold_file",
        "_file",
        "_files",
        "_first_timestamp",
        "_largest",
        "_mended",
        "_next_offset",
        "_places",
        "_tail",
        "base_offset",
        "folder",
        "index_interval_bytes",
        "offset_index",
        "preallocated_bytes",
        "size_bytes",
        "suffix",
        "time_index",
        "txn_index",
    )

    def __init__(
        self,
        files: Files,
        folder: str,
        base_offset: int,
        *,
        size_bytes: int = 0,
        next_offset: int = -1,
        index_interval_bytes: int = 4096,
        has_txn_index: bool = False,
        suffix: str = "",
    ) -> None:
        stem = f"{folder}/{offset_name(base_offset)}"
        self.base_offset: Final = base_offset
        self.folder = folder
        self.suffix = suffix
        self.size_bytes = size_bytes
        self.index_interval_bytes = index_interval_bytes
        self.preallocated_bytes = 0
        self.offset_index = OffsetIndex(files, stem + INDEX + suffix, base_offset)
        self.time_index = TimeIndex(files, stem + TIME_INDEX + suffix, base_offset)
        self.txn_index = TransactionIndex(files, stem + TXN_INDEX + suffix, base_offset, exists=has_txn_index)
        self._files: Final = files
        self._file: SharedFile | None = None  # while it is appended to
        self._cold_file: weakref.ref[SharedFile] | None = None
        self._next_offset = base_offset if size_bytes == 0 else next_offset
        self._largest: TimestampOffset | None = TimestampOffset(-1, base_offset) if size_bytes == 0 else None
        self._first_timestamp: int | None = None
        self._bytes_since_index = 0
        self._mended = False
        self._places = ReaderPlaces()
        self._tail = Tail()

    def __repr__(self) -> str:
        return f"Segment({self.path!r}, size_bytes={self.size_bytes})"

    # -- files ---------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        return f"{self.folder}/{offset_name(self.base_offset)}{LOG}{self.suffix}"

    @property
    def paths(self) -> list[str]:
        """Every file the segment may have."""
        return [self.path, self.offset_index.path, self.time_index.path, self.txn_index.path]

    @property
    def file(self) -> SharedFile:
        """The open log file; the segment itself holds on to it only while it is appended to."""
        if self._file is not None:
            return self._file
        file = self._cold_file() if self._cold_file is not None else None
        if file is None:
            file = self._files.open(self.path)
            self._cold_file = weakref.ref(file)
            self._files.remember(file)
        return file

    def create(self, preallocate_bytes: int = 0) -> None:
        """Make the files of a new segment; whatever such files held is dropped."""
        self._file = self._files.open(self.path, create=True)
        self._files.truncate(self._file, 0)
        if preallocate_bytes:
            self._files.allocate(self._file, preallocate_bytes)
            self.preallocated_bytes = preallocate_bytes
        self.offset_index.reset()
        self.time_index.reset()
        self._files.remove(self.txn_index.path)

    def release(self) -> None:
        """Let go of file descriptors, mappings and what readers left; the next use opens them again.

        Everything in memory is in the files then (not necessarily on disk).
        """
        self._next_offset = self.next_offset  # cheap now, a scan later
        self.offset_index.release()
        self.time_index.release()
        self.txn_index.release()
        self._close_file()
        self._places.clear()
        self._tail.clear()

    def _close_file(self) -> None:
        if self._cold_file is not None and (file := self._cold_file()) is not None:
            self._files.drop(file)
        self._file = self._cold_file = None

    def seal(self) -> None:
        """Turn an active segment into a finished one: complete time index, exact file size."""
        if self.size_bytes:
            largest = self.largest
            self.time_index.append(largest.timestamp, largest.offset)
        self.offset_index.write_out()
        self.time_index.write_out()
        self.txn_index.write_out()
        if self.preallocated_bytes:
            self._files.truncate(self.file, self.size_bytes)
            self.preallocated_bytes = 0
        self._file = None

    def files_to_sync(self, *, indexes: bool = True) -> list[SharedFile]:
        """The files to sync so that all appended so far is durable; indexes are written out first."""
        if not indexes:
            return [self.file]
        files = [self.file, self.offset_index.synced_file(), self.time_index.synced_file()]
        if (aborted := self.txn_index.synced_file()) is not None:
            files.append(aborted)
        return files

    def rename(self, suffix: str) -> None:
        """Give all files another last suffix, the log first: it is the one whose presence counts."""
        old = self.paths
        had_txn_index = self.txn_index.exists
        self.release()
        self.suffix = suffix
        stem = f"{self.folder}/{offset_name(self.base_offset)}"
        self.offset_index.moved(stem + INDEX + suffix)
        self.time_index.moved(stem + TIME_INDEX + suffix)
        self.txn_index.moved(stem + TXN_INDEX + suffix)
        for before, after in zip(old, self.paths, strict=True):
            if after != self.txn_index.path or had_txn_index:
                self._files.rename(before, after)

    def remove_files(self) -> None:
        """Delete the files; slices that are out keep their bytes."""
        self._close_file()
        for path in self.paths:
            self._files.remove(path)

    # -- appending -----------------------------------------------------------------------------

    def append(self, data: Bytes, marks: Sequence[tuple[int, int, int]]) -> None:
        """Write whole batches at the end, in one call; a `Mark` or a plain tuple like it describes each.

        Raises DiskFault with nothing changed.
        """
        position = self.size_bytes
        size = len(data)
        interval = self.index_interval_bytes
        file = self._file = self._file or self.file
        if self._bytes_since_index + size > interval:
            self.offset_index.make_room()
            self.time_index.make_room()
        if position + size <= self.preallocated_bytes:
            self._files.overwrite(file, position, (data,))
        else:
            self._files.append(file, position, (data,))
        if position == 0:
            self._first_timestamp = marks[0][2]
        largest = self._largest or self.largest
        self.size_bytes = position + size
        waiting = self._bytes_since_index
        tail = self._tail
        last_offset = before = 0
        for start, last_offset, max_timestamp in marks:
            if max_timestamp > largest.timestamp:
                largest = self._largest = TimestampOffset(max_timestamp, last_offset)
            waiting += start - before
            before = start
            if waiting > interval:
                self.offset_index.append(last_offset, position + start)
                self.time_index.append(largest.timestamp, largest.offset)
                waiting = 0
            tail.lasts.append(last_offset)
            tail.positions.append(position + start)
        self._bytes_since_index = waiting + size - before
        self._next_offset = last_offset + 1
        if len(tail.lasts) > TAIL_BATCHES_MAX:
            tail.trim()

    def can_hold(self, offset: int) -> bool:
        """Whether `offset` is small enough for the indexes (S1)."""
        return offset - self.base_offset <= RELATIVE_OFFSET_MAX

    # -- what it holds -------------------------------------------------------------------------

    @property
    def next_offset(self) -> int:
        """The offset behind the last batch; found by a walk from the last index entry when not known."""
        if self._next_offset < 0:
            try:
                self._next_offset = self._walk_to_end()
            except CorruptSegment:
                self._mend_indexes()
                self._next_offset = self._walk_to_end()
        return self._next_offset

    def _walk_to_end(self) -> int:
        next_offset = self.base_offset
        if self.size_bytes:
            for place in self._walk_from(self.offset_index.last()):
                next_offset = place.last_offset + 1
        return next_offset

    @property
    def largest(self) -> TimestampOffset:
        """The largest timestamp and the last offset of the first batch that has it; (-1, base) when none."""
        if self._largest is None:
            self._largest = self.time_index.last()
        return self._largest

    @property
    def first_timestamp(self) -> int | None:
        """The largest timestamp of the first batch, by which a segment ages; None while empty."""
        if self._first_timestamp is None and self.size_bytes:
            self._first_timestamp = self.batch_at(0).max_timestamp
        return self._first_timestamp

    # -- finding -------------------------------------------------------------------------------

    def batch_at(self, position: int) -> BatchPlace:
        """The batch that begins at `position`.  Raises CorruptSegment unless one does."""
        if not 0 <= position < self.size_bytes:
            raise CorruptSegment(self.path, position, f"is not within its {self.size_bytes} bytes")
        return batch_at(self._files, self.file, position, self.size_bytes)

    def walk(self, position: int) -> Iterator[BatchPlace]:
        """The batches from boundary `position` on, by their headers, read in small pieces.

        Raises CorruptSegment where the chain of lengths breaks.
        """
        return walk_batches(self._files, self.file, position, self.size_bytes)

    def locate(self, offset: int) -> int:
        """The position of the first batch whose last offset is not below `offset`, or -1."""
        found = self._find(offset)
        return -1 if found is None else found[0]

    def _find(self, offset: int) -> tuple[int, int, int] | None:
        """(position, end, last offset) of the first batch that ends with `offset` or behind it."""
        if offset >= self.next_offset or not self.size_bytes:  # compaction may leave nothing of a segment
            return None
        tail = self._tail
        if (slot := tail.find(offset)) >= 0:
            positions = tail.positions
            end = positions[slot + 1] if slot + 1 < len(positions) else self.size_bytes
            return positions[slot], end, tail.lasts[slot]
        if (place := self._places.find(offset)) is not None:
            return place
        try:
            return self._find_by_index(offset)
        except CorruptSegment:
            self._mend_indexes()
            return self._find_by_index(offset)

    def _find_by_index(self, offset: int) -> tuple[int, int, int]:
        entry = self.offset_index.floor(offset)
        found = first_batch_ending_at(
            self._files, self.file, entry.position, self.size_bytes, offset, _promised(entry)
        )
        if found is None:  # there is one: `offset` is below `next_offset`
            raise CorruptSegment(self.path, entry.position, f"no batch from here on ends behind {offset}")
        return found

    def _walk_from(self, entry: OffsetPosition) -> Iterator[BatchPlace]:
        """Like `walk` from an index entry, which must keep what S3 promises."""
        if entry.position >= self.size_bytes:
            raise CorruptSegment(
                self.path, entry.position, f"the index goes on behind {self.size_bytes} bytes"
            )
        return walk_batches(self._files, self.file, entry.position, self.size_bytes, _promised(entry))

    def _mend_indexes(self) -> None:
        """An index led astray: make the indexes anew, once.

        Raises CorruptSegment when it is the segment that is damaged.
        """
        size_bytes, next_offset = self.size_bytes, self._next_offset
        if self._mended:
            return
        self._mended = True
        _log.warning("%s: an index does not fit; the indexes are rebuilt", self.path)
        fault = self.rebuild(lambda batch: None, keep_txn_index=True)
        if fault is not None:
            position, self.size_bytes = self.size_bytes, size_bytes
            self._next_offset = next_offset
            raise CorruptSegment(self.path, position, fault)
        for file in self.files_to_sync():
            self._files.sync(file)

    def read(
        self, offset: int, *, max_bytes: int, upper_bound: int, min_one_batch: bool
    ) -> SegmentSlice | None:
        """Whole batches from the one that holds `offset`, all below `upper_bound`, in `max_bytes`.

        With `min_one_batch` the first batch comes even when it is larger.  None when the segment has
        no batch that ends at `offset` or behind it.
        """
        if (found := self._find(offset)) is None:
            return None
        start, first_end, last_offset = found
        if last_offset >= upper_bound or (first_end - start > max_bytes and not min_one_batch):
            return SegmentSlice(None, offset)
        end = self.size_bytes if upper_bound >= self.next_offset else self.locate(upper_bound)
        if first_end - start >= max_bytes:
            end, next_offset = first_end, last_offset + 1
        elif end - start > max_bytes:
            end, next_offset = self._boundary(start, first_end, start + max_bytes)
        else:
            next_offset = min(self._offset_at(end), upper_bound)  # which may lie in a gap
        return SegmentSlice(FileSlice(self.file, start, end - start), next_offset)

    def _boundary(self, start: int, first_end: int, position: int) -> tuple[int, int]:
        """The last batch boundary not behind `position`, with the first offset that may be found there.

        `position` is behind the batch from `start` to `first_end`, and inside the segment.
        """
        if (boundary := self._tail.boundary(position)) >= 0:
            return boundary, self._offset_at(boundary)
        try:
            if position - first_end < first_end - start:  # no room for another batch like the first
                place = self.batch_at(first_end)
                if first_end + place.size_bytes > position:
                    self._places.note(place)
                    return first_end, place.base_offset
            return self._boundary_by_index(first_end, position)
        except CorruptSegment:
            self._mend_indexes()
            return self._boundary_by_index(first_end, position)

    def _boundary_by_index(self, start: int, position: int) -> tuple[int, int]:
        entry = self.offset_index.floor_position(position)
        places = self.walk(start) if entry is None or entry.position <= start else self._walk_from(entry)
        # The batch that reaches beyond `position` begins at the boundary, and a reader who goes on wants it.
        place = next(place for place in places if place.position + place.size_bytes > position)
        self._places.note(place)
        return place.position, place.base_offset

    def _offset_at(self, position: int) -> int:
        """The first offset that may be found at batch boundary `position` or behind it."""
        if position >= self.size_bytes:
            return self.next_offset
        if (before := self._tail.offset_before(position)) >= 0:
            return before + 1
        place = self.batch_at(position)
        self._places.note(place)
        return place.base_offset

    # -- cutting -------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that holds `offset` or anything above, durably; a straddling one goes whole."""
        position = self.locate(offset)
        if position < 0:
            return
        boundary = self.batch_at(position).base_offset
        self.offset_index.truncate_to(boundary)
        self.time_index.truncate_to(boundary)
        self.txn_index.truncate_to(boundary)
        self._files.truncate(self.file, position)
        self._files.sync(self.file)
        self.preallocated_bytes = 0
        self.size_bytes = position
        self._places.clear()
        self._tail.cut(position)
        self._bytes_since_index = 0
        self._next_offset = -1
        self._next_offset = self._walk_to_end()
        self._largest = self._scan_largest()
        if position == 0:
            self._first_timestamp = None

    def rebuild(self, visit: Callable[[RecordBatch], None], *, keep_txn_index: bool = False) -> str | None:
        """Read every byte, make the indexes anew, and hand each sound batch to `visit`.

        Stops at the first batch that does not hold: `size_bytes` then ends before it, and what is wrong
        is returned.  The file itself is left as it is; `trim` cuts it.  The index of aborted transactions
        is emptied, for `visit` to fill, unless it is to be kept.
        """
        self._places.clear()
        self.offset_index.reset()
        self.time_index.reset()
        if not keep_txn_index:
            self.txn_index.reset()
        largest = TimestampOffset(-1, self.base_offset)
        next_offset, indexed, interval = self.base_offset, 0, self.index_interval_bytes
        self._first_timestamp, fault = None, None
        scanner = BatchScanner(self._files, self.file, 0, self.size_bytes)
        for batch in scanner:
            position, last_offset = scanner.position, batch.last_offset
            if batch.base_offset < next_offset or not self.can_hold(last_offset):
                fault = f"offsets {batch.base_offset} to {last_offset} do not follow {next_offset - 1}"
                break
            if batch.max_timestamp > largest.timestamp:
                largest = TimestampOffset(batch.max_timestamp, last_offset)
            if position - indexed > interval:
                self.offset_index.append(last_offset, position)
                self.time_index.append(largest.timestamp, largest.offset)
                indexed = position
            visit(batch)
            next_offset = last_offset + 1
        self.time_index.append(largest.timestamp, largest.offset)
        self.offset_index.write_out()
        self.time_index.write_out()
        self.size_bytes = scanner.position
        self._next_offset, self._largest = next_offset, largest
        self._bytes_since_index = scanner.position - indexed
        return fault or scanner.fault

    def trim(self) -> None:
        """Cut the file to `size_bytes`."""
        self._files.truncate(self.file, self.size_bytes)

    def _scan_largest(self) -> TimestampOffset:
        largest = self.time_index.last()
        if self.size_bytes:
            for place in self.walk(self.offset_index.floor(largest.offset).position):
                if place.max_timestamp > largest.timestamp:
                    largest = TimestampOffset(place.max_timestamp, place.last_offset)
        return largest


def _promised(entry: OffsetPosition) -> int | None:
    """What S3 promises of the batch at an entry's position; the segment's beginning promises nothing."""
    return entry.offset if entry.position else None
