"""The mark that a mirror leaves in the target cluster: the next source offset, and where earlier ones went.

A mark is the committed offset of the mirror's group for the target partition; its note holds the map of
offsets and when it was written: `<map>@<seconds since 1970>`.  A partition that keeps offsets needs no mark
to go on from; the one it gets says where it began, and that it is a mirror's, so that a topic that was
promoted is told from one that was never copied.  Behind a `#` both name the id of the source topic, if it has
one: by it a topic that was deleted and made again is told, however long it has become.
"""

from dataclasses import dataclass, field
from typing import Final

from barnabas.spark.pipelines.mirror_offsets import OffsetMap, OffsetMapError

__all__ = ["KEPT_NOTE", "Mark", "is_kept", "kept_note", "read_mark", "topic_id_of"]

KEPT_NOTE: Final = "kept"


@dataclass(slots=True)
class Mark:
    """Everything below `position` of the source is copied; `offsets` says where to."""

    position: int
    offsets: OffsetMap = field(default_factory=OffsetMap)
    written_s: int = 0
    topic_id: str = ""

    def committed(self, now_s: int) -> tuple[int, str]:
        """Offset and note to commit."""
        return self.position, _with_id(f"{self.offsets.encode()}@{now_s}", self.topic_id)


def kept_note(topic_id: str) -> str:
    """The note of a partition that keeps offsets."""
    return _with_id(KEPT_NOTE, topic_id)


def is_kept(note: str) -> bool:
    return note.partition("#")[0] == KEPT_NOTE


def topic_id_of(note: str) -> str:
    """The id of the source topic; empty when the note names none."""
    return note.partition("#")[2]


def _with_id(note: str, topic_id: str) -> str:
    return f"{note}#{topic_id}" if topic_id else note


def read_mark(committed: tuple[int, str]) -> Mark:
    """The mark of a committed offset and its note.  Raises OffsetMapError for one that is not a mirror's."""
    position, note = committed
    text, _, seconds = note.partition("#")[0].rpartition("@")
    if not seconds.isdecimal():
        raise OffsetMapError(f"the note {note[:40]!r} of a committed offset is not a mirror's")
    return Mark(position, OffsetMap.decode(text), int(seconds), topic_id_of(note))
