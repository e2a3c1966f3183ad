"""How one cluster image becomes the next.

`apply` is a pure function: the new image shares every object that did not change with the old one, and
the old one stays as it was.  A delta that contradicts the image is refused as a whole batch: deltas
come from the one writer of the cluster's state, so a contradiction is a bug or a lost change.

D1  a topic id is never bound to two topics, a name never to two ids at once
D2  within a topic id, a partition's leader epoch and partition epoch never go back
D3  a broker is replaced only by a registration with a higher epoch; the controller epoch never goes back
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from barnabas.base.errors import InvariantBroken
from barnabas.base.types import Uuid
from barnabas.metadata.image import (
    BrokerImage,
    ClusterImage,
    ConfigResource,
    ConfigResourceType,
    PartitionImage,
    TopicImage,
)

__all__ = [
    "BrokerDown",
    "BrokerUp",
    "ClusterNamed",
    "ConfigChanged",
    "ControllerChanged",
    "Delta",
    "DeltaRefused",
    "FeaturesChanged",
    "PartitionChanged",
    "PartitionsAdded",
    "TopicCreated",
    "TopicDeleted",
    "apply",
]


class DeltaRefused(InvariantBroken):
    """A delta contradicts the image it was to change."""


@dataclass(frozen=True, slots=True)
class ClusterNamed:
    """The cluster has its id."""

    cluster_id: str


@dataclass(frozen=True, slots=True)
class ControllerChanged:
    """Another broker, or none (-1), is the controller."""

    controller_id: int
    controller_epoch: int


@dataclass(frozen=True, slots=True)
class BrokerUp:
    """A broker registered, for the first time or again."""

    broker: BrokerImage


@dataclass(frozen=True, slots=True)
class BrokerDown:
    """A broker's registration is gone."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class TopicCreated:
    """A topic with all its first partitions."""

    topic: TopicImage


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """A topic and its config are gone."""

    name: str


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    """More partitions, numbered on from the last."""

    topic: str
    partitions: tuple[PartitionImage, ...]


@dataclass(frozen=True, slots=True)
class PartitionChanged:
    """One partition's new state."""

    topic: str
    partition: int
    state: PartitionImage


@dataclass(frozen=True, slots=True)
class ConfigChanged:
    """All that is now set for a resource; empty removes it."""

    resource: ConfigResource
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FeaturesChanged:
    """All finalized feature levels."""

    features: Mapping[str, int]
    epoch: int


Delta = (
    ClusterNamed
    | ControllerChanged
    | BrokerUp
    | BrokerDown
    | TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | PartitionChanged
    | ConfigChanged
    | FeaturesChanged
)


def apply(image: ClusterImage, deltas: Iterable[Delta]) -> ClusterImage:
    """The image after all of `deltas` in order.  Raises DeltaRefused; then there is no new image.

    Costs one copy of each mapping that changes, however many deltas there are.
    """
    draft = _Draft(image)
    for delta in deltas:
        draft.apply(delta)
    return draft.image()


class _Draft:
    """The next image in the making: mappings are copied at their first change."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._brokers: dict[int, BrokerImage] | None = None
        self._topics: dict[str, TopicImage] | None = None
        self._topics_by_id: dict[Uuid, TopicImage] | None = None
        self._configs: dict[ConfigResource, Mapping[str, str]] | None = None

    def image(self) -> ClusterImage:
        old = self._image
        return replace(
            old,
            brokers=old.brokers if self._brokers is None else self._brokers,
            topics=old.topics if self._topics is None else self._topics,
            topics_by_id=old.topics_by_id if self._topics_by_id is None else self._topics_by_id,
            configs=old.configs if self._configs is None else self._configs,
        )

    def apply(self, delta: Delta) -> None:
        match delta:
            case TopicCreated(topic):
                self._create(topic)
            case TopicDeleted(name):
                self._delete(name)
            case PartitionsAdded(topic, partitions):
                old = self._topic(topic)
                self._put(replace(old, partitions=old.partitions + partitions))
            case PartitionChanged(topic, partition, state):
                self._change(topic, partition, state)
            case BrokerUp(broker):
                self._register(broker)
            case BrokerDown(broker_id):
                if self._broker_map().pop(broker_id, None) is None:
                    raise DeltaRefused(f"broker {broker_id} is down already")
            case ConfigChanged(resource, values):
                configs = self._config_map()
                if values:
                    configs[resource] = dict(values)
                else:
                    configs.pop(resource, None)
            case ControllerChanged(controller_id, epoch):
                if epoch < self._image.controller_epoch:
                    raise DeltaRefused(f"D3: controller epoch {epoch} after {self._image.controller_epoch}")
                self._image = replace(self._image, controller_id=controller_id, controller_epoch=epoch)
            case FeaturesChanged(features, epoch):
                self._image = replace(self._image, features=dict(features), features_epoch=epoch)
            case ClusterNamed(cluster_id):
                if self._image.cluster_id not in ("", cluster_id):
                    raise DeltaRefused(f"the cluster is {self._image.cluster_id}, not {cluster_id}")
                self._image = replace(self._image, cluster_id=cluster_id)

    def _create(self, topic: TopicImage) -> None:
        topics, topics_by_id = self._topic_maps()
        if topic.name in topics:
            raise DeltaRefused(f"D1: topic {topic.name} exists")
        if topic.id in topics_by_id:
            raise DeltaRefused(
                f"D1: {topic.name} has the id of {topics_by_id[topic.id].name}: {topic.id.hex()}"
            )
        self._put(topic)

    def _delete(self, name: str) -> None:
        old = self._topic(name)
        topics, topics_by_id = self._topic_maps()
        del topics[name]
        del topics_by_id[old.id]
        self._config_map().pop((ConfigResourceType.TOPIC, name), None)

    def _change(self, name: str, index: int, state: PartitionImage) -> None:
        topic = self._topic(name)
        if not 0 <= index < len(topic.partitions):
            raise DeltaRefused(f"{name} has no partition {index}")
        old = topic.partitions[index]
        if state.leader_epoch < old.leader_epoch:
            raise DeltaRefused(
                f"D2: {name}-{index}: leader epoch {state.leader_epoch} after {old.leader_epoch}"
            )
        if state.partition_epoch < old.partition_epoch:
            raise DeltaRefused(
                f"D2: {name}-{index}: partition epoch {state.partition_epoch} after {old.partition_epoch}"
            )
        partitions = (*topic.partitions[:index], state, *topic.partitions[index + 1 :])
        self._put(replace(topic, partitions=partitions))

    def _register(self, broker: BrokerImage) -> None:
        brokers = self._broker_map()
        old = brokers.get(broker.id)
        if old is not None and broker.epoch <= old.epoch:
            raise DeltaRefused(f"D3: broker {broker.id}: epoch {broker.epoch} after {old.epoch}")
        brokers[broker.id] = broker

    def _topic(self, name: str) -> TopicImage:
        topics = self._image.topics if self._topics is None else self._topics
        topic = topics.get(name)
        if topic is None:
            raise DeltaRefused(f"topic {name} is not there")
        return topic

    def _put(self, topic: TopicImage) -> None:
        topics, topics_by_id = self._topic_maps()
        topics[topic.name] = topics_by_id[topic.id] = topic

    def _topic_maps(self) -> tuple[dict[str, TopicImage], dict[Uuid, TopicImage]]:
        if self._topics is None or self._topics_by_id is None:
            self._topics = dict(self._image.topics)
            self._topics_by_id = dict(self._image.topics_by_id)
        return self._topics, self._topics_by_id

    def _broker_map(self) -> dict[int, BrokerImage]:
        if self._brokers is None:
            self._brokers = dict(self._image.brokers)
        return self._brokers

    def _config_map(self) -> dict[ConfigResource, Mapping[str, str]]:
        if self._configs is None:
            self._configs = dict(self._image.configs)
        return self._configs
