"""Where a stream is: the JSON that Spark keeps in the checkpoint, and the arithmetic on it.  Pure.

    {"orders":{"0":17,"1":9}}                          the form of Spark's own Kafka source
    {"#base":{"orders":{"1":0}},"#batch":4,"orders":…}  with what only we know; no topic name has a #

O1  Spark compares offsets as text: the same place has one text, with sorted keys.
O2  `base` of an end offset says where partitions begin that its start offset does not place: all of them
    when the start is the initial one (Spark asks for that again after a restart and does not keep it), else
    the new ones and those that lost offsets.  So a batch in the checkpoint is complete in itself.
O3  The ranges of a batch are a function of its start and end offsets.
O4  `batch` counts the batches that this source had a part in.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from barnabas.base.types import TopicPartition
from barnabas.spark.errors import DataLoss, SparkPartError
from barnabas.spark.planning import OffsetRange

__all__ = [
    "Loss",
    "Positions",
    "StreamOffset",
    "backlog",
    "clamp",
    "judge",
    "positions_json",
    "ranges_between",
    "report",
    "share",
]

Positions = Mapping[TopicPartition, int]

_BASE: Final = "#base"
_BATCH: Final = "#batch"
_INITIAL: Final = "#initial"
_GONE: Final = "the partition is not there any more"


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """A place in every partition: the next offset to read."""

    positions: Positions
    base: Positions = field(default_factory=dict)
    batch: int = -1
    initial: bool = False

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.base:
            found[_BASE] = positions_json(self.base)
        if self.batch >= 0:
            found[_BATCH] = self.batch
        if self.initial:
            found[_INITIAL] = True
        return {**found, **positions_json(self.positions)}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "StreamOffset":
        """Raises SparkPartError when it is no offset of this source."""
        try:
            return cls(
                _positions({name: value for name, value in found.items() if not name.startswith("#")}),
                _positions(found.get(_BASE, {})),
                int(found.get(_BATCH, -1)),
                bool(found.get(_INITIAL, False)),
            )
        except (TypeError, ValueError, AttributeError) as error:
            raise SparkPartError(
                f"the checkpoint has an offset that is not of this source: {found}; "
                "was it made by a query on another source?"
            ) from error


def positions_json(positions: Positions) -> dict[str, dict[str, int]]:
    """Topic to partition to offset, sorted."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(positions.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def _positions(found: Mapping[str, Any]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in found.items()
        for partition, offset in partitions.items()
    }


def ranges_between(start: StreamOffset, end: StreamOffset) -> list[OffsetRange]:
    """What a batch reads.  Raises SparkPartError for a partition whose beginning nobody has kept."""
    found: list[OffsetRange] = []
    for where, until in sorted(end.positions.items()):
        begin = end.base.get(where, None if start.initial else start.positions.get(where))
        if begin is None:
            raise SparkPartError(f"the checkpoint does not say where {where} begins; was it changed by hand?")
        if begin < until:
            found.append(OffsetRange(*where, begin, until))
    return found


def backlog(begins: Positions, ends: Positions) -> int:
    """Offsets between the two."""
    return sum(max(0, end - begins[where]) for where, end in ends.items())


def share(limit: int, begins: Positions, ends: Positions) -> dict[TopicPartition, int]:
    """Ends of a batch with about `limit` offsets: each partition gets its share of the backlog.

    Shares are rounded down, but a partition that has anything gets at least one offset: none starves.
    """
    sizes = {where: max(0, end - begins[where]) for where, end in ends.items()}
    total = sum(sizes.values())
    if total <= limit:
        return dict(ends)
    return {
        where: min(end, begins[where] + max(1, limit * sizes[where] // total)) if sizes[where] else end
        for where, end in ends.items()
    }


class Loss(NamedTuple):
    """Offsets that cannot be read any more; `end` None: nobody can tell how many."""

    where: TopicPartition
    start: int
    end: int | None
    why: str

    def error(self) -> DataLoss:
        return DataLoss(*self.where, self.start, self.end, self.why)


def judge(
    known: Positions, earliest: Positions, latest: Positions
) -> tuple[dict[TopicPartition, int], list[Loss]]:
    """Where to go on in every partition there is now, and what was lost.

    `known` is where the stream stands.  A partition that is new begins at its first offset.  One whose log
    ends below the place was made anew, so that all of it is unread.
    """
    begins: dict[TopicPartition, int] = {}
    losses = [
        Loss(where, place, None, _GONE) for where, place in sorted(known.items()) if where not in latest
    ]
    for where, end in sorted(latest.items()):
        first = earliest.get(where, 0)
        place = known.get(where)
        begins[where] = first if place is None else place
        if place is None:
            if first > 0:
                losses.append(Loss(where, 0, first, "the partition is new, but its first records are gone"))
        elif end < place:
            losses.append(Loss(where, end, place, f"the log ends at {end}; the topic was made anew or cut"))
            begins[where] = first
        elif place < first:
            losses.append(Loss(where, place, first, f"the log begins at {first}; they were deleted by age"))
            begins[where] = first
    return begins, losses


def clamp(
    positions: Positions, earliest: Positions, latest: Positions
) -> tuple[dict[TopicPartition, int], list[Loss]]:
    """Offsets a user named, moved into the log, and what is not there.  Without partitions that vanished."""
    inside: dict[TopicPartition, int] = {}
    losses: list[Loss] = []
    for where, offset in sorted(positions.items()):
        if where not in earliest or where not in latest:
            losses.append(Loss(where, offset, None, _GONE))
            continue
        first, end = earliest[where], latest[where]
        if offset < first:
            losses.append(Loss(where, offset, first, f"the log begins at {first}"))
        elif offset > end:
            losses.append(Loss(where, end, offset, f"the log ends at {end}"))
        inside[where] = min(max(offset, first), end)
    return inside, losses


def report(losses: Iterable[Loss], *, fail: bool) -> list[str]:
    """Raises the first as DataLoss, or gives the warnings to log."""
    found = list(losses)
    if fail and found:
        raise found[0].error()
    return [str(each.error()).partition("; set option")[0] for each in found]
