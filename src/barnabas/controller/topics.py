"""Commands on topics and settings: each becomes a Change, or raises a CommandRefused.

The tree is Kafka's: `/brokers/topics/<name>` holds the id and the replicas, `…/partitions/<n>/state`
the leader, `/config/topics/<name>` what was set.  Each command is one transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.base.types import TopicPartition, Uuid
from barnabas.controller.changes import (
    Change,
    InvalidAssignment,
    InvalidPartitions,
    TopicExists,
    UnknownTopic,
)
from barnabas.metadata.deltas import ConfigChanged, PartitionsAdded, TopicCreated, TopicDeleted
from barnabas.metadata.image import ClusterImage, ConfigResourceType, PartitionImage, TopicImage
from barnabas.metadata.names import check_collision, check_topic_name, is_internal
from barnabas.metadata.placement import place_replicas
from barnabas.store import paths
from barnabas.store.documents import PartitionState, ReplicaAssignment, TopicAssignment, encode_config
from barnabas.store.tree import Create, Delete, Operation, SetData

__all__ = ["NewTopic", "add_partitions", "create_topic", "delete_topic", "set_config"]

Assignment = Sequence[Sequence[int]]
"""Replicas of each partition, the preferred leader first."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create: counts, or an assignment that implies them."""

    name: str
    partition_count: int = 1
    replication_factor: int = 1
    assignment: Assignment | None = None
    config: Mapping[str, str] = field(default_factory=dict)


def create_topic(image: ClusterImage, new: NewTopic, *, topic_id: Uuid, start_index: int) -> Change:
    """Raises TopicExists, InvalidAssignment, or what the name and the counts are refused for."""
    check_topic_name(new.name)
    if new.name in image.topics:
        raise TopicExists(f"Topic '{new.name}' already exists.")
    check_collision(new.name, image.topics)
    if new.assignment is not None:
        replicas = _checked_assignment(image, new.assignment)
    else:
        racks = {broker.id: broker.rack for broker in image.brokers.values()}
        replicas = place_replicas(racks, new.partition_count, new.replication_factor, start_index=start_index)
    states = tuple(_first_state(image, brokers) for brokers in replicas)
    assigned = {index: ReplicaAssignment(tuple(brokers)) for index, brokers in enumerate(replicas)}
    operations: list[Operation] = [
        Create(paths.topic(new.name), TopicAssignment(topic_id, assigned).encode()),
        Create(paths.partitions(new.name)),
    ]
    for index, state in enumerate(states):
        operations += _create_partition(image, TopicPartition(new.name, index), state)
    topic = TopicImage(new.name, topic_id, states, internal=is_internal(new.name))
    config_path = paths.config("topics", new.name)
    deltas: list[TopicCreated | ConfigChanged] = [TopicCreated(topic)]
    if new.config:
        operations.append(Create(config_path, encode_config(new.config)))
        deltas.append(ConfigChanged((ConfigResourceType.TOPIC, new.name), new.config))
    return Change(tuple(operations), tuple(deltas))


def add_partitions(
    image: ClusterImage, name: str, total: int, assignment: Assignment | None = None, *, start_index: int = 0
) -> Change:
    """Enlarges a topic to `total` partitions; `assignment` names the brokers of the new ones."""
    topic = _existing(image, name)
    have = len(topic.partitions)
    if total == have:
        raise InvalidPartitions(f"Topic already has {have} partition(s).")
    if total < have:
        raise InvalidPartitions(
            f"The topic {name} currently has {have} partition(s); {total} would not be an increase."
        )
    factor = len(topic.partitions[0].replicas)
    if assignment is not None:
        replicas = _checked_assignment(image, assignment)
        if len(replicas) != total - have:
            raise InvalidAssignment(
                f"{total - have} partitions are to be added, the assignment names {len(replicas)}"
            )
        if any(len(brokers) != factor for brokers in replicas):
            raise InvalidAssignment(f"every partition of {name} has {factor} replicas")
    else:
        racks = {broker.id: broker.rack for broker in image.brokers.values()}
        replicas = place_replicas(
            racks, total - have, min(factor, len(racks)), start_index=start_index, first_partition=have
        )
    states = tuple(_first_state(image, brokers) for brokers in replicas)
    assigned = {
        index: ReplicaAssignment(state.replicas, state.adding, state.removing)
        for index, state in enumerate((*topic.partitions, *states))
    }
    operations: list[Operation] = [SetData(paths.topic(name), TopicAssignment(topic.id, assigned).encode())]
    for index, state in enumerate(states, have):
        operations += _create_partition(image, TopicPartition(name, index), state)
    return Change(tuple(operations), (PartitionsAdded(name, states),))


def delete_topic(image: ClusterImage, name: str) -> Change:
    """Takes the topic and its settings out of the tree; the logs follow."""
    topic = _existing(image, name)
    operations: list[Operation] = []
    for index in range(len(topic.partitions)):
        tp = TopicPartition(name, index)
        operations += [Delete(paths.partition_state(tp)), Delete(paths.partition(tp))]
    operations += [Delete(paths.partitions(name)), Delete(paths.topic(name))]
    deltas: list[TopicDeleted | ConfigChanged] = [TopicDeleted(name)]
    if image.config(ConfigResourceType.TOPIC, name):
        operations.append(Delete(paths.config("topics", name)))
        deltas.append(ConfigChanged((ConfigResourceType.TOPIC, name), {}))
    return Change(tuple(operations), tuple(deltas))


def set_config(image: ClusterImage, kind: ConfigResourceType, name: str, values: Mapping[str, str]) -> Change:
    """Replaces all that is set for a topic or broker; the name "" is the default of all brokers."""
    if kind is ConfigResourceType.TOPIC:
        _existing(image, name)
    entity = "topics" if kind is ConfigResourceType.TOPIC else "brokers"
    path = paths.config(entity, name or paths.DEFAULT_ENTITY)
    there = bool(image.config(kind, name))
    operations: tuple[Operation, ...] = ()
    if values:
        data = encode_config(values)
        operations = (SetData(path, data),) if there else (Create(path, data),)
    elif there:
        operations = (Delete(path),)
    return Change(operations, (ConfigChanged((kind, name), values),))


def _existing(image: ClusterImage, name: str) -> TopicImage:
    topic = image.topics.get(name)
    if topic is None:
        raise UnknownTopic(f"The topic '{name}' does not exist.")
    return topic


def _first_state(image: ClusterImage, replicas: Sequence[int]) -> PartitionImage:
    alive = tuple(node for node in replicas if node in image.brokers)
    assert alive, f"placement chose only dead brokers: {replicas}"
    return PartitionImage(leader=alive[0], leader_epoch=0, isr=alive, replicas=tuple(replicas))


def _create_partition(
    image: ClusterImage, tp: TopicPartition, state: PartitionImage
) -> tuple[Operation, ...]:
    document = PartitionState(state.leader, state.leader_epoch, state.isr, image.controller_epoch)
    return Create(paths.partition(tp)), Create(paths.partition_state(tp), document.encode())


def _checked_assignment(image: ClusterImage, assignment: Assignment) -> list[tuple[int, ...]]:
    replicas = [tuple(brokers) for brokers in assignment]
    if not replicas:
        raise InvalidAssignment("the assignment names no partition")
    for index, brokers in enumerate(replicas):
        if not brokers:
            raise InvalidAssignment(f"partition {index} has no replica")
        if len(set(brokers)) != len(brokers):
            raise InvalidAssignment(f"partition {index} names a broker twice: {list(brokers)}")
        if len(brokers) != len(replicas[0]):
            raise InvalidAssignment("the partitions have different numbers of replicas")
        if unknown := [node for node in brokers if node not in image.brokers]:
            raise InvalidAssignment(f"partition {index} names brokers that are not up: {unknown}")
    return replicas
