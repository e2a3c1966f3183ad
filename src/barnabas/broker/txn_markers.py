"""Markers that end transactions in the partitions of this broker; groups hear of those in their offsets.

K1  a partition of `__consumer_offsets` gets its marker only while its groups are loaded: a load reads up to
    the end the log had when it began, and would miss a marker behind it
K2  the group coordinator is told of a marker after it is durable, and before anybody else is
"""

from collections.abc import Callable, Collection, Mapping

from barnabas.base.types import TopicPartition
from barnabas.broker.coordinator_appends import CoordinatorAppends
from barnabas.broker.gather import Gather
from barnabas.broker.partitions import PartitionTable
from barnabas.coordinator.service import GroupCoordinator
from barnabas.coordinator.txn_ports import FaultPoint, Marker
from barnabas.metadata.names import GROUP_METADATA_TOPIC
from barnabas.protocol.codes import ErrorCode
from barnabas.records.builder import end_txn_marker

__all__ = ["LocalMarkers"]

Done = Callable[[Mapping[TopicPartition, ErrorCode]], None]


class LocalMarkers:
    """Writes markers to the partitions here; implements the coordinator's `MarkerWriter` port."""

    __slots__ = ("_appends", "_groups", "_partitions", "_reach")

    def __init__(
        self,
        partitions: PartitionTable,
        appends: CoordinatorAppends,
        groups: GroupCoordinator,
        reach: Callable[[FaultPoint], None],
    ) -> None:
        self._partitions = partitions
        self._appends = appends
        self._groups = groups
        self._reach = reach

    def write(self, marker: Marker, partitions: Collection[TopicPartition], done: Done) -> None:
        gather: Gather[TopicPartition, ErrorCode] = Gather(partitions, done)
        for partition in partitions:
            self._write_one(marker, partition, gather)

    def _write_one(
        self, marker: Marker, name: TopicPartition, gather: Gather[TopicPartition, ErrorCode]
    ) -> None:
        partition = self._partitions.get(*name)
        if partition is None:
            gather.done(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        holds_offsets = name.topic == GROUP_METADATA_TOPIC
        if holds_offsets and self._groups.table.owned(name.partition) is None:
            gather.done(name, ErrorCode.NOT_LEADER_OR_FOLLOWER)  # K1
            return

        def appended(error: ErrorCode) -> None:
            if not error:
                if holds_offsets:
                    self._groups.offsets.end_transaction(
                        name.partition, marker.producer_id, committed=marker.committed
                    )
                self._reach(FaultPoint.MARKED_ONE)
            gather.done(name, error)

        batch = end_txn_marker(
            committed=marker.committed,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp=self._appends.now_ms,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
        )
        self._appends.append(partition, batch, appended)
