"""Where reading begins and ends: `--from` and `--to` of the commands, `--offset` of Kafka's.

beginning, earliest    end, latest    5 (an offset)    -5 (that many before the end)
-10m (so long ago)     2026-05-01T10:00Z    @1767225600000 (ms since 1970)
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from barnabas.cli.times import parse_moment

if TYPE_CHECKING:
    from barnabas.base.types import TopicPartition
    from barnabas.client.consumer import Consumer

__all__ = ["Place", "Position", "offsets_of", "parse_position"]


class Place(Enum):
    BEGINNING = "beginning"
    END = "end"
    OFFSET = "offset"
    BEFORE_END = "before the end"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Position:
    """A place in every partition; `amount` is an offset, a number of records, or milliseconds since 1970."""

    place: Place
    amount: int = 0


def parse_position(text: str) -> Position:
    """A position as people write it.  Raises UsageError."""
    word = text.strip().lower()
    if word in ("beginning", "earliest", "start"):
        return Position(Place.BEGINNING)
    if word in ("end", "latest"):
        return Position(Place.END)
    if re.fullmatch(r"-?\d+", word):
        number = int(word)
        return Position(Place.OFFSET, number) if number >= 0 else Position(Place.BEFORE_END, -number)
    return Position(Place.TIME, round(parse_moment(text.strip()).timestamp() * 1000))


def offsets_of(
    consumer: "Consumer", partitions: "Sequence[TopicPartition]", position: Position
) -> "dict[TopicPartition, int]":
    """The offset of a position in each partition; one outside the log becomes its start or its end."""
    if position.place is Place.END:
        return consumer.end_offsets(*partitions)
    starts = consumer.beginning_offsets(*partitions)
    if position.place is Place.BEGINNING:
        return starts
    ends = consumer.end_offsets(*partitions)
    match position.place:
        case Place.OFFSET:
            wanted = dict.fromkeys(partitions, position.amount)
        case Place.BEFORE_END:
            wanted = {where: ends[where] - position.amount for where in partitions}
        case _:
            found = consumer.offsets_for_times(dict.fromkeys(partitions, position.amount))
            wanted = {where: ends[where] if at is None else at.offset for where, at in found.items()}
    return {where: min(max(wanted[where], starts[where]), ends[where]) for where in partitions}
