"""The cluster at one moment: brokers, topics, partitions, configs, features.

I1  an image never changes; whoever holds one may keep reading it while newer ones are made
I2  `topics` and `topics_by_id` hold the same TopicImage objects
I3  a partition's leader is -1 or one of its replicas; its isr is part of its replicas;
    adding and removing replicas are part of its replicas
I4  a topic's partitions are numbered from 0 without a gap

The mappings are plain dicts behind a read-only type: a request looks a topic up in one dict access.
Owns no rule of how images change; that is `deltas`.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from barnabas.base.types import TopicPartition, Uuid

__all__ = [
    "NO_LEADER",
    "BrokerImage",
    "ClusterImage",
    "ConfigResource",
    "ConfigResourceType",
    "Endpoint",
    "PartitionImage",
    "TopicImage",
]

NO_LEADER = -1
_NO_CONFIG: Mapping[str, str] = {}


class ConfigResourceType(enum.IntEnum):
    """What a config belongs to; the numbers are those of the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


# The name of a BROKER resource is its id in digits, "" stands for the default of all brokers.
ConfigResource = tuple[ConfigResourceType, str]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where clients of one listener reach a broker."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """A live broker; `epoch` rises with every registration of the same id."""

    id: int
    epoch: int
    endpoints: Mapping[str, Endpoint]  # by listener name
    rack: str | None = None
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # name -> (min, max)


@dataclass(frozen=True, slots=True)
class PartitionImage:
    """Who holds a partition; `partition_epoch` is the store's version of this state."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    partition_epoch: int = 0
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        replicas = set(self.replicas)
        assert len(replicas) == len(self.replicas), f"I3: a replica is named twice: {self}"
        assert self.leader == NO_LEADER or self.leader in replicas, f"I3: leader is no replica: {self}"
        assert replicas.issuperset(self.isr), f"I3: isr is not part of the replicas: {self}"
        assert replicas.issuperset(self.adding), f"I3: adding is not part of the replicas: {self}"
        assert replicas.issuperset(self.removing), f"I3: removing is not part of the replicas: {self}"
        assert replicas.issuperset(self.offline), f"I3: offline is not part of the replicas: {self}"


@dataclass(frozen=True, slots=True)
class TopicImage:
    """One topic; `internal` ones are written by the cluster itself."""

    name: str
    id: Uuid
    partitions: tuple[PartitionImage, ...]
    internal: bool = False


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """The whole cluster.  Made by `deltas.apply` from an older image; the empty one is the start."""

    cluster_id: str = ""
    controller_id: int = -1
    controller_epoch: int = 0
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topics_by_id: Mapping[Uuid, TopicImage] = field(default_factory=dict)
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    features_epoch: int = -1

    def partition(self, topic: str, partition: int) -> PartitionImage | None:
        """The partition, or None when the topic or the number is not there."""
        image = self.topics.get(topic)
        if image is None or not 0 <= partition < len(image.partitions):
            return None
        return image.partitions[partition]

    def config(self, resource_type: ConfigResourceType, name: str) -> Mapping[str, str]:
        """What was set for the resource; empty when nothing was."""
        return self.configs.get((resource_type, name), _NO_CONFIG)

    def partitions_of(self, broker_id: int) -> Iterator[tuple[TopicPartition, PartitionImage]]:
        """Every partition that has a replica on the broker."""
        for topic in self.topics.values():
            for index, partition in enumerate(topic.partitions):
                if broker_id in partition.replicas:
                    yield TopicPartition(topic.name, index), partition
