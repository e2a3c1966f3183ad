"""The newest batches of an active segment, in memory: last offset and position of each.

Readers at the end of a log are served from here, without a look at an index or at the file.  What is kept
is the end of the segment without a gap, at least half of the limit once there were so many batches.
"""

from array import array
from bisect import bisect_left, bisect_right
from typing import Final

__all__ = ["TAIL_BATCHES_MAX", "Tail"]

TAIL_BATCHES_MAX: Final = 512


class Tail:
    """Where the last batches of a segment begin and which offsets they end with."""

    __slots__ = ("lasts", "positions")

    def __init__(self) -> None:
        self.lasts = array("q")
        self.positions = array("q")

    def __len__(self) -> int:
        return len(self.lasts)

    def trim(self) -> None:
        """Forget the older half; for when there are more than TAIL_BATCHES_MAX."""
        del self.lasts[: -TAIL_BATCHES_MAX // 2]
        del self.positions[: -TAIL_BATCHES_MAX // 2]

    def clear(self) -> None:
        self.lasts = array("q")
        self.positions = array("q")

    def cut(self, position: int) -> None:
        """Forget the batches from `position` on."""
        keep = bisect_left(self.positions, position)
        del self.positions[keep:]
        del self.lasts[keep:]

    def find(self, offset: int) -> int:
        """The slot of the first batch that ends with `offset` or behind it; -1 when it may lie before.

        The caller knows that there is such a batch in the segment.
        """
        lasts = self.lasts
        if not lasts:
            return -1
        slot = bisect_left(lasts, offset)
        return slot if slot or self.positions[0] == 0 else -1

    def boundary(self, position: int) -> int:
        """The last batch boundary not behind `position`, or -1 when it may lie before the tail."""
        positions = self.positions
        if not positions or positions[0] > position:
            return -1
        return positions[bisect_right(positions, position) - 1]

    def offset_before(self, position: int) -> int:
        """The last offset of the batch that ends at boundary `position`, or -1 when it is not known here."""
        positions = self.positions
        if not positions or positions[0] >= position:
            return -1
        return self.lasts[bisect_left(positions, position) - 1]
