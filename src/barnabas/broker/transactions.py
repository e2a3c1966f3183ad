"""The transaction coordinator on this broker: wired to its log, loaded when its partitions are led here."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from barnabas.base.clock import Clock
from barnabas.base.errors import BarnabasError
from barnabas.broker.cluster import Cluster
from barnabas.broker.configs import ConfigAdmin
from barnabas.broker.coordinator_appends import CoordinatorAppends
from barnabas.broker.error_codes import code_of
from barnabas.broker.features import TRANSACTION_VERSION
from barnabas.broker.loop_timers import LoopTimers
from barnabas.broker.offload import Offload
from barnabas.broker.partitions import PartitionTable
from barnabas.broker.producer_ids import ProducerIds
from barnabas.broker.txn_log import TransactionTopicLog, replay_transactions
from barnabas.broker.txn_markers import LocalMarkers
from barnabas.coordinator.service import GroupCoordinator
from barnabas.coordinator.transactions import TransactionCoordinator
from barnabas.coordinator.txn_config import TransactionSettings
from barnabas.coordinator.txn_loading import TransactionLoad
from barnabas.coordinator.txn_ports import FaultPoint, TransactionSurroundings
from barnabas.metadata.deltas import ConfigChanged, Delta
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.names import TRANSACTION_STATE_TOPIC
from barnabas.protocol.codes import ErrorCode
from barnabas.replication.partition import Partition

__all__ = ["TransactionHost", "no_fault"]

_log = logging.getLogger(__name__)


def no_fault(point: FaultPoint) -> None:
    """Nothing stops a transaction: what everybody but the test kit wants."""


class _StoredProducerIds:
    """The coordinator's `ProducerIdSource` port: ids from the tree, which may have to be asked."""

    __slots__ = ("_ids", "_tasks")

    def __init__(self, ids: ProducerIds, tasks: set[asyncio.Task[None]]) -> None:
        self._ids = ids
        self._tasks = tasks

    def next_id(self, done: Callable[[ErrorCode, int], None]) -> None:
        task = asyncio.get_running_loop().create_task(self._next_id(done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _next_id(self, done: Callable[[ErrorCode, int], None]) -> None:
        try:
            producer_id = await self._ids.next()
        except BarnabasError as error:
            _log.error("no producer id could be had: %s", error)
            done(code_of(error), -1)
        else:
            done(ErrorCode.NONE, producer_id)


class TransactionHost:
    """Owns the coordinator's life; handlers call `coordinator` and `markers` themselves."""

    __slots__ = (
        "_appends",
        "_around",
        "_cluster",
        "_configs",
        "_led",
        "_offload",
        "_tasks",
        "coordinator",
        "markers",
    )

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
        producer_ids: ProducerIds,
        groups: GroupCoordinator,
        reach: Callable[[FaultPoint], None] = no_fault,
    ) -> None:
        self._cluster = cluster
        self._configs = configs
        self._offload = offload
        self._led: set[int] = set()  # partitions of the transaction topic
        self._tasks: set[asyncio.Task[None]] = set()
        self._appends = appends
        self.markers = LocalMarkers(partitions, appends, groups, reach)
        self._around = TransactionSurroundings(
            clock=clock,
            timers=timers,
            log=TransactionTopicLog(partitions, appends),
            topics=cluster,
            markers=self.markers,
            producer_ids=_StoredProducerIds(producer_ids, self._tasks),
            settings=TransactionSettings.of(configs.settings),
            version=lambda: cluster.image.features.get(TRANSACTION_VERSION, 0),
            reach=reach,
        )
        existing = cluster.image.topics.get(TRANSACTION_STATE_TOPIC)
        count = configs.settings.integer("transaction.state.log.num.partitions")
        self.coordinator = TransactionCoordinator(
            self._around, len(existing.partitions) if existing else count
        )

    def start(self) -> None:
        self.coordinator.start()

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.coordinator.stop()
        await self._appends.drain()

    def on_led(self, partition: Partition) -> None:
        """A partition is led here from now on; one of the transaction topic brings its transactions."""
        if partition.topic_partition.topic != TRANSACTION_STATE_TOPIC:
            return
        if not self._led:
            # Whoever made the topic chose how many partitions it has; ids are spread over those.
            made = self._cluster.image.topics[TRANSACTION_STATE_TOPIC]
            self.coordinator.table.partition_count = len(made.partitions)
        self._led.add(partition.topic_partition.partition)
        load = self.coordinator.begin_load(partition.topic_partition.partition, partition.leader_epoch)
        if load is None:
            return
        if partition.log.log_end_offset == partition.log.log_start_offset:
            self.coordinator.finish_load(load)
            return
        task = asyncio.get_running_loop().create_task(self._load(partition, load))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def on_gone(self, partition: Partition) -> None:
        if partition.topic_partition.topic == TRANSACTION_STATE_TOPIC:
            self._led.discard(partition.topic_partition.partition)
            self.coordinator.unload(partition.topic_partition.partition)

    async def follow(self, image: ClusterImage, deltas: Sequence[Delta]) -> None:
        if any(isinstance(delta, ConfigChanged) for delta in deltas):
            self._around.settings = TransactionSettings.of(self._configs.settings)

    async def _load(self, partition: Partition, load: TransactionLoad) -> None:
        try:
            await replay_transactions(
                partition.log,
                load,
                end_offset=partition.log.log_end_offset,
                chunk_bytes=self._configs.settings.integer("transaction.state.log.load.buffer.size"),
                offload=self._offload,
            )
        except BarnabasError as error:
            # Its ids stay unavailable (COORDINATOR_LOAD_IN_PROGRESS) rather than come back incomplete.
            _log.error("transactions of %s cannot be loaded: %s", partition.topic_partition, error)
            return
        self.coordinator.finish_load(load)
