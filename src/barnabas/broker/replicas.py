"""The logs of this broker brought in line with the cluster image: made, led, reconfigured, deleted.

R1  A log exists for every partition that the image places here, and for no other.
R2  A log whose topic id is not the image's belongs to a topic that was deleted; it goes.
R3  A disk that fails takes the partitions of its data folder offline until the next start; a full disk is no
    failure: appends are refused while it lasts.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from barnabas.base.errors import StorageFault
from barnabas.base.types import TopicPartition
from barnabas.broker.configs import ConfigAdmin
from barnabas.broker.partitions import PartitionTable
from barnabas.log.directories import LogDirectories
from barnabas.log.errors import DiskFull
from barnabas.log.making import NewPartition
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.deltas import ConfigChanged, Delta, PartitionsAdded, TopicCreated, TopicDeleted
from barnabas.metadata.image import ClusterImage, ConfigResourceType, PartitionImage, TopicImage
from barnabas.replication.partition import Partition

__all__ = ["LocalReplicas"]

_log = logging.getLogger(__name__)

MADE_AT_ONCE = 128  # logs whose making shares threads and one sync of the data folder

Listener = Callable[[Partition], None]


class LocalReplicas:
    """Follows the image.  `led` hears of every partition led from now on, `gone` of every one removed."""

    __slots__ = (
        "_configs",
        "_directories",
        "_gone",
        "_high_watermarks",
        "_led",
        "_node_id",
        "_on_moved",
        "_partitions",
    )

    def __init__(
        self,
        *,
        node_id: int,
        directories: LogDirectories,
        partitions: PartitionTable,
        configs: ConfigAdmin,
        on_moved: Callable[[TopicPartition], None],
        led: Listener,
        gone: Listener,
    ) -> None:
        self._node_id = node_id
        self._directories = directories
        self._partitions = partitions
        self._configs = configs
        self._on_moved = on_moved
        self._led = led
        self._gone = gone
        self._high_watermarks: dict[TopicPartition, int] = {}

    async def start(self, image: ClusterImage) -> None:
        """Opens what the image places here and deletes what it does not know (R1, R2)."""
        self._high_watermarks = self._directories.high_watermarks
        for log in self._directories:
            tp = log.topic_partition
            topic = image.topics.get(tp.topic)
            if topic is None or topic.id != log.topic_id or image.partition(*tp) is None:
                _log.info("%s belongs to no topic any more; its log goes", tp)
                self._directories.delete(tp, delay_ms=0)
        for topic in image.topics.values():
            await self._lead_all(topic, 0)

    async def follow(self, image: ClusterImage, deltas: Sequence[Delta]) -> None:
        """Carries out what the deltas mean for the logs here."""
        for delta in deltas:
            match delta:
                case TopicCreated(topic):
                    await self._lead_all(topic, 0)
                case PartitionsAdded(name, added):
                    topic = image.topics[name]
                    await self._lead_all(topic, len(topic.partitions) - len(added))
                case TopicDeleted(name):
                    self._delete(name)
                case ConfigChanged((kind, name), _):
                    self._reconfigure(image, kind, name)

    async def _lead_all(self, topic: TopicImage, first: int) -> None:
        """Leads the partitions from index `first` on that are placed here, some at a time."""
        here = [
            (TopicPartition(topic.name, index), state)
            for index, state in enumerate(topic.partitions[first:], first)
            if self._node_id in state.replicas
        ]
        config = self._configs.topic_config(topic.name)
        for start in range(0, len(here), MADE_AT_ONCE):
            some = here[start : start + MADE_AT_ONCE]
            making = self._directories.begin_making([NewPartition(tp, topic.id, config) for tp, _ in some])
            if making.placed:
                await asyncio.to_thread(making.run)
            logs = self._directories.finish_making(making)
            for tp, state in some:
                self._lead(topic, tp, state, logs[tp])
            await asyncio.sleep(0)  # other work gets its turn, also when all logs were there

    def _lead(
        self, topic: TopicImage, tp: TopicPartition, state: PartitionImage, log: PartitionLog | StorageFault
    ) -> None:
        if isinstance(log, StorageFault):
            # The partition stays offline; the others serve.
            _log.error("%s is offline: %s", tp, log)
            self._partitions.take_offline(tp, log)
            return
        partition = Partition(
            tp,
            topic.id,
            log,
            local=self._node_id,
            on_moved=self._on_moved,
            on_disk_fault=self.disk_failed,
        )
        partition.lead(
            epoch=state.leader_epoch,
            replicas=state.replicas,
            in_sync=state.isr,
            high_watermark=self._high_watermarks.pop(tp, 0),
        )
        self._partitions.add(partition)
        self._led(partition)

    def disk_failed(self, log: PartitionLog, fault: StorageFault) -> None:
        """The disk of a log failed: every partition of its data folder goes offline, no other (R3)."""
        if isinstance(fault, DiskFull):
            return
        for tp in self._directories.fail(log, fault):
            lost = self._partitions.take_offline(tp, fault)
            if lost is not None:
                lost.resign()
                self._gone(lost)

    def _delete(self, topic: str) -> None:
        self._partitions.forget_topic(topic)
        for partition in self._partitions.of_topic(topic):
            self._partitions.remove(partition.topic_partition)
            partition.resign()
            self._gone(partition)
            self._directories.delete(partition.topic_partition)

    def _reconfigure(self, image: ClusterImage, kind: ConfigResourceType, name: str) -> None:
        if kind is ConfigResourceType.BROKER:
            self._configs.refresh(image)
        elif kind is not ConfigResourceType.TOPIC:
            return
        configs = {
            topic: self._configs.topic_config(topic)
            for topic in (image.topics if kind is ConfigResourceType.BROKER else [name])
            if topic in image.topics
        }
        for partition in self._partitions:
            config = configs.get(partition.topic_partition.topic)
            if config is not None:
                partition.log.config = config
