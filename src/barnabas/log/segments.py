"""The segments of one log in order of their base offsets; the last one is active.

One caller at a time.
"""

from bisect import bisect_right
from collections.abc import Iterator

from barnabas.log.segment import Segment

__all__ = ["Segments"]


class Segments:
    """An ordered map base offset → segment."""

    __slots__ = ("_bases", "_segments")

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._segments: list[Segment] = []

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        """Oldest first; a copy, so the caller may add and remove."""
        return iter(tuple(self._segments))

    def __contains__(self, segment: object) -> bool:
        return segment in self._segments

    def __getitem__(self, slot: int) -> Segment:
        return self._segments[slot]

    @property
    def active(self) -> Segment:
        return self._segments[-1]

    @property
    def bases(self) -> list[int]:
        return list(self._bases)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    def add(self, segment: Segment) -> None:
        slot = bisect_right(self._bases, segment.base_offset)
        assert not slot or self._bases[slot - 1] != segment.base_offset, f"twice: {segment}"
        self._bases.insert(slot, segment.base_offset)
        self._segments.insert(slot, segment)

    def remove(self, segment: Segment) -> None:
        slot = bisect_right(self._bases, segment.base_offset) - 1
        assert self._segments[slot] is segment, f"not here: {segment}"
        del self._bases[slot], self._segments[slot]

    def floor_slot(self, offset: int) -> int:
        """Where the segment is that may hold `offset`: the last with a base not above it, or the first."""
        return max(bisect_right(self._bases, offset) - 1, 0)

    def from_slot(self, slot: int) -> list[Segment]:
        return self._segments[slot:]
