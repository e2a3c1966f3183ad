"""Where readers that go on from their last answer will find their next batch.

A read that ends inside a segment has seen the header of the batch behind its end.  Kept here, the next read
of the same reader begins with a look into a dict, not with an index and the file.

R1  What is noted is true as long as the segment's bytes stay: whoever cuts or rewrites them calls `clear`.
R2  At most PLACES_MAX are kept, the oldest go first: a reader who comes late finds his way by the index.
"""

from typing import Final

from barnabas.log.scan import BatchPlace

__all__ = ["PLACES_MAX", "ReaderPlaces"]

PLACES_MAX: Final = 128


class ReaderPlaces:
    """Batches of one segment by the offset they begin with."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: dict[int, tuple[int, int, int]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def note(self, place: BatchPlace) -> None:
        """A reader who goes on will ask for this batch."""
        position, size_bytes, base_offset, last_offset, _ = place
        places = self._places
        places[base_offset] = (position, position + size_bytes, last_offset)
        if len(places) > PLACES_MAX:
            del places[next(iter(places))]

    def find(self, base_offset: int) -> tuple[int, int, int] | None:
        """(position, end, last offset) of the batch that begins with that offset, if it was noted."""
        return self._places.get(base_offset)

    def clear(self) -> None:
        if self._places:
            self._places = {}
