"""When the active segment is full: by size, age, index room or relative offsets.

The limits are worked out once per segment, so that an append compares four numbers.  Age counts from the
segment's first batch by the records' own times, or by the clock when they have none; segment.jitter.ms
takes up to that much off, spread by the partition's name and not by chance, so that a run can be repeated.
"""

import zlib
from typing import Final

from barnabas.log.config import LogConfig
from barnabas.log.segment import RELATIVE_OFFSET_MAX, Segment

__all__ = ["RollRule"]

_OFFSET_INDEX_ENTRY_BYTES: Final = 8
_TIME_INDEX_ENTRY_BYTES: Final = 12
_NEVER: Final = 2**63


class RollRule:
    """The limits of one active segment; make another when the segment or the settings change."""

    __slots__ = (
        "_bytes_max",
        "_index_bytes_max",
        "_offset_max",
        "_segment",
        "_segment_ms",
        "_suspect_bytes",
        "_timestamp_max",
        "since_ms",
    )

    def __init__(self, segment: Segment, config: LogConfig, *, since_ms: int) -> None:
        """`since_ms` is when the segment was begun, as far as is known."""
        self._segment: Final = segment
        self._bytes_max: Final = config.segment_bytes
        self._index_bytes_max: Final = config.segment_index_bytes
        # A segment of so many bytes cannot have filled an index, and counting entries costs time.
        entries = max(config.segment_index_bytes // _TIME_INDEX_ENTRY_BYTES - 2, 0)
        self._suspect_bytes: Final = entries * (segment.index_interval_bytes + 1)
        self._offset_max: Final = segment.base_offset + RELATIVE_OFFSET_MAX
        self._segment_ms: Final = config.roll_ms - _jitter_ms(segment, config)
        self.since_ms: Final = since_ms
        self._timestamp_max = -1  # -1 until the first batch is there

    def due(self, size_bytes: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Whether batches of that size, last offset and largest time belong into a new segment."""
        held = self._segment.size_bytes
        if not held:
            return last_offset > self._offset_max
        if self._timestamp_max < 0:
            first = self._segment.first_timestamp
            self._timestamp_max = first + self._segment_ms if first is not None and first >= 0 else _NEVER
        return (
            held + size_bytes > self._bytes_max
            or last_offset > self._offset_max
            or max_timestamp > self._timestamp_max
            or (self._timestamp_max == _NEVER and now_ms - self.since_ms > self._segment_ms)
            or (held > self._suspect_bytes and self._index_is_full())
        )

    def _index_is_full(self) -> bool:
        segment, limit = self._segment, self._index_bytes_max
        offset_bytes = (len(segment.offset_index) + 1) * _OFFSET_INDEX_ENTRY_BYTES
        time_bytes = (len(segment.time_index) + 1) * _TIME_INDEX_ENTRY_BYTES
        return max(offset_bytes, time_bytes) > limit


def _jitter_ms(segment: Segment, config: LogConfig) -> int:
    spread = min(config.segment_jitter_ms, config.roll_ms)
    return zlib.crc32(f"{segment.folder}/{segment.base_offset}".encode()) % spread if spread else 0
