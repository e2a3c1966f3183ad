"""The partitions on this broker, found by name or by topic id on every request."""

from collections.abc import Iterator

from barnabas.base.errors import StorageFault
from barnabas.base.types import TopicPartition
from barnabas.protocol.codes import ErrorCode
from barnabas.replication.partition import Partition

__all__ = ["PartitionTable"]


class PartitionTable:
    """Partitions by (topic, index); a plain pair finds one as well as a TopicPartition."""

    __slots__ = ("_offline", "_partitions")

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._offline: dict[tuple[str, int], StorageFault] = {}

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Partition]:
        return iter(list(self._partitions.values()))

    def get(self, topic: str, index: int) -> Partition | None:
        return self._partitions.get((topic, index))

    def add(self, partition: Partition) -> None:
        assert partition.topic_partition not in self._partitions, (
            f"{partition.topic_partition} is here already"
        )
        self._partitions[partition.topic_partition] = partition

    def remove(self, topic_partition: TopicPartition) -> Partition | None:
        self._offline.pop(topic_partition, None)
        return self._partitions.pop(topic_partition, None)

    def take_offline(self, topic_partition: TopicPartition, fault: StorageFault) -> Partition | None:
        """Its disk failed: it is not found any more, and `absence` says why; gives it if it was here."""
        self._offline[topic_partition] = fault
        return self._partitions.pop(topic_partition, None)

    def absence(self, topic: str, index: int) -> ErrorCode:
        """What to answer for a partition that `get` does not find."""
        if (topic, index) in self._offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def forget_topic(self, topic: str) -> None:
        """The topic is gone, and with it what was offline of it."""
        for key in [key for key in self._offline if key[0] == topic]:
            del self._offline[key]

    def of_topic(self, topic: str) -> list[Partition]:
        return [partition for partition in self if partition.topic_partition.topic == topic]

    def holds_records(self, topic: str) -> bool:
        """Whether anything was ever written to the topic's partitions here."""
        return any(partition.log.log_end_offset > 0 for partition in self.of_topic(topic))
