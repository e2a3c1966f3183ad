"""Which log to compact, which offsets of it, and which segments become one: decisions without a file.

P1  Nothing is cleaned from the active segment on, nor at or above the last stable offset (which is never
    above the high watermark), nor in segments younger than `min.compaction.lag.ms`.
P2  A log is worth cleaning when its dirty share of bytes passes `min.cleanable.dirty.ratio`, or when it holds
    dirty records older than `max.compaction.lag.ms`.
P3  Segments become one only while the result surely fits: bytes, index bytes, relative offsets of 31 bits.

A log is clean up to its first dirty offset, which the `cleaner-offset-checkpoint` remembers: below it each
key occurs once.  Pure; the rules and their order are Apache Kafka's.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from barnabas.log.retention import SegmentFacts

__all__ = [
    "CleanableRange",
    "Dirt",
    "GroupMember",
    "cleanable_range",
    "compaction_delay_ms",
    "group_segments",
    "measure_dirt",
]

_RELATIVE_OFFSET_MAX: Final = 2**31 - 1


class CleanableRange(NamedTuple):
    """Dirty offsets [first_dirty, first_uncleanable) may be cleaned, at the segments' grain."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    checkpoint_is_wrong: bool
    """The checkpoint names an offset that the log does not have; cleaning starts over."""


def cleanable_range(
    segments: Sequence[SegmentFacts],
    *,
    log_start_offset: int,
    log_end_offset: int,
    last_stable_offset: int,
    checkpoint: int | None,
    min_compaction_lag_ms: int,
    now_ms: int,
) -> CleanableRange:
    """What of the log may be cleaned now (P1).  The last segment is the active one."""
    first_dirty = log_start_offset if checkpoint is None else checkpoint
    wrong = not log_start_offset <= first_dirty <= log_end_offset
    if wrong:
        # Below the start: records were deleted meanwhile.  Above the end: the log lost its tail, and what
        # was written since may not be clean.
        first_dirty = log_start_offset
    bounds = [last_stable_offset, segments[-1].base_offset]
    if min_compaction_lag_ms > 0:
        bounds += [
            segment.base_offset
            for segment in segments_from(segments[:-1], first_dirty)
            if segment.largest_timestamp_ms > now_ms - min_compaction_lag_ms
        ]
    return CleanableRange(first_dirty, max(first_dirty, min(bounds)), wrong)


def segments_from(segments: Sequence[SegmentFacts], offset: int) -> Sequence[SegmentFacts]:
    """The segments from the one that holds `offset` on."""
    first = 0
    for index, segment in enumerate(segments):
        if segment.base_offset <= offset:
            first = index
    return segments[first:]


class Dirt(NamedTuple):
    """How much there is to gain."""

    clean_bytes: int
    cleanable_bytes: int
    first_uncleanable_offset: int
    """At a segment boundary: the segment that holds the bound stays whole."""

    @property
    def ratio(self) -> float:
        """The dirty share of the bytes that a clean would read; 0 for an empty log."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0


def measure_dirt(segments: Sequence[SegmentFacts], within: CleanableRange) -> Dirt:
    """The bytes of clean and of cleanable segments; the one that holds the first dirty offset is dirty."""
    bound = segments_from(segments, within.first_uncleanable_offset)[0].base_offset
    dirty_start = min(segments_from(segments, within.first_dirty_offset)[0].base_offset, bound)
    return Dirt(
        clean_bytes=sum(s.size_bytes for s in segments if s.base_offset < dirty_start),
        cleanable_bytes=sum(s.size_bytes for s in segments if dirty_start <= s.base_offset < bound),
        first_uncleanable_offset=bound,
    )


def compaction_delay_ms(
    first_timestamps_ms: Iterable[int], *, max_compaction_lag_ms: int, now_ms: int
) -> int:
    """How long cleaning is overdue by `max.compaction.lag.ms`, 0 when it is not.

    `first_timestamps_ms` are those of the dirty segments' first batches; those without a time do not count.
    """
    earliest = min((time for time in first_timestamps_ms if time > 0), default=now_ms)
    return max(0, now_ms - max(max_compaction_lag_ms, 0) - earliest)


class GroupMember(NamedTuple):
    """A segment to clean, with what decides how it goes together with its neighbours."""

    base_offset: int
    size_bytes: int
    offset_index_bytes: int
    time_index_bytes: int


def group_segments(
    members: Sequence[GroupMember], *, segment_bytes: int, index_bytes: int, end_offset: int
) -> list[list[GroupMember]]:
    """Neighbours that become one segment (P3), so that many small leftovers do not stay many files.

    `end_offset` is behind the last offset of the last member.
    """
    groups: list[list[GroupMember]] = []
    ends = [member.base_offset for member in members[1:]] + [end_offset]
    for member, end in zip(members, ends, strict=True):
        if groups and _fits(groups[-1], member, end, segment_bytes, index_bytes):
            groups[-1].append(member)
        else:
            groups.append([member])
    return groups


def _fits(
    group: list[GroupMember], member: GroupMember, end: int, segment_bytes: int, index_bytes: int
) -> bool:
    together = [*group, member]
    return (
        sum(each.size_bytes for each in together) <= segment_bytes
        and sum(each.offset_index_bytes for each in together) <= index_bytes
        and sum(each.time_index_bytes for each in together) <= index_bytes
        and (member.size_bytes == 0 or end - 1 - group[0].base_offset <= _RELATIVE_OFFSET_MAX)
    )
