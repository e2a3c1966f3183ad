"""The even assignment that moves least: what both sticky assignors compute.

Loads are made even by moving partitions along paths of members (a gives to c, c gives to b) from the most to
the least loaded, until no path joins two members whose loads differ by two or more.  A partition moves only
when that makes the loads more even.  Plain data in, plain data out; deterministic.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import pairwise

from barnabas.base.types import TopicPartition

__all__ = ["balance", "claims_of"]

Readers = Mapping[str, frozenset[str]]
"""Member id to the topics it subscribes to, in the order in which ties are settled."""


def claims_of(
    told: Iterable[tuple[str, frozenset[TopicPartition], int]],
    partitions: Mapping[str, int],
    readers: Readers,
) -> dict[TopicPartition, str]:
    """Who keeps what, from (member, what it says it owns, the generation in which it got it).

    The newest generation wins; two members that claim a partition in the same one both lose it.  Claims on
    partitions that are gone, or of topics that the member does not read any more, do not count.
    """
    best: dict[TopicPartition, tuple[int, str | None]] = {}
    for member, owned, generation in sorted(told, key=lambda claim: (claim[2], claim[0])):
        topics = readers[member]
        for tp in owned:
            if tp.topic not in topics or tp.partition >= partitions.get(tp.topic, 0):
                continue
            before = best.get(tp)
            tied = before is not None and before[0] == generation
            best[tp] = (generation, None if tied else member)
    return {tp: member for tp, (_, member) in best.items() if member is not None}


def balance(
    partitions: Mapping[str, int], readers: Readers, claims: Mapping[TopicPartition, str]
) -> dict[str, list[TopicPartition]]:
    """Every partition of a topic that someone reads, to one of its readers; `claims` are kept if possible."""
    topics = set().union(*readers.values()) if readers else set()
    wanted = [TopicPartition(topic, n) for topic in sorted(topics) for n in range(partitions.get(topic, 0))]
    loads = _Loads(readers)
    for tp in wanted:
        if (owner := claims.get(tp)) is not None:
            loads.give(owner, tp)
    free = [tp for tp in wanted if tp not in claims]
    # Those with few possible readers first, so that the others can even out what they cause.
    for tp in sorted(free, key=lambda tp: len(loads.readers_of(tp.topic))):
        loads.give(loads.least_loaded(tp.topic), tp)
    loads.even_out()
    return {member: sorted(held) for member, held in loads.held.items()}


class _Loads:
    """Who holds what so far."""

    def __init__(self, readers: Readers) -> None:
        self.held: dict[str, set[TopicPartition]] = {member: set() for member in readers}
        self._topics = readers
        self._readers: dict[str, list[str]] = {}
        for member, topics in readers.items():
            for topic in topics:
                self._readers.setdefault(topic, []).append(member)
        # How many partitions of each topic a member holds: which moves there are, without a walk over them.
        self._counts: dict[str, dict[str, int]] = {member: {} for member in readers}

    def readers_of(self, topic: str) -> list[str]:
        return self._readers[topic]

    def give(self, member: str, tp: TopicPartition) -> None:
        self.held[member].add(tp)
        counts = self._counts[member]
        counts[tp.topic] = counts.get(tp.topic, 0) + 1

    def least_loaded(self, topic: str) -> str:
        return min(self._readers[topic], key=lambda member: len(self.held[member]))

    def even_out(self) -> None:
        """Moves until no path leads from a member to one whose load is lower by two or more."""
        settled: set[str] = set()
        while True:
            sources = [member for member in self.held if member not in settled]
            if not sources:
                return
            source = max(sources, key=lambda member: len(self.held[member]))
            path = self._path_from(source)
            if path is None:
                # Nobody it reaches is lower by two.  Later moves start from members with at most its load and
                # never lower the least load within reach, so it stays settled.
                settled.add(source)
                continue
            for giver, taker in pairwise(path):
                self._move(giver, taker)

    def _path_from(self, source: str) -> list[str] | None:
        """The shortest path to a member with the least load within reach, if it is lower by two or more."""
        came_from: dict[str, str | None] = {source: None}
        queue = deque([source])
        best = source
        while queue:
            member = queue.popleft()
            for topic in sorted(self._counts[member]):
                for reader in self._readers[topic]:
                    if reader not in came_from:
                        came_from[reader] = member
                        queue.append(reader)
                        if len(self.held[reader]) < len(self.held[best]):
                            best = reader
        if len(self.held[source]) - len(self.held[best]) < 2:
            return None
        path = [best]
        while (before := came_from[path[-1]]) is not None:
            path.append(before)
        return path[::-1]

    def _move(self, giver: str, taker: str) -> None:
        """Moves one partition, from the topic of which the giver has most."""
        counts = self._counts[giver]
        topic = max(sorted(counts.keys() & self._topics[taker]), key=lambda name: counts[name])
        tp = max(held for held in self.held[giver] if held.topic == topic)
        self.held[giver].remove(tp)
        counts[topic] -= 1
        if not counts[topic]:
            del counts[topic]
        self.give(taker, tp)
