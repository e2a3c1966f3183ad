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
from collections.abc import Callable, Generator
from enum import Enum
from typing import Final

from barnabas.base.clock import Clock
from barnabas.base.errors import BarnabasError
from barnabas.log.cleaner_jobs import (
    CleaningStats,
    GroupJob,
    Job,
    ListJob,
    MapJob,
    Source,
    Stopped,
    SyncJob,
    Throttle,
    Workplace,
)
from barnabas.log.cleaner_plan import group_segments
from barnabas.log.cleaner_rewrite import BatchCleaner, LastRecord
from barnabas.log.cleaner_transactions import CleanedTransactions
from barnabas.log.errors import CorruptSegment, DiskFull
from barnabas.log.files import Files
from barnabas.log.layout import CLEANED
from barnabas.log.offset_map import OffsetMap
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segment import Segment

__all__ = ["Cleaning", "Outcome", "Steps", "run_steps"]

Steps = Generator[Callable[[], None], None, None]
"""Blocking work to be run in a thread; go on when it is done, close to give up."""


class Outcome(Enum):
    """How a clean ended."""

    CLEANED = "cleaned"
    ABORTED = "aborted: the log changed or went away"
    UNCLEANABLE = "uncleanable"


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
        self._stop: Final = threading.Event()
        self._place: Final = Workplace(files, clock, throttle, self.stats, self._stop)
        self._now_ms: Final = clock.now_ms()
        self._pending = [
            (segment, segment.path, segment.size_bytes)
            for segment in log.segments
            if segment.base_offset < first_uncleanable_offset
        ]
        self._dedupe_buffer_bytes: Final = dedupe_buffer_bytes
        self._load_factor: Final = load_factor
        self._offsets: OffsetMap  # made in the first step: that many bytes take their time

    def abort(self) -> None:
        """Stop as soon as possible: no swap happens after this call."""
        self._stop.set()

    def steps(self) -> Steps:
        """Blocking pieces of work, in turn."""
        began_ms = self._clock.monotonic_ms()
        try:
            yield self._make_map
            self._check_unchanged()
            yield from self._build_map()
            yield from self._rewrite()
            self.outcome = Outcome.CLEANED
        except Stopped:
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

    def _make_map(self) -> None:
        self._offsets = OffsetMap(
            self._dedupe_buffer_bytes,
            load_factor=self._load_factor,
            keys_expected=self._first_uncleanable - self.stats.first_dirty_offset,
        )

    def _build_map(self) -> Steps:
        log, first_dirty = self.log, self.stats.first_dirty_offset
        transactions = CleanedTransactions()
        transactions.expect(log.aborted_transactions(first_dirty, self._first_uncleanable))
        slot = log.segments.floor_slot(first_dirty)
        dirty = [s for s in log.segments.from_slot(slot) if s.base_offset < self._first_uncleanable]
        for segment in dirty:
            source = self._source(segment, first_dirty)
            job = MapJob(self._place, source, self._offsets, transactions)
            yield job.run
            self._go_on(job)
            if job.full:
                break
        self.stats.map_utilization = self._offsets.utilization

    def _source(self, segment: Segment, first_offset: int = 0) -> Source:
        inside = first_offset > segment.base_offset
        return Source(
            segment.path,
            segment.offset_index.floor(first_offset).position if inside else 0,
            segment.size_bytes,
            # There is one: the active segment is never cleaned.
            self.log.segments[self.log.segments.floor_slot(segment.base_offset) + 1].base_offset,
        )

    def _check_unchanged(self) -> None:
        """Raise `Stopped` when told to, or when a segment still to be cleaned is not what it was (N2)."""
        held = set(map(id, self.log.segments.from_slot(0)[:-1]))
        unchanged = all(
            id(segment) in held and segment.path == path and segment.size_bytes == size_bytes
            for segment, path, size_bytes in self._pending
        )
        if not unchanged or self._stop.is_set():
            raise Stopped

    def _go_on(self, job: Job) -> None:
        """Raise what ended the job, unless there is no point in going on anyway."""
        self._check_unchanged()
        if isinstance(job.error, DiskFull):
            self.reason = job.error  # the log is whole; there will be room another time
            raise Stopped
        if job.error is not None:
            raise job.error

    # -- the rewriting -------------------------------------------------------------------------

    def _rewrite(self) -> Steps:
        log, config = self.log, self.log.config
        end_offset = self._offsets.latest_offset + 1
        segments = [segment for segment in log.segments if segment.base_offset < end_offset]
        by_base = {segment.base_offset: segment for segment in segments}
        listing = ListJob(self._place, log.folder)
        yield listing.run
        self._go_on(listing)
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
            job = GroupJob(
                self._place,
                sources,
                self._cleaned_segment(old[0]),
                self._cleaner(transactions),
                transactions,
                write_bytes=self._io_buffer_bytes,
            )
            try:
                yield job.run
                self._go_on(job)
            except BaseException:
                job.discard()
                raise
            log.replace_segments([job.cleaned], old, now_ms=self._clock.now_ms())
            self._pending = [each for each in self._pending if each[0] not in old]
            self.stats.segments_before += len(old)
            self.stats.segments_after += 1
            sync = SyncJob(self._place, log.folder)
            yield sync.run
            self._go_on(sync)
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
