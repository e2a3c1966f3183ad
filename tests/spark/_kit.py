"""Small tools of the Spark tests: topics with known records, and their rows read back without Spark."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.admin_types import OffsetSpec
from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer


class Topics:
    """Topics and records of one cluster."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = Admin({"bootstrap.servers": bootstrap})
        self.producer = Producer({"bootstrap.servers": bootstrap})

    def create(self, topic: str, partitions: int = 1, *, config: Mapping[str, str] | None = None) -> None:
        self.admin.create_topic(topic, partitions, 1, configs=config)

    def fill(
        self,
        topic: str,
        count: int,
        *,
        partition: int | None = None,
        first: int = 0,
        timestamp_ms: int | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        """Records k<i> -> v<i> for i from `first`; without a partition they go round all of them."""
        total = len(self.producer.partitions_for(topic))
        for number in range(first, first + count):
            self.producer.send(
                topic,
                f"v{number}".encode(),
                key=f"k{number}".encode(),
                partition=number % total if partition is None else partition,
                timestamp_ms=timestamp_ms,
                headers=list(headers),
            )
        self.producer.flush()

    def end_offsets(self, topic: str) -> list[int]:
        """The end of each partition."""
        count = len(self.admin.describe_topic(topic).partitions)
        asked = {TopicPartition(topic, index): OffsetSpec.LATEST for index in range(count)}
        return [found.offset for found in self.admin.list_offsets(asked).check().values()]

    def values(self, topic: str, *, isolation: str = "read_uncommitted") -> list[bytes]:
        """The values of all records that are there now, partition after partition."""
        settings = {
            "bootstrap.servers": self.bootstrap,
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
        }
        with Consumer(settings) as consumer:
            partitions = [
                TopicPartition(topic, index) for index in range(len(consumer.partitions_for(topic)))
            ]
            consumer.assign(partitions)
            ends = consumer.end_offsets(*partitions)
            found: dict[TopicPartition, list[bytes]] = {each: [] for each in partitions}
            while any(consumer.position(each) < ends[each] for each in partitions):
                for record in consumer.poll(0.2):
                    found[TopicPartition(topic, record.partition)].append(record.value or b"")
        return [value for each in partitions for value in found[each]]

    def close(self) -> None:
        self.producer.close()
        self.admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
