"""Records seen before, left out: effectively-once processing over at-least-once delivery.

    seen = Deduplicator(by="key", limit=100_000)
    for record in consumer:
        if seen.is_new(record):
            process(record)
            seen.add(record)

by="offset" knows a record by (topic, partition, offset): a record that is read again, after a rebalance or a
crash, has the same one.  It keeps one number per partition and forgets nothing.  by="key", or a function of
the record, also finds what a producer sent twice; it keeps the last `limit` identities.

D1  `is_new` changes nothing: a record counts as seen after `add`, so one whose processing failed is not lost
D2  by offset, records of a partition must be added in order; by key in any order

State is in memory.  To outlive a crash keep it with the results: `state` and `restore`.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Literal

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.records.record import Record

__all__ = ["Deduplicator"]

Identity = Literal["offset", "key"] | Callable[[Record], Hashable]


class Deduplicator:
    """Remembers what was processed."""

    def __init__(self, by: Identity = "offset", *, limit: int = 100_000) -> None:
        if by not in ("offset", "key") and not callable(by):
            raise Misuse(f"by is offset, key or a function of the record, not {by!r}")
        if limit < 1:
            raise Misuse(f"at least one identity is remembered, not {limit}")
        self._identity: Callable[[Record], Hashable] | None = None
        if by != "offset":
            self._identity = by if callable(by) else _key
        self._limit = limit
        self._ends: dict[TopicPartition, int] = {}  # behind the last record seen
        self._seen: OrderedDict[Hashable, None] = OrderedDict()

    def is_new(self, record: Record) -> bool:
        if self._identity is None:
            return record.offset >= self._ends.get(_place(record), -1)
        identity = self._identity(record)
        return identity is None or identity not in self._seen

    def add(self, record: Record) -> None:
        """The record was processed."""
        if self._identity is None:
            place = _place(record)
            self._ends[place] = max(record.offset + 1, self._ends.get(place, -1))
            return
        identity = self._identity(record)
        if identity is None:
            return
        self._seen[identity] = None
        self._seen.move_to_end(identity)
        if len(self._seen) > self._limit:
            self._seen.popitem(last=False)

    def new(self, records: Iterable[Record]) -> list[Record]:
        """Those that are new, each identity once; they count as seen.  For work that is done as a whole."""
        found = []
        for record in records:
            if self.is_new(record):
                self.add(record)
                found.append(record)
        return found

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions that went to another member: by offset, their ends are its business now."""
        for tp in partitions:
            self._ends.pop(TopicPartition(*tp), None)

    def state(self) -> tuple[dict[TopicPartition, int], list[Hashable]]:
        """What is remembered, oldest first, to be stored with the results."""
        return dict(self._ends), list(self._seen)

    def restore(self, ends: Mapping[TopicPartition, int], seen: Iterable[Hashable] = ()) -> None:
        """Takes back what `state` gave."""
        self._ends.update((TopicPartition(*tp), end) for tp, end in ends.items())
        for identity in seen:
            self._seen[identity] = None


def _place(record: Record) -> TopicPartition:
    return TopicPartition(record.topic or "", record.partition)


def _key(record: Record) -> Hashable:
    return record.key
