"""The group coordinator on this broker: wired to its log, loaded when its partitions are led here."""

import asyncio
import logging
import uuid
from collections.abc import Sequence

from barnabas.base.clock import Clock
from barnabas.base.errors import BarnabasError
from barnabas.broker.cluster import Cluster
from barnabas.broker.configs import ConfigAdmin
from barnabas.broker.coordinator_appends import CoordinatorAppends
from barnabas.broker.loop_timers import LoopTimers
from barnabas.broker.offload import Offload
from barnabas.broker.offsets_log import OffsetsTopicLog, replay_groups
from barnabas.broker.partitions import PartitionTable
from barnabas.coordinator.config import GroupSettings
from barnabas.coordinator.loading import PartitionLoad
from barnabas.coordinator.ports import Surroundings
from barnabas.coordinator.service import GroupCoordinator
from barnabas.metadata.deltas import ConfigChanged, Delta, TopicDeleted
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.names import GROUP_METADATA_TOPIC
from barnabas.replication.partition import Partition

__all__ = ["GroupHost"]

_log = logging.getLogger(__name__)


class GroupHost:
    """Owns the coordinator's life; handlers call `coordinator` itself."""

    __slots__ = ("_appends", "_around", "_cluster", "_configs", "_led", "_loads", "_offload", "coordinator")

    def __init__(
        self,
        *,
        cluster: Cluster,
        configs: ConfigAdmin,
        partitions: PartitionTable,
        appends: CoordinatorAppends,
        timers: LoopTimers,
        clock: Clock,
        offload: Offload,
    ) -> None:
        self._appends = appends
        self._cluster = cluster
        self._configs = configs
        self._offload = offload
        self._led: set[int] = set()  # partitions of the offsets topic
        self._loads: set[asyncio.Task[None]] = set()
        self._around = Surroundings(
            clock=clock,
            timers=timers,
            log=OffsetsTopicLog(partitions, appends, lambda: configs.settings),
            topics=cluster,
            new_id=lambda: str(uuid.uuid4()),
            settings=GroupSettings.of(configs.settings),
        )
        existing = cluster.image.topics.get(GROUP_METADATA_TOPIC)
        count = configs.settings.integer("offsets.topic.num.partitions")
        self.coordinator = GroupCoordinator(self._around, len(existing.partitions) if existing else count)

    def start(self) -> None:
        self.coordinator.start()

    async def stop(self) -> None:
        for load in list(self._loads):
            load.cancel()
        await asyncio.gather(*self._loads, return_exceptions=True)
        await self._appends.drain()
        self.coordinator.stop()

    def on_led(self, partition: Partition) -> None:
        """A partition is led here from now on; one of the offsets topic brings its groups."""
        if partition.topic_partition.topic != GROUP_METADATA_TOPIC:
            return
        if not self._led:
            # Whoever made the topic chose how many partitions it has; groups are spread over those.
            made = self._cluster.image.topics[GROUP_METADATA_TOPIC]
            self.coordinator.table.partition_count = len(made.partitions)
        self._led.add(partition.topic_partition.partition)
        load = self.coordinator.begin_load(partition.topic_partition.partition, partition.leader_epoch)
        if load is None:
            return
        if partition.log.log_end_offset == partition.log.log_start_offset:
            self.coordinator.finish_load(load)
            return
        task = asyncio.get_running_loop().create_task(self._load(partition, load))
        self._loads.add(task)
        task.add_done_callback(self._loads.discard)

    def on_gone(self, partition: Partition) -> None:
        if partition.topic_partition.topic == GROUP_METADATA_TOPIC:
            self._led.discard(partition.topic_partition.partition)
            self.coordinator.unload(partition.topic_partition.partition)

    async def follow(self, image: ClusterImage, deltas: Sequence[Delta]) -> None:
        deleted = [delta.name for delta in deltas if isinstance(delta, TopicDeleted)]
        if deleted:
            self.coordinator.offsets.topics_deleted(deleted)
        if any(isinstance(delta, ConfigChanged) for delta in deltas):
            self._around.settings = GroupSettings.of(self._configs.settings)

    async def _load(self, partition: Partition, load: PartitionLoad) -> None:
        try:
            await replay_groups(
                partition.log,
                load,
                end_offset=partition.log.log_end_offset,
                chunk_bytes=self._configs.settings.integer("offsets.load.buffer.size"),
                offload=self._offload,
            )
        except BarnabasError as error:
            # Its groups stay unavailable (COORDINATOR_LOAD_IN_PROGRESS) rather than come back incomplete.
            _log.error("groups of %s cannot be loaded: %s", partition.topic_partition, error)
            return
        self.coordinator.finish_load(load)
