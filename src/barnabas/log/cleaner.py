"""Which log is compacted next, and what is known about each: the cleaner of a broker.

K1  A log is cleaned by one clean at a time; several logs may be cleaned at once, each with its share of the
    memory for keys (`log.cleaner.threads`).
K2  The first dirty offset of a log is in the `cleaner-offset-checkpoint` of its data folder, written when a
    clean has ended and not synced: losing it costs a repeated clean, no more.
K3  A log that cannot be cleaned (damaged data) is reported once, left alone, and does not hold up the others.

How a broker drives it, on its event loop:

    if (cleaning := cleaner.pick()) is not None:
        with contextlib.closing(cleaner.clean(cleaning)) as steps:
            for work in steps:
                await asyncio.to_thread(work)

`abort` before a log is deleted or closed; `truncated` after it was truncated.
All methods are for one caller; only the yielded work runs in threads.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.base.clock import Clock
from barnabas.base.config import Settings
from barnabas.base.types import TopicPartition
from barnabas.log.checkpoints import read_offsets, write_offsets
from barnabas.log.cleaner_jobs import CleaningStats, Throttle
from barnabas.log.cleaner_plan import (
    CleanableRange,
    Dirt,
    cleanable_range,
    compaction_delay_ms,
    measure_dirt,
    segments_from,
)
from barnabas.log.cleaner_run import Cleaning, Outcome, Steps, run_steps
from barnabas.log.errors import CorruptCheckpoint
from barnabas.log.files import Files
from barnabas.log.layout import CLEANER_OFFSETS
from barnabas.log.partition_log import PartitionLog
from barnabas.log.retention import SegmentFacts, summarize

__all__ = ["Cleaner", "CleanerSettings", "CleanerState"]

_log = logging.getLogger(__name__)
_NO_LAG_LIMIT: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class CleanerSettings:
    """The `log.cleaner.*` settings of a broker, typed; the defaults are Kafka's."""

    threads: int = 1
    dedupe_buffer_bytes: int = 128 * 2**20
    load_factor: float = 0.9
    io_buffer_bytes: int = 512 * 1024
    io_max_bytes_per_second: float = 1.7976931348623157e308
    backoff_ms: int = 15_000

    @classmethod
    def of(cls, settings: Settings) -> "CleanerSettings":
        """The settings of a `BROKER_LOG` table."""
        return cls(
            threads=settings.integer("log.cleaner.threads"),
            dedupe_buffer_bytes=settings.integer("log.cleaner.dedupe.buffer.size"),
            load_factor=settings.number("log.cleaner.io.buffer.load.factor"),
            io_buffer_bytes=settings.integer("log.cleaner.io.buffer.size"),
            io_max_bytes_per_second=settings.number("log.cleaner.io.max.bytes.per.second"),
            backoff_ms=settings.integer("log.cleaner.backoff.ms"),
        )


class CleanerState(NamedTuple):
    """What a broker's metrics show."""

    dirtiest_ratio: float
    last_run_ms: int
    in_progress: tuple[TopicPartition, ...]
    uncleanable: Mapping[TopicPartition, str]
    last_clean: CleaningStats | None


class _Candidate(NamedTuple):
    log: PartitionLog
    range: CleanableRange
    dirt: Dirt
    overdue: bool


class Cleaner:
    """Compacts the logs that `logs` gives; `high_watermark` says how far each is replicated."""

    def __init__(
        self,
        files: Files,
        clock: Clock,
        settings: CleanerSettings,
        *,
        logs: Callable[[], Iterable[PartitionLog]],
        high_watermark: Callable[[PartitionLog], int],
    ) -> None:
        self._files: Final = files
        self._clock: Final = clock
        self._logs: Final = logs
        self._high_watermark: Final = high_watermark
        self._settings = settings
        self._throttle: Final = Throttle(clock, settings.io_max_bytes_per_second)
        self._checkpoints: dict[str, dict[TopicPartition, int]] = {}  # by data folder
        self._in_progress: dict[TopicPartition, Cleaning] = {}
        self._uncleanable: dict[TopicPartition, str] = {}
        self._dirtiest_ratio = 0.0
        self._last_run_ms = clock.now_ms()
        self._last_clean: CleaningStats | None = None

    def configure(self, settings: CleanerSettings) -> None:
        """Take new settings; cleans that are under way keep their memory."""
        self._settings = settings
        self._throttle.bytes_per_second = settings.io_max_bytes_per_second

    @property
    def state(self) -> CleanerState:
        return CleanerState(
            self._dirtiest_ratio,
            self._last_run_ms,
            tuple(self._in_progress),
            dict(self._uncleanable),
            self._last_clean,
        )

    def is_cleaning(self, partition: TopicPartition) -> bool:
        return partition in self._in_progress

    # -- choosing ------------------------------------------------------------------------------

    def pick(self) -> Cleaning | None:
        """The filthiest log that is worth a clean, marked as being cleaned; None when there is none, or
        as many are being cleaned as `log.cleaner.threads` allows."""
        self._last_run_ms = now_ms = self._clock.now_ms()
        if len(self._in_progress) >= self._settings.threads:
            return None
        logs = [log for log in self._logs() if log.config.compact]
        self._forget_all_but(logs)
        candidates = [found for log in logs if (found := self._candidate(log, now_ms)) is not None]
        self._dirtiest_ratio = max((each.dirt.ratio for each in candidates), default=0.0)
        worth_it = [
            each
            for each in candidates
            if each.dirt.cleanable_bytes > 0
            and (each.overdue or each.dirt.ratio > each.log.config.min_cleanable_dirty_ratio)
        ]
        if not worth_it:
            return None
        filthiest = max(worth_it, key=lambda each: each.dirt.ratio)
        settings = self._settings
        cleaning = Cleaning(
            self._files,
            self._clock,
            filthiest.log,
            first_dirty_offset=filthiest.range.first_dirty_offset,
            first_uncleanable_offset=filthiest.dirt.first_uncleanable_offset,
            dedupe_buffer_bytes=settings.dedupe_buffer_bytes // settings.threads,
            load_factor=settings.load_factor,
            io_buffer_bytes=settings.io_buffer_bytes // settings.threads,
            throttle=self._throttle,
        )
        self._in_progress[filthiest.log.topic_partition] = cleaning
        return cleaning

    def _candidate(self, log: PartitionLog, now_ms: int) -> _Candidate | None:
        partition, config = log.topic_partition, log.config
        if partition in self._in_progress or partition in self._uncleanable:
            return None
        segments = summarize(log, self._files)
        checkpoint = self._checkpoint_of(log).get(partition)
        found = cleanable_range(
            segments,
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            last_stable_offset=log.last_stable_offset(self._high_watermark(log)),
            checkpoint=checkpoint,
            min_compaction_lag_ms=config.min_compaction_lag_ms,
            now_ms=now_ms,
        )
        if found.checkpoint_is_wrong:
            if not config.delete:  # retention moves the log start, which is no fault
                _log.warning(
                    "%s: the cleaner checkpoint %s is not within the log; cleaning starts over at %d",
                    partition,
                    checkpoint,
                    found.first_dirty_offset,
                )
            self._set_checkpoint(log, found.first_dirty_offset)
        dirt = measure_dirt(segments, found)
        return _Candidate(log, found, dirt, self._overdue(log, segments, found, now_ms))

    def _overdue(
        self, log: PartitionLog, segments: Sequence[SegmentFacts], within: CleanableRange, now_ms: int
    ) -> bool:
        if log.config.max_compaction_lag_ms >= _NO_LAG_LIMIT:
            return False
        bases = {each.base_offset for each in segments_from(segments[:-1], within.first_dirty_offset)}
        first_timestamps = (
            segment.first_timestamp or 0 for segment in log.segments if segment.base_offset in bases
        )
        delay_ms = compaction_delay_ms(
            first_timestamps, max_compaction_lag_ms=log.config.max_compaction_lag_ms, now_ms=now_ms
        )
        return delay_ms > 0

    # -- cleaning ------------------------------------------------------------------------------

    def clean(self, cleaning: Cleaning) -> Steps:
        """Blocking pieces of work; run each in a thread, then ask for the next.

        Raises DiskFault when the data folder failed; the folder is not to be trusted then.
        """
        log, partition = cleaning.log, cleaning.log.topic_partition
        try:
            yield from cleaning.steps()
            if cleaning.outcome is Outcome.CLEANED:
                self._set_checkpoint(log, cleaning.stats.end_offset)
                self._last_clean = cleaning.stats
                _log.info("%s: %s", partition, _sentence(cleaning.stats))
            elif cleaning.outcome is Outcome.UNCLEANABLE:
                self._uncleanable[partition] = str(cleaning.reason)
                _log.error("%s cannot be compacted and is left alone: %s", partition, cleaning.reason)
            elif cleaning.reason is not None:
                _log.warning("%s: compaction gave up: %s", partition, cleaning.reason)
        finally:
            del self._in_progress[partition]

    def clean_now(self, cleaning: Cleaning) -> Outcome:
        """The whole clean here and now, blocking; for tools and tests."""
        run_steps(self.clean(cleaning))
        assert cleaning.outcome is not None, "steps ran to their end"
        return cleaning.outcome

    # -- what happens to logs ------------------------------------------------------------------

    def abort(self, partition: TopicPartition) -> None:
        """The log is about to be deleted or closed: nothing of it will be swapped any more."""
        if (cleaning := self._in_progress.get(partition)) is not None:
            cleaning.abort()

    def abort_all(self) -> None:
        """The broker stops."""
        for cleaning in self._in_progress.values():
            cleaning.abort()

    def truncated(self, log: PartitionLog, offset: int) -> None:
        """The log was cut at `offset`: what comes there next is dirty."""
        self.abort(log.topic_partition)
        checkpoint = self._checkpoint_of(log).get(log.topic_partition)
        if checkpoint is not None and checkpoint > offset:
            self._set_checkpoint(log, offset)

    def first_dirty_offset(self, log: PartitionLog) -> int:
        """Up to where the log is known to be clean."""
        return self._checkpoint_of(log).get(log.topic_partition, log.log_start_offset)

    def _forget_all_but(self, logs: Iterable[PartitionLog]) -> None:
        held = {log.topic_partition for log in logs}
        for partition in [partition for partition in self._uncleanable if partition not in held]:
            del self._uncleanable[partition]  # deleted, or no longer compacted: a new one gets its chance

    # -- checkpoints ---------------------------------------------------------------------------

    def _checkpoint_of(self, log: PartitionLog) -> dict[TopicPartition, int]:
        folder = log.folder.rpartition("/")[0]
        if (offsets := self._checkpoints.get(folder)) is None:
            try:
                offsets = read_offsets(self._files, f"{folder}/{CLEANER_OFFSETS}")
            except CorruptCheckpoint as error:
                _log.warning("%s; every log of the folder counts as dirty", error)
                offsets = {}
            self._checkpoints[folder] = offsets
        return offsets

    def _set_checkpoint(self, log: PartitionLog, offset: int) -> None:
        """Remember the first dirty offset, and drop the partitions that the folder no longer has."""
        offsets = self._checkpoint_of(log)
        offsets[log.topic_partition] = offset
        folder = log.folder.rpartition("/")[0]
        held = {each.topic_partition for each in self._logs() if each.folder.rpartition("/")[0] == folder}
        for partition in [partition for partition in offsets if partition not in held]:
            del offsets[partition]
        write_offsets(self._files, f"{folder}/{CLEANER_OFFSETS}", offsets, sync=False)


def _sentence(stats: CleaningStats) -> str:
    return (
        f"compacted offsets {stats.first_dirty_offset} to {stats.end_offset}: {stats.bytes_read} bytes in "
        f"{stats.segments_before} segments became {stats.bytes_written} in {stats.segments_after}, "
        f"{stats.records_read} records {stats.records_written}, in {stats.elapsed_ms} ms"
    )
