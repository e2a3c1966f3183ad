"""Who reads which partition: the assignors of classic groups, run by the member that leads the group.

    range               per topic, runs of neighbouring partitions            eager
    roundrobin          all partitions in turn                                eager
    sticky              even, and as few moves as that allows                 eager
    cooperative-sticky  the same, but a partition that moves is first freed   incremental (KIP-429)

A1  every partition of a subscribed topic goes to exactly one member that subscribes to it
    (cooperative-sticky leaves those out for one round that their owner must give up first)
A2  the same input gives the same result, in whatever order members and topics are listed
A3  the sticky ones keep counts as even as the subscriptions allow, then move as little as possible

Names and user data are Kafka's, so members of other clients may lead or follow in the same group.
No I/O: partition counts and subscriptions are arguments.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from barnabas.base.errors import ConfigFault
from barnabas.base.types import TopicPartition
from barnabas.client.sticky import balance, claims_of
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.fields import array, int32
from barnabas.protocol.schema import Message, data
from barnabas.protocol.storage.consumer_protocol import TopicPartition as TopicPartitions

__all__ = [
    "ASSIGNORS",
    "Assignor",
    "CooperativeStickyAssignor",
    "GroupSubscription",
    "RangeAssignor",
    "RoundRobinAssignor",
    "StickyAssignor",
    "assignors_named",
    "grouped",
    "ungrouped",
]

Assignment = dict[str, list[TopicPartition]]
"""Member id to its partitions, sorted."""


@dataclass(frozen=True, slots=True)
class GroupSubscription:
    """What one member told the group when it joined."""

    member_id: str
    topics: frozenset[str]
    owned: frozenset[TopicPartition] = frozenset()
    generation: int = -1
    instance_id: str | None = None
    rack: str | None = None
    user_data: bytes = field(default=b"", repr=False)

    @property
    def order(self) -> tuple[bool, str, str]:
        """Where the member stands among the others: static members first, as in Kafka's own assignors."""
        return (self.instance_id is None, self.instance_id or "", self.member_id)


class Assignor(Protocol):
    """One way to assign.  A user may bring another; all members must list it by the same name."""

    @property
    def name(self) -> str: ...

    @property
    def is_cooperative(self) -> bool:
        """Whether members keep their partitions while the group rebalances (KIP-429)."""

    def user_data(self, owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        """What the member adds to its subscription for the assignor of the leader."""

    def assign(self, partitions: Mapping[str, int], members: Sequence[GroupSubscription]) -> Assignment:
        """The partitions of every member; `partitions` counts those of each topic that exists."""


class RangeAssignor:
    """Runs of neighbouring partitions of each topic: topics with equal counts line up."""

    name: Final = "range"
    is_cooperative: Final = False

    def user_data(self, owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        return None

    def assign(self, partitions: Mapping[str, int], members: Sequence[GroupSubscription]) -> Assignment:
        assignment: Assignment = {member.member_id: [] for member in members}
        ordered = sorted(members, key=lambda member: member.order)
        for topic in sorted(_topics_of(members)):
            readers = [member.member_id for member in ordered if topic in member.topics]
            share, extra = divmod(partitions.get(topic, 0), len(readers))
            start = 0
            for index, reader in enumerate(readers):
                end = start + share + (index < extra)
                assignment[reader] += [TopicPartition(topic, number) for number in range(start, end)]
                start = end
        return assignment


class RoundRobinAssignor:
    """All partitions of all topics in turn over the members."""

    name: Final = "roundrobin"
    is_cooperative: Final = False

    def user_data(self, owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        return None

    def assign(self, partitions: Mapping[str, int], members: Sequence[GroupSubscription]) -> Assignment:
        assignment: Assignment = {member.member_id: [] for member in members}
        ordered = sorted(members, key=lambda member: member.order)
        turn = 0
        for topic in sorted(_topics_of(members)):
            for number in range(partitions.get(topic, 0)):
                while topic not in ordered[turn % len(ordered)].topics:
                    turn += 1
                assignment[ordered[turn % len(ordered)].member_id].append(TopicPartition(topic, number))
                turn += 1
        return assignment


@data(versions="0-1")
class StickyUserData(Message):
    """What members of the sticky assignor send along; before version 1 without the generation."""

    previous_assignment: list[TopicPartitions] = array(TopicPartitions)
    generation: int = int32(versions="1+", default=-1, ignorable=True)


@data(versions="0")
class CooperativeUserData(Message):
    """What members of the cooperative assignor send along, for leaders that read no generation."""

    generation: int = int32(default=-1)


class StickyAssignor:
    """Even, and everyone keeps what it has as far as that allows."""

    name: Final = "sticky"
    is_cooperative: Final = False

    def user_data(self, owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        told = StickyUserData(previous_assignment=grouped(owned), generation=generation)
        return b"".join(
            bytes(part) for part in told.encode(1) if isinstance(part, bytes | bytearray | memoryview)
        )

    def assign(self, partitions: Mapping[str, int], members: Sequence[GroupSubscription]) -> Assignment:
        told = [(member, *_sticky_claims(member)) for member in members]
        return _balanced(
            partitions, members, [(m.member_id, owned, generation) for m, owned, generation in told]
        )


class CooperativeStickyAssignor:
    """Sticky, in two rounds: what moves is taken from its owner in one, given to the next in the other."""

    name: Final = "cooperative-sticky"
    is_cooperative: Final = True

    def user_data(self, owned: Iterable[TopicPartition], generation: int) -> bytes | None:
        return generation.to_bytes(4, "big", signed=True)

    def assign(self, partitions: Mapping[str, int], members: Sequence[GroupSubscription]) -> Assignment:
        claims = [(member.member_id, member.owned, _cooperative_generation(member)) for member in members]
        wanted = _balanced(partitions, members, claims)
        # Whoever says that it owns a partition still reads it, be the claim old or not.
        owners: dict[TopicPartition, set[str]] = {}
        for member in members:
            for partition in member.owned:
                owners.setdefault(partition, set()).add(member.member_id)
        return {
            member_id: [tp for tp in taken if not owners.get(tp, set()) - {member_id}]
            for member_id, taken in wanted.items()
        }


ASSIGNORS: Final[dict[str, Assignor]] = {
    assignor.name: assignor
    for assignor in (RangeAssignor(), RoundRobinAssignor(), StickyAssignor(), CooperativeStickyAssignor())
}

_JAVA_NAMES: Final = {
    f"org.apache.kafka.clients.consumer.{type(assignor).__name__}": assignor
    for assignor in ASSIGNORS.values()
}


def assignors_named(names: Sequence[object]) -> list[Assignor]:
    """The assignors of `partition.assignment.strategy`: names, Java's class names, or objects of one's own.

    Raises ConfigFault.
    """
    found: list[Assignor] = []
    for name in names:
        if not isinstance(name, str):
            if not all(hasattr(name, part) for part in ("name", "is_cooperative", "user_data", "assign")):
                raise ConfigFault(f"partition.assignment.strategy: {name!r} is not an assignor")
            found.append(name)  # type: ignore[arg-type]  # its parts were just looked for
            continue
        assignor = ASSIGNORS.get(name) or _JAVA_NAMES.get(name)
        if assignor is None:
            known = ", ".join(ASSIGNORS)
            raise ConfigFault(
                f"partition.assignment.strategy: no assignor is called {name!r}; there are {known}"
            )
        found.append(assignor)
    if not found:
        raise ConfigFault("partition.assignment.strategy: must name at least one assignor")
    return found


def grouped(partitions: Iterable[TopicPartition]) -> list[TopicPartitions]:
    """Partitions by topic, in the form of the wire, sorted."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return [TopicPartitions(topic=topic, partitions=numbers) for topic, numbers in topics.items()]


def ungrouped(topics: Iterable[TopicPartitions]) -> list[TopicPartition]:
    """The inverse of `grouped`."""
    return [TopicPartition(topic.topic, number) for topic in topics for number in topic.partitions]


def _topics_of(members: Iterable[GroupSubscription]) -> set[str]:
    return {topic for member in members for topic in member.topics}


def _sticky_claims(member: GroupSubscription) -> tuple[frozenset[TopicPartition], int]:
    """What a member had, from its user data, else from the owned partitions of its subscription."""
    for version in (1, 0):
        try:
            told = StickyUserData.decode(version, member.user_data)
        except ProtocolError:
            continue  # another version, or what some other client wrote there: it has no claims to keep
        return frozenset(ungrouped(told.previous_assignment)), told.generation
    return member.owned, member.generation


def _cooperative_generation(member: GroupSubscription) -> int:
    if member.generation >= 0:
        return member.generation
    try:
        return CooperativeUserData.decode(0, member.user_data).generation
    except ProtocolError:
        return -1


def _balanced(
    partitions: Mapping[str, int],
    members: Sequence[GroupSubscription],
    claims: Iterable[tuple[str, frozenset[TopicPartition], int]],
) -> Assignment:
    ordered = sorted(members, key=lambda member: member.order)
    readers = {member.member_id: member.topics for member in ordered}
    return balance(partitions, readers, claims_of(claims, partitions, readers))
