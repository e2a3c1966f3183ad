"""One compaction of one log: learn the last offset of each dirty key, rewrite the segments, swap them in.

N1  Rewriting reads sealed segments and writes files of its own, in a thread; it touches nothing of the log.
    Only the swap, a few renames without a sync, happens on the event loop.  Appends and reads go on.
N2  A swap happens only if the log still has the very segments that were rewritten, uncut.  So truncation,
    retention and deletion need not wait for a clean: it finds out and gives up.
N3  Files go from `.cleaned` (worthless) to `.swap` (complete and synced) to their names; a crash at any point
    leaves the originals or the result.  Recovery is in `loading`.
N4  The first dirty offset moves only after all groups are swapped in; a clean that is cut short is repeated.

`steps` is driven by the caller: it yields blocking work to be run in a thread, and goes on, on the event
loop, when that is done.  What goes wrong in a thread is dealt with there, in the next step.
"""

import contextlib
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from barnabas.base.clock import Clock
from barnabas.base.errors import BarnabasError
from barnabas.log.cleaner_plan import GroupMember, group_segments
from barnabas.log.cleaner_rewrite import BatchCleaner, LastRecord, keyed_rows
from barnabas.log.cleaner_transactions import CleanedTransactions
from barnabas.log.errors import CorruptSegment, DiskFault, DiskFull
from barnabas.log.files import Files
from barnabas.log.layout import CLEANED, INDEX, TIME_INDEX, offset_name
from barnabas.log.offset_map import OffsetMap
from barnabas.log.partition_log import PartitionLog
from barnabas.log.scan import BatchScanner
from barnabas.log.segment import Mark, Segment
from barnabas.records.batch import RecordBatch
from barnabas.records.errors import RecordError

__all__ = ["Cleaning", "CleaningStats", "Outcome", "Steps", "Throttle", "run_steps"]

Steps = Generator[Callable[[], None], None, None]
"""Blocking work to be run in a thread; go on when it is done, close to give up."""

_CHECK_BYTES: Final = 2**20  # how often a thread looks whether it should stop, and pays the throttle


class Outcome(Enum):
    """How a clean ended."""

    CLEANED = "cleaned"
    ABORTED = "aborted: the log changed or went away"
    UNCLEANABLE = "uncleanable"


@dataclass(slots=True)
class CleaningStats:
    """What one clean read, kept and wrote."""

    first_dirty_offset: int
    end_offset: int
    """The first dirty offset afterwards."""
    map_bytes_read: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0
    segments_before: int = 0
    segments_after: int = 0
    map_utilization: float = 0.0
    elapsed_ms: int = 0


class Throttle:
    """Holds reading and writing together to `bytes_per_second`, over all cleans of a broker."""

    __slots__ = ("_clock", "_free_at_ms", "_lock", "bytes_per_second")

    def __init__(self, clock: Clock, bytes_per_second: float) -> None:
        self.bytes_per_second = bytes_per_second
        self._clock: Final = clock
        self._free_at_ms = 0.0
        self._lock: Final = threading.Lock()

    def debt_s(self, size_bytes: int) -> float:
        """Note that `size_bytes` were moved; how long the caller must pause for it now."""
        with self._lock:
            now_ms = self._clock.monotonic_ms()
            cost_ms = size_bytes * 1000 / self.bytes_per_second if self.bytes_per_second > 0 else 0.0
            self._free_at_ms = max(self._free_at_ms, now_ms) + cost_ms
            return (self._free_at_ms - now_ms) / 1000


class _Stopped(BarnabasError):
    """The clean was told to stop."""


@dataclass(slots=True)
class _Source:
    """A sealed segment to read: what the thread needs of it, so that it never touches the log's object."""

    path: str
    start: int
    size_bytes: int
    next_base_offset: int


def run_steps(steps: Steps) -> None:
    """Run all the work here and now; a broker runs each piece in a thread instead."""
    with contextlib.closing(steps):
        for work in steps:
            work()


class Cleaning:
    """A clean of `log` from `first_dirty_offset` to `first_uncleanable_offset`, a segment boundary.

    `outcome` is set once `steps` ends.  A DiskFault ends it by raising: the folder is not to be trusted.
    """

    def __init__(
        self,
        files: Files,
        clock: Clock,
        log: PartitionLog,
        *,
        first_dirty_offset: int,
        first_uncleanable_offset: int,
        dedupe_buffer_bytes: int,
        load_factor: float,
        io_buffer_bytes: int,
        throttle: Throttle,
    ) -> None:
        self.log: Final = log
        self.outcome: Outcome | None = None
        self.reason: BarnabasError | None = None
        """Why the log cannot be cleaned, or that there was no room for the result."""
        self.stats = CleaningStats(first_dirty_offset, first_dirty_offset)
        self._files: Final = files
        self._clock: Final = clock
        self._first_uncleanable: Final = first_uncleanable_offset
        self._io_buffer_bytes: Final = max(io_buffer_bytes, 4096)
        self._throttle: Final = throttle
        self._stop: Final = threading.Event()
        self._now_ms: Final = clock.now_ms()
        self._offsets: Final = OffsetMap(
            dedupe_buffer_bytes,
            load_factor=load_factor,
            keys_expected=first_uncleanable_offset - first_dirty_offset,
        )

    def abort(self) -> None:
        """Stop as soon as possible: no swap happens after this call."""
        self._stop.set()

    def steps(self) -> Steps:
        """Blocking pieces of work, in turn."""
        began_ms = self._clock.monotonic_ms()
        try:
            yield from self._build_map()
            yield from self._rewrite()
            self.outcome = Outcome.CLEANED
        except _Stopped:
            self.outcome = Outcome.ABORTED
        except CorruptSegment as error:
            self.outcome, self.reason = Outcome.UNCLEANABLE, error
        except GeneratorExit:
            self.abort()
            self.outcome = Outcome.ABORTED
            raise
        finally:
            self.stats.elapsed_ms = self._clock.monotonic_ms() - began_ms

    # -- the map -------------------------------------------------------------------------------

    def _build_map(self) -> Steps:
        log, first_dirty = self.log, self.stats.first_dirty_offset
        transactions = CleanedTransactions()
        transactions.expect(log.aborted_transactions(first_dirty, self._first_uncleanable))
        slot = log.segments.floor_slot(first_dirty)
        dirty = [s for s in log.segments.from_slot(slot) if s.base_offset < self._first_uncleanable]
        for segment in dirty:
            source = self._source(segment, first_dirty)
            job = _MapJob(self, source, transactions)
            yield job.run
            self._go_on(job, [segment], [source])
            if job.full:
                break
        self.stats.map_utilization = self._offsets.utilization

    def _source(self, segment: Segment, first_offset: int = 0) -> _Source:
        inside = first_offset > segment.base_offset
        return _Source(
            segment.path,
            segment.offset_index.floor(first_offset).position if inside else 0,
            segment.size_bytes,
            # There is one: the active segment is never cleaned.
            self.log.segments[self.log.segments.floor_slot(segment.base_offset) + 1].base_offset,
        )

    def _go_on(self, job: "_Job", segments: Sequence[Segment], sources: Sequence[_Source]) -> None:
        """Raise what ended the job, or `_Stopped` when its segments are not what they were (N2)."""
        held = set(map(id, self.log.segments))
        unchanged = all(
            id(segment) in held and segment.path == source.path and segment.size_bytes == source.size_bytes
            for segment, source in zip(segments, sources, strict=True)
        )
        if not unchanged or self._stop.is_set():
            raise _Stopped
        if isinstance(job.error, DiskFull):
            self.reason = job.error  # the log is whole; there will be room another time
            raise _Stopped
        if job.error is not None:
            raise job.error

    # -- the rewriting -------------------------------------------------------------------------

    def _rewrite(self) -> Steps:
        log, config = self.log, self.log.config
        end_offset = self._offsets.latest_offset + 1
        segments = [segment for segment in log.segments if segment.base_offset < end_offset]
        by_base = {segment.base_offset: segment for segment in segments}
        listing = _ListJob(self, log.folder)
        yield listing.run
        self._go_on(listing, (), ())
        groups = group_segments(
            [listing.member(segment) for segment in segments],
            segment_bytes=config.segment_bytes,
            index_bytes=config.segment_index_bytes,
            end_offset=self._first_uncleanable,
        )
        transactions = CleanedTransactions()
        for group in groups:
            old = [by_base[member.base_offset] for member in group]
            sources = [self._source(segment) for segment in old]
            transactions.expect(log.aborted_transactions(old[0].base_offset, sources[-1].next_base_offset))
            job = _GroupJob(
                self, sources, self._cleaned_segment(old[0]), self._cleaner(transactions), transactions
            )
            try:
                yield job.run
                self._go_on(job, old, sources)
            except BaseException:
                job.discard()
                raise
            log.replace_segments([job.cleaned], old, now_ms=self._clock.now_ms())
            self.stats.segments_before += len(old)
            self.stats.segments_after += 1
            sync = _SyncJob(self, log.folder)
            yield sync.run
            if sync.error is not None and not self._stop.is_set():
                raise sync.error
        self.stats.end_offset = max(end_offset, self.stats.first_dirty_offset)

    def _cleaned_segment(self, first: Segment) -> Segment:
        return Segment(
            self._files,
            self.log.folder,
            first.base_offset,
            index_interval_bytes=self.log.config.index_interval_bytes,
            suffix=CLEANED,
        )

    def _cleaner(self, transactions: CleanedTransactions) -> BatchCleaner:
        return BatchCleaner(
            self._offsets,
            transactions,
            now_ms=self._now_ms,
            delete_retention_ms=self.log.config.delete_retention_ms,
            last_records={
                producer_id: LastRecord(entry.last_offset if entry.batches else None, entry.epoch)
                for producer_id, entry in self.log.producers.producers.items()
            },
            end_offset=self._first_uncleanable,
        )


class _Job:
    """Work in a thread, on files and objects of its own."""

    def __init__(self, cleaning: Cleaning) -> None:
        self.error: BarnabasError | None = None
        self._files: Final = cleaning._files
        self._stats: Final = cleaning.stats
        self._offsets: Final = cleaning._offsets
        self._throttle: Final = cleaning._throttle
        self._stop: Final = cleaning._stop
        self._unpaid = 0

    def run(self) -> None:
        try:
            self._work()
        except BarnabasError as error:
            self.error = error

    def _work(self) -> None:
        raise NotImplementedError

    def _moved(self, size_bytes: int) -> None:
        """Bytes were read or written: now and then pause for the throttle, and stop when told to."""
        self._unpaid += size_bytes
        if self._unpaid >= _CHECK_BYTES:
            pause_s = self._throttle.debt_s(self._unpaid)
            self._unpaid = 0
            if self._stop.wait(pause_s) if pause_s > 0.001 else self._stop.is_set():
                raise _Stopped

    def _walk(self, source: _Source, visit: Callable[[RecordBatch], bool]) -> None:
        """Show every batch, its CRC checked, until `visit` says False.  Raises CorruptSegment."""
        file = self._files.open(source.path)
        scanner = BatchScanner(self._files, file, source.start, source.size_bytes, cold=True)
        for batch in scanner:
            self._moved(batch.size_bytes)
            try:
                if not visit(batch):
                    return
            except RecordError as error:
                raise CorruptSegment(source.path, scanner.position, str(error)) from error
        if scanner.fault is not None:
            raise CorruptSegment(source.path, scanner.position, scanner.fault)


class _ListJob(_Job):
    """Finds out how large the indexes are, without opening any."""

    def __init__(self, cleaning: Cleaning, folder: str) -> None:
        super().__init__(cleaning)
        self._folder: Final = folder
        self._sizes: dict[str, int] = {}

    def _work(self) -> None:
        self._sizes = {info.name: info.size_bytes for info in self._files.list(self._folder)}

    def member(self, segment: Segment) -> GroupMember:
        stem = offset_name(segment.base_offset)
        return GroupMember(
            segment.base_offset,
            segment.size_bytes,
            self._sizes.get(stem + INDEX, 0),
            self._sizes.get(stem + TIME_INDEX, 0),
        )


class _SyncJob(_Job):
    """Makes the swap durable, so that what it replaced may be removed."""

    def __init__(self, cleaning: Cleaning, folder: str) -> None:
        super().__init__(cleaning)
        self._folder: Final = folder

    def _work(self) -> None:
        self._files.sync_folder(self._folder)


class _MapJob(_Job):
    """Brings the keys of one segment into the map."""

    def __init__(self, cleaning: Cleaning, source: _Source, transactions: CleanedTransactions) -> None:
        super().__init__(cleaning)
        self.full = False
        self._source: Final = source
        self._transactions: Final = transactions

    def _work(self) -> None:
        self._walk(self._source, self._learn)
        if not self.full:
            self._offsets.speak_up_to(self._source.next_base_offset - 1)

    def _learn(self, batch: RecordBatch) -> bool:
        first_dirty = self._stats.first_dirty_offset
        self._stats.map_bytes_read += batch.size_bytes
        if batch.is_control:
            self._transactions.marker(batch)
        elif self._transactions.data(batch) or not batch.record_count:
            pass  # aborted or empty: nothing that replaces anything
        elif batch.last_offset >= first_dirty and not self._offsets.add(keyed_rows(batch), first_dirty):
            self.full = True
            return False
        if batch.last_offset >= first_dirty:
            self._offsets.speak_up_to(batch.last_offset)
        return True


class _GroupJob(_Job):
    """Rewrites neighbouring segments into one."""

    def __init__(
        self,
        cleaning: Cleaning,
        sources: Sequence[_Source],
        cleaned: Segment,
        cleaner: BatchCleaner,
        transactions: CleanedTransactions,
    ) -> None:
        super().__init__(cleaning)
        self.cleaned: Final = cleaned
        self._sources: Final = sources
        self._cleaner: Final = cleaner
        self._transactions: Final = transactions
        self._write_bytes: Final = cleaning._io_buffer_bytes
        self._output = bytearray()
        self._marks: list[Mark] = []

    def _work(self) -> None:
        cleaned = self.cleaned
        cleaned.create()
        for source in self._sources:
            self._walk(source, self._copy)
        self._write_out()
        for transaction in sorted(self._transactions.take_retained(), key=lambda each: each.last_offset):
            cleaned.txn_index.append(transaction)
        cleaned.seal()
        for file in cleaned.files_to_sync():
            self._files.sync(file)
        self._files.forget(cleaned.file, 0, cleaned.size_bytes)  # as cold as what it replaces

    def _copy(self, batch: RecordBatch) -> bool:
        stats = self._stats
        stats.bytes_read += batch.size_bytes
        stats.records_read += batch.record_count
        retained = self._cleaner.clean(batch)
        if retained is not None:
            self._marks.append(Mark(len(self._output), retained.last_offset, retained.max_timestamp))
            self._output += retained.data
            stats.records_written += retained.record_count
            if len(self._output) >= self._write_bytes:
                self._write_out()
        return True

    def _write_out(self) -> None:
        if self._marks:
            self.cleaned.append(self._output, self._marks)
            self._stats.bytes_written += len(self._output)
            self._moved(len(self._output))
            self._output.clear()
            self._marks.clear()

    def discard(self) -> None:
        """Remove what was written, as far as the disk lets us; a restart removes the rest."""
        with contextlib.suppress(DiskFault):
            self.cleaned.remove_files()
