"""Which segments of a log have had their time, and why.

R1  Segments go oldest first and without a gap: the first one that stays ends the plan.
R2  Nothing at or above the high watermark goes, so the log start never passes it.
R3  The active segment never goes.  When its time has come, the plan asks for a roll first: it then is no
    longer the active one, and its empty successor stays.

Three rules in turn, as in Apache Kafka: segments wholly below the log start offset (records were deleted on
request), whatever the policy; then, under `cleanup.policy=delete`, as many as the log is above
`retention.bytes`, where it may stay above by less than one segment; then those whose youngest record is
older than `retention.ms`.
A limit of -1 is no limit.

`plan_retention` is pure: no file, no clock, no partition.  `enforce_retention` lets a log carry its plan out.
"""

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

from barnabas.log.files import Files
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segment import Segment

__all__ = [
    "Deletion",
    "Reason",
    "RetentionLimits",
    "RetentionPlan",
    "SegmentFacts",
    "SegmentSummary",
    "enforce_retention",
    "plan_retention",
    "summarize",
]

_log = logging.getLogger(__name__)


class SegmentFacts(Protocol):
    """What retention and compaction look at of one segment."""

    @property
    def base_offset(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def largest_timestamp_ms(self) -> int:
        """Of its records; the file's time when they have none.  May cost a look at a file."""
        ...


class SegmentSummary(NamedTuple):
    """Facts that are all known."""

    base_offset: int
    size_bytes: int
    largest_timestamp_ms: int


class RetentionLimits(NamedTuple):
    """The settings that decide; without `delete` only the log start offset counts."""

    delete: bool = True
    retention_ms: int = -1
    retention_bytes: int = -1


class Reason(Enum):
    """Why a segment goes."""

    LOG_START = "below the log start offset"
    SIZE = "retention.bytes"
    TIME = "retention.ms"


class Deletion(NamedTuple):
    """One segment that goes."""

    base_offset: int
    reason: Reason
    sentence: str
    """The reason with its numbers, for the broker's log."""


class RetentionPlan(NamedTuple):
    """What to do, in this order: roll, raise the log start offset, delete."""

    deletions: tuple[Deletion, ...]
    roll_first: bool
    log_start_offset: int
    """The log start offset afterwards; unchanged when nothing goes."""


def plan_retention(
    segments: Sequence[SegmentFacts],
    *,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    limits: RetentionLimits,
    now_ms: int,
) -> RetentionPlan:
    """The plan for a log of these segments, oldest first; the last one is active."""
    ends = [segment.base_offset for segment in segments[1:]] + [log_end_offset]
    deletions: list[Deletion] = []

    def take(why: Callable[[SegmentFacts, int], str | None], reason: Reason) -> None:
        for segment, end in zip(segments[len(deletions) :], ends[len(deletions) :], strict=True):
            if end > high_watermark or segment.base_offset == log_end_offset:  # R2; an empty active segment
                return
            if (sentence := why(segment, end)) is None:
                return  # R1
            deletions.append(Deletion(segment.base_offset, reason, sentence))

    def below_start(segment: SegmentFacts, end: int) -> str | None:
        # The active segment stays whatever the start: with the start at the log end there is nothing to read,
        # and Kafka keeps it as well.
        if end > log_start_offset or segment is segments[-1]:
            return None
        return f"ends at {end}, the log starts at {log_start_offset}"

    take(below_start, Reason.LOG_START)
    if limits.delete and limits.retention_bytes >= 0:
        take(_oversize(segments[len(deletions) :], limits.retention_bytes), Reason.SIZE)
    if limits.delete and limits.retention_ms >= 0:
        take(_overage(now_ms, limits.retention_ms), Reason.TIME)
    start = max(log_start_offset, ends[len(deletions) - 1]) if deletions else log_start_offset
    return RetentionPlan(tuple(deletions), len(deletions) == len(segments), start)


def _oversize(
    segments: Sequence[SegmentFacts], retention_bytes: int
) -> Callable[[SegmentFacts, int], str | None]:
    size_bytes = sum(segment.size_bytes for segment in segments)
    excess = size_bytes - retention_bytes

    def why(segment: SegmentFacts, end: int) -> str | None:
        nonlocal excess
        if segment.size_bytes > excess:
            return None
        excess -= segment.size_bytes
        return f"the log is {excess + segment.size_bytes} bytes above retention.bytes={retention_bytes}"

    return why


def _overage(now_ms: int, retention_ms: int) -> Callable[[SegmentFacts, int], str | None]:
    def why(segment: SegmentFacts, end: int) -> str | None:
        age_ms = now_ms - segment.largest_timestamp_ms
        return f"is {age_ms} ms old, retention.ms={retention_ms}" if age_ms > retention_ms else None

    return why


class _LazyFacts:
    """The facts of a segment of an open log; its largest time is looked up when a rule asks for it."""

    __slots__ = ("_files", "_is_active", "_segment", "base_offset", "size_bytes")

    def __init__(self, segment: Segment, files: Files, is_active: bool) -> None:
        self.base_offset: Final = segment.base_offset
        self.size_bytes: Final = segment.size_bytes
        self._segment: Final = segment
        self._files: Final = files
        self._is_active: Final = is_active

    @property
    def largest_timestamp_ms(self) -> int:
        timestamp = self._segment.largest.timestamp
        if not self._is_active:
            self._segment.time_index.release()  # the segment remembers it, and files are few
        if timestamp >= 0 or not self.size_bytes:
            return timestamp
        # Producers may send records without a time; the file's own then stands for it, as in Kafka.
        name = self._segment.path.rpartition("/")[2]
        times = {info.name: info.modified_ms for info in self._files.list(self._segment.folder)}
        return times.get(name, 0)


def summarize(log: PartitionLog, files: Files) -> list[SegmentFacts]:
    """The segments of a log as plans look at them, oldest first."""
    active = log.segments.active
    return [_LazyFacts(segment, files, segment is active) for segment in log.segments]


def enforce_retention(log: PartitionLog, files: Files, *, high_watermark: int, now_ms: int) -> RetentionPlan:
    """Make the plan for a log and let the log carry it out: roll, raise the start, rename what goes.

    The files are removed later, by the log's `purge`.  On the event loop; raises DiskFault.
    """
    config = log.config
    plan = plan_retention(
        summarize(log, files),
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        high_watermark=high_watermark,
        limits=RetentionLimits(config.delete, config.retention_ms, config.retention_bytes),
        now_ms=now_ms,
    )
    if plan.roll_first:
        log.roll(now_ms)
    if plan.deletions:
        for deletion in plan.deletions:
            _log.info(
                "%s: segment %d goes (%s): %s",
                log.topic_partition,
                deletion.base_offset,
                deletion.reason.value,
                deletion.sentence,
            )
        log.delete_segments_below(plan.log_start_offset, now_ms=now_ms)
    return plan
