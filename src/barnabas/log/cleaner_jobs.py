"""The blocking pieces of a compaction, each run in a thread on files and objects of its own.

J1  A job never raises what went wrong with the log or the disk: it keeps it as `error` for the event loop.
J2  A job touches no object of the log: what it needs of a segment is in a `Source`.
J3  Once a millisecond it lets the event loop have the interpreter, once a megabyte it pays the throttle and
    looks whether it should stop.
"""

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.base.clock import Clock
from barnabas.base.errors import BarnabasError
from barnabas.log.cleaner_plan import GroupMember
from barnabas.log.cleaner_rewrite import BatchCleaner, plain_payload
from barnabas.log.cleaner_transactions import CleanedTransactions
from barnabas.log.errors import CorruptSegment, DiskFault
from barnabas.log.files import Files
from barnabas.log.layout import INDEX, TIME_INDEX, offset_name
from barnabas.log.offset_map import OffsetMap
from barnabas.log.scan import BatchScanner
from barnabas.log.segment import Mark, Segment
from barnabas.records.batch import RecordBatch
from barnabas.records.errors import RecordError

__all__ = [
    "CleaningStats",
    "GroupJob",
    "Job",
    "ListJob",
    "MapJob",
    "Source",
    "Stopped",
    "SyncJob",
    "Throttle",
    "Workplace",
]

_CHECK_BYTES: Final = 2**20  # how often a thread looks whether it should stop, and pays the throttle
# Once a millisecond the thread lets go of the interpreter lock for long enough that the event loop gets it;
# else the loop waits up to sys.getswitchinterval(), 5 ms, each time it wakes.
_PAUSE_S: Final = 0.00005


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


class Stopped(BarnabasError):
    """The clean was told to stop."""


@dataclass(slots=True)
class Source:
    """A sealed segment to read: what the thread needs of it, so that it never touches the log's object."""

    path: str
    start: int
    size_bytes: int
    next_base_offset: int


@dataclass(slots=True)
class Workplace:
    """What all jobs of one clean share; `stop` is set on the event loop."""

    files: Files
    clock: Clock
    throttle: Throttle
    stats: CleaningStats
    stop: threading.Event


class Job:
    """Work in a thread, on files and objects of its own."""

    def __init__(self, place: Workplace) -> None:
        self.error: BarnabasError | None = None
        self._files: Final = place.files
        self._stats: Final = place.stats
        self._throttle: Final = place.throttle
        self._stop: Final = place.stop
        self._clock: Final = place.clock
        self._unpaid = 0
        self._paused_ms = self._clock.monotonic_ms()

    def run(self) -> None:
        try:
            self._work()
        except BarnabasError as error:
            self.error = error

    def _work(self) -> None:
        raise NotImplementedError

    def _moved(self, size_bytes: int) -> None:
        """Bytes were read or written: pause for the event loop and the throttle, and stop when told to."""
        if (now_ms := self._clock.monotonic_ms()) != self._paused_ms:
            self._paused_ms = now_ms
            self._stop.wait(_PAUSE_S)
        self._unpaid += size_bytes
        if self._unpaid >= _CHECK_BYTES:
            pause_s = self._throttle.debt_s(self._unpaid)
            self._unpaid = 0
            if self._stop.wait(pause_s) if pause_s > 0.001 else self._stop.is_set():
                raise Stopped

    def _walk(self, source: Source, visit: Callable[[RecordBatch], bool]) -> None:
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


class ListJob(Job):
    """Finds out how large the indexes are, without opening any."""

    def __init__(self, place: Workplace, folder: str) -> None:
        super().__init__(place)
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


class SyncJob(Job):
    """Makes the swap durable, so that what it replaced may be removed."""

    def __init__(self, place: Workplace, folder: str) -> None:
        super().__init__(place)
        self._folder: Final = folder

    def _work(self) -> None:
        self._files.sync_folder(self._folder)


class MapJob(Job):
    """Brings the keys of one segment into the map."""

    def __init__(
        self, place: Workplace, source: Source, offsets: OffsetMap, transactions: CleanedTransactions
    ) -> None:
        super().__init__(place)
        self.full = False
        self._source: Final = source
        self._offsets: Final = offsets
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
        elif batch.last_offset >= first_dirty and not self._offsets.add(
            plain_payload(batch), batch.record_count, batch.base_offset, first_dirty
        ):
            self.full = True
            return False
        if batch.last_offset >= first_dirty:
            self._offsets.speak_up_to(batch.last_offset)
        return True


class GroupJob(Job):
    """Rewrites neighbouring segments into one."""

    def __init__(
        self,
        place: Workplace,
        sources: Sequence[Source],
        cleaned: Segment,
        cleaner: BatchCleaner,
        transactions: CleanedTransactions,
        *,
        write_bytes: int,
    ) -> None:
        super().__init__(place)
        self.cleaned: Final = cleaned
        self._sources: Final = sources
        self._cleaner: Final = cleaner
        self._transactions: Final = transactions
        self._write_bytes: Final = write_bytes
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
