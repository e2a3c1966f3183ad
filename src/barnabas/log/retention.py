"""Which segments of a log have had their time, and why: a plan, never the deed.

R1  Segments go oldest first and without a gap: the first one that stays ends the plan.
R2  Nothing at or above the high watermark goes, so the log start never passes it.
R3  The active segment never goes.  When its time has come, the plan asks for a roll first: it then is no
    longer the active one, and its empty successor stays.

Three rules in turn, as in Apache Kafka: segments wholly below the log start offset (records were deleted on
request), whatever the policy; then, under `cleanup.policy=delete`, as many as the log is above
`retention.bytes`, where it may stay above by less than one segment; then those whose youngest record is
older than `retention.ms`.
A limit of -1 is no limit.

Pure: knows no file, no clock, no partition.  The log carries a plan out.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

__all__ = ["Deletion", "Reason", "RetentionLimits", "RetentionPlan", "SegmentSummary", "plan_retention"]


class SegmentSummary(NamedTuple):
    """What retention and compaction look at of one segment."""

    base_offset: int
    size_bytes: int
    largest_timestamp_ms: int
    """Of its records; the file's time when they have none."""


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
    segments: Sequence[SegmentSummary],
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

    def take(why: Callable[[SegmentSummary, int], str | None], reason: Reason) -> None:
        for segment, end in zip(segments[len(deletions) :], ends[len(deletions) :], strict=True):
            if end > high_watermark or segment.base_offset == log_end_offset:  # R2; an empty active segment
                return
            if (sentence := why(segment, end)) is None:
                return  # R1
            deletions.append(Deletion(segment.base_offset, reason, sentence))

    def below_start(segment: SegmentSummary, end: int) -> str | None:
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
    segments: Sequence[SegmentSummary], retention_bytes: int
) -> Callable[[SegmentSummary, int], str | None]:
    size_bytes = sum(segment.size_bytes for segment in segments)
    excess = size_bytes - retention_bytes

    def why(segment: SegmentSummary, end: int) -> str | None:
        nonlocal excess
        if segment.size_bytes > excess:
            return None
        excess -= segment.size_bytes
        return f"the log is {excess + segment.size_bytes} bytes above retention.bytes={retention_bytes}"

    return why


def _overage(now_ms: int, retention_ms: int) -> Callable[[SegmentSummary, int], str | None]:
    def why(segment: SegmentSummary, end: int) -> str | None:
        age_ms = now_ms - segment.largest_timestamp_ms
        return f"is {age_ms} ms old, retention.ms={retention_ms}" if age_ms > retention_ms else None

    return why
