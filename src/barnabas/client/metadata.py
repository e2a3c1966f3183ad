"""What the client knows about the cluster: a value that each answer replaces, never changes in place.

M1  the leader epoch of a partition never goes back while its topic keeps its id: an older answer of a broker
    that lags behind does not undo a newer one
M2  a topic is in `topics` or in `errors`, never in both

Knows no connection and no clock.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from barnabas.base.types import ZERO_UUID, Uuid, uuid_text
from barnabas.client.dialing import Address
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

__all__ = ["BrokerInfo", "Metadata", "PartitionInfo", "TopicInfo"]

_NO_LEADER: Final = -1


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A broker and the address it tells clients to use."""

    id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)

    def __str__(self) -> str:
        return f"broker {self.id} at {self.address}"


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """One partition; `leader` is -1 while it has none."""

    index: int
    leader: int
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    error: ErrorCode = ErrorCode.NONE

    @property
    def has_leader(self) -> bool:
        return self.leader != _NO_LEADER


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """One topic; `partitions[n]` is partition n."""

    name: str
    id: Uuid
    partitions: tuple[PartitionInfo, ...]
    is_internal: bool = False

    @property
    def has_id(self) -> bool:
        """False with brokers before 2.8, which do not give topics an id."""
        return self.id != ZERO_UUID

    def __repr__(self) -> str:
        return f"TopicInfo({self.name!r}, id={uuid_text(self.id)}, {len(self.partitions)} partitions)"


def _nothing() -> Mapping[str, ErrorCode]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Metadata:
    """The cluster as the last answers described it."""

    brokers: Mapping[int, BrokerInfo] = field(default_factory=lambda: MappingProxyType({}))
    topics: Mapping[str, TopicInfo] = field(default_factory=lambda: MappingProxyType({}))
    errors: Mapping[str, ErrorCode] = field(default_factory=_nothing)
    """Topics that were asked for and not answered, with the reason."""
    controller_id: int = _NO_LEADER
    cluster_id: str | None = None

    def leader(self, topic: str, partition: int) -> int | None:
        """The leader's id, or None when the topic, the partition or its leader is not known."""
        info = self.topics.get(topic)
        if info is None or not 0 <= partition < len(info.partitions):
            return None
        found = info.partitions[partition]
        return found.leader if found.has_leader else None

    def by_id(self, topic_id: Uuid) -> TopicInfo | None:
        return next((topic for topic in self.topics.values() if topic.id == topic_id), None)

    def merged(self, response: MetadataResponse, *, asked: Iterable[str] | None) -> "Metadata":
        """This with an answer over it; `asked` is None when the answer has all topics there are."""
        topics = {} if asked is None else dict(self.topics)
        errors = {} if asked is None else dict(self.errors)
        for name in asked or ():
            errors.pop(name, None)
        for topic in response.topics:
            if topic.name is None:
                continue
            before = self.topics.get(topic.name)
            code = _code(topic.error_code)
            if code is ErrorCode.NONE:
                topics[topic.name] = _topic(topic, before)
                errors.pop(topic.name, None)
            elif code is ErrorCode.LEADER_NOT_AVAILABLE and before is not None:
                topics[topic.name] = before
            else:
                topics.pop(topic.name, None)
                errors[topic.name] = code
        brokers = {b.node_id: BrokerInfo(b.node_id, b.host, b.port, b.rack) for b in response.brokers}
        return Metadata(
            MappingProxyType(brokers or dict(self.brokers)),
            MappingProxyType(topics),
            MappingProxyType(errors),
            response.controller_id,
            response.cluster_id or self.cluster_id,
        )

    def with_broker(self, broker: BrokerInfo) -> "Metadata":
        """This with one broker more, as FindCoordinator may name one that is new."""
        brokers = {**self.brokers, broker.id: broker}
        return Metadata(
            MappingProxyType(brokers), self.topics, self.errors, self.controller_id, self.cluster_id
        )


def _topic(topic: MetadataResponseTopic, before: TopicInfo | None) -> TopicInfo:
    assert topic.name is not None, "a topic without a name is left out"
    same = before if before is not None and before.id == topic.topic_id else None
    found = {answer.partition_index: answer for answer in topic.partitions}
    partitions = tuple(
        _partition(index, found.get(index), _at(same, index)) for index in range(max(found, default=-1) + 1)
    )
    return TopicInfo(topic.name, topic.topic_id, partitions, topic.is_internal)


def _at(topic: TopicInfo | None, index: int) -> PartitionInfo | None:
    return topic.partitions[index] if topic is not None and index < len(topic.partitions) else None


def _partition(
    index: int, answer: MetadataResponsePartition | None, before: PartitionInfo | None
) -> PartitionInfo:
    if answer is None:  # a hole in the answer; what was known stays the best guess
        return before or PartitionInfo(index, _NO_LEADER, error=ErrorCode.LEADER_NOT_AVAILABLE)
    if before is not None and -1 < answer.leader_epoch < before.leader_epoch:
        return before
    return PartitionInfo(
        index,
        answer.leader_id,
        answer.leader_epoch,
        tuple(answer.replica_nodes),
        tuple(answer.isr_nodes),
        tuple(answer.offline_replicas),
        _code(answer.error_code),
    )


def _code(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
