"""The mark that a mirror leaves in the target cluster: the next source offset, and where earlier ones went.

A mark is the committed offset of the mirror's group for the target partition; its note holds the map of
offsets and when it was written: `<map>@<seconds since 1970>`.  A partition that keeps offsets needs no mark
to go on from; the one it gets says where it began, and that it is a mirror's, so that a topic that was
promoted is told from one that was never copied.
"""

from dataclasses import dataclass, field
from typing import Final

from barnabas.spark.pipelines.mirror_offsets import OffsetMap, OffsetMapError

__all__ = ["KEPT_NOTE", "Mark", "read_mark"]

KEPT_NOTE: Final = "kept"


@dataclass(slots=True)
class Mark:
    """Everything below `position` of the source is copied; `offsets` says where to."""

    position: int
    offsets: OffsetMap = field(default_factory=OffsetMap)
    written_s: int = 0

    def committed(self, now_s: int) -> tuple[int, str]:
        """Offset and note to commit."""
        return self.position, f"{self.offsets.encode()}@{now_s}"


def read_mark(committed: tuple[int, str]) -> Mark:
    """The mark of a committed offset and its note.  Raises OffsetMapError for one that is not a mirror's."""
    position, note = committed
    text, _, seconds = note.rpartition("@")
    if not seconds.isdecimal():
        raise OffsetMapError(f"the note {note[:40]!r} of a committed offset is not a mirror's")
    return Mark(position, OffsetMap.decode(text), int(seconds))
