"""Topics made, enlarged and deleted on this broker: settings filled in, decisions carried out.

The deciding is `controller.topics`; this adds what only a running broker has: defaults from its
settings, fresh ids, and the cluster to commit to.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from barnabas.base.config import Settings
from barnabas.base.types import Uuid
from barnabas.broker.cluster import Cluster
from barnabas.controller.changes import Change, CommandRefused, TopicExists
from barnabas.controller.topics import NewTopic, add_partitions, create_topic, delete_topic
from barnabas.log.config import TOPIC
from barnabas.metadata.deltas import TopicCreated
from barnabas.metadata.image import ClusterImage, TopicImage
from barnabas.metadata.names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC

__all__ = ["DEFAULT_COUNT", "PARTITIONS_PER_COMMAND_MAX", "TooManyPartitions", "TopicAdmin"]

DEFAULT_COUNT = -1
"""A partition count or replication factor that the broker's settings fill in."""

PARTITIONS_PER_COMMAND_MAX = 10_000
"""As in Apache Kafka: more at once would hold everybody else up."""


class TooManyPartitions(CommandRefused):
    """One command asks for more partitions than are made in one go."""


class TopicAdmin:
    """What handlers call.  `new_id` gives a fresh topic id, `start_index` where placement begins."""

    __slots__ = ("_cluster", "_new_id", "_settings", "_start_index")

    def __init__(
        self,
        cluster: Cluster,
        settings: Callable[[], Settings],
        *,
        new_id: Callable[[], Uuid],
        start_index: Callable[[int], int],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._new_id = new_id
        self._start_index = start_index

    async def create(self, new: NewTopic, *, validate_only: bool = False) -> TopicImage:
        """The new topic's image.  Raises ConfigFault and what `create_topic` refuses."""
        TOPIC.parse(new.config)
        wanted = self._with_defaults(new)
        _check_count(wanted.partition_count if wanted.assignment is None else len(wanted.assignment))

        def decide(image: ClusterImage) -> Change:
            start = self._start_index(max(len(image.brokers), 1))
            return create_topic(image, wanted, topic_id=self._new_id(), start_index=start)

        if validate_only:
            change = decide(self._cluster.image)
        else:
            change = await self._cluster.commit(decide)
        created = change.deltas[0]
        assert isinstance(created, TopicCreated), "a creation begins with the topic"
        return created.topic

    async def ensure(self, name: str) -> TopicImage:
        """The topic, created with the broker's defaults if it is not there."""
        if name == GROUP_METADATA_TOPIC:
            new = self._offsets_topic()
        elif name == TRANSACTION_STATE_TOPIC:
            new = self._transactions_topic()
        else:
            new = NewTopic(name, DEFAULT_COUNT, DEFAULT_COUNT)
        try:
            return await self.create(new)
        except TopicExists:
            return self._cluster.image.topics[name]

    async def add_partitions(
        self, name: str, total: int, assignment: Sequence[Sequence[int]] | None, *, validate_only: bool
    ) -> None:
        def decide(image: ClusterImage) -> Change:
            topic = image.topics.get(name)
            _check_count(total - len(topic.partitions) if topic else 0)
            start = self._start_index(max(len(image.brokers), 1))
            return add_partitions(image, name, total, assignment, start_index=start)

        if validate_only:
            decide(self._cluster.image)
        else:
            await self._cluster.commit(decide)

    async def delete(self, name: str) -> None:
        await self._cluster.commit(lambda image: delete_topic(image, name))

    def _with_defaults(self, new: NewTopic) -> NewTopic:
        settings = self._settings()
        count, factor = new.partition_count, new.replication_factor
        return replace(
            new,
            partition_count=settings.integer("num.partitions") if count == DEFAULT_COUNT else count,
            replication_factor=settings.integer("default.replication.factor")
            if factor == DEFAULT_COUNT
            else factor,
        )

    def _offsets_topic(self) -> NewTopic:
        settings = self._settings()
        config: Mapping[str, str] = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(settings.integer("offsets.topic.segment.bytes")),
        }
        brokers = len(self._cluster.image.brokers)
        return NewTopic(
            GROUP_METADATA_TOPIC,
            settings.integer("offsets.topic.num.partitions"),
            max(1, min(settings.integer("offsets.topic.replication.factor"), brokers)),
            config=config,
        )

    def _transactions_topic(self) -> NewTopic:
        settings = self._settings()
        brokers = len(self._cluster.image.brokers)
        replicas = max(1, min(settings.integer("transaction.state.log.replication.factor"), brokers))
        config: Mapping[str, str] = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "unclean.leader.election.enable": "false",
            # More than there are replicas could never be reached.
            "min.insync.replicas": str(min(settings.integer("transaction.state.log.min.isr"), replicas)),
            "segment.bytes": str(settings.integer("transaction.state.log.segment.bytes")),
        }
        return NewTopic(
            TRANSACTION_STATE_TOPIC,
            settings.integer("transaction.state.log.num.partitions"),
            replicas,
            config=config,
        )


def _check_count(count: int) -> None:
    if count > PARTITIONS_PER_COMMAND_MAX:
        raise TooManyPartitions("Excessively large number of partitions per request.")
