"""What kafka-python 2 and 3 have in common: producer, consumer, group members."""

import logging
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaConnectionError, KafkaError

from tests.conformance.drivers import _driver
from tests.conformance.drivers._driver import HEARTBEAT_MS, METADATA_MS, Raw, collect, message, raw_bytes

TIMEOUT_S = 20
# kafka-python 3 loses the answer to SyncGroup if poll ends in that moment (compat/FINDINGS.md): poll rarely.
POLL_MS = 400
logging.basicConfig(level=logging.WARNING)


def raw_of(record: Any) -> Raw:
    return message(
        record.partition, record.offset, record.timestamp, record.key, record.value, list(record.headers)
    )


def raws_of(polled: dict[Any, list[Any]]) -> list[Raw]:
    return [raw_of(record) for records in polled.values() for record in records]


class Rebalances(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python 2 has no types
    count = 0

    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.count += 1


class GroupConsumer(_driver.Consumer):
    def __init__(self, consumer: Any, topic: str) -> None:
        self._consumer = consumer
        self._listener = Rebalances()
        consumer.subscribe([topic], listener=self._listener)

    def poll(self) -> list[Raw]:
        try:
            found = raws_of(self._consumer.poll(timeout_ms=POLL_MS))
        except KafkaConnectionError:
            # Version 3 gives up a poll when a restarting broker refuses the connection; its users poll again.
            found = []
        self.rebalances = self._listener.count
        return found

    def assignment(self) -> list[tuple[str, int]]:
        return [(each.topic, each.partition) for each in self._consumer.assignment()]

    def commit(self) -> None:
        self._consumer.commit()

    def close(self) -> None:
        self._consumer.close()


class KafkaPythonDriver(_driver.Driver):
    def code_of(self, error: BaseException) -> int | None:
        return getattr(error, "errno", None) if isinstance(error, KafkaError) else None

    def producer_settings(self, idempotent: bool) -> dict[str, Any]:
        raise NotImplementedError

    def produce(
        self,
        topic: str,
        messages: list[Raw],
        codec: str,
        acks: str,
        idempotent: bool,
        message_bytes_max: int,
    ) -> list[tuple[int, int]]:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap_servers,
            compression_type=None if codec == "none" else codec,
            acks="all" if acks == "all" else int(acks),
            max_request_size=message_bytes_max + 10_000,
            max_block_ms=TIMEOUT_S * 1000,
            linger_ms=5,
            **self.producer_settings(idempotent),
        )
        try:
            futures = [
                producer.send(
                    topic,
                    value=raw_bytes(raw["value"]),
                    key=raw_bytes(raw["key"]),
                    headers=[(name, raw_bytes(content)) for name, content in raw["headers"]],
                    partition=raw["partition"],
                    timestamp_ms=raw["timestamp"],
                )
                for raw in messages
            ]
            producer.flush(timeout=TIMEOUT_S)
            placed = [future.get(timeout=TIMEOUT_S) for future in futures]
        finally:
            producer.close(timeout=TIMEOUT_S)
        return [(each.partition, each.offset) for each in placed]

    def plain_consumer(self, **settings: Any) -> Any:
        return KafkaConsumer(
            bootstrap_servers=self.bootstrap_servers,
            enable_auto_commit=False,
            reconnect_backoff_max_ms=200,
            **settings,
        )

    def read(self, topic: str, partition: int, start: int, count: int, fetch_bytes_max: int) -> list[Raw]:
        consumer = self.plain_consumer(
            auto_offset_reset="earliest", max_partition_fetch_bytes=fetch_bytes_max
        )
        where = TopicPartition(topic, partition)
        consumer.assign([where])
        consumer.seek(where, start)
        try:
            return collect(lambda: raws_of(consumer.poll(timeout_ms=100)), count)
        finally:
            consumer.close()

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        consumer = self.plain_consumer()
        where = TopicPartition(topic, partition)
        try:
            return consumer.beginning_offsets([where])[where], consumer.end_offsets([where])[where]
        finally:
            consumer.close()

    def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        consumer = self.plain_consumer()
        where = TopicPartition(topic, partition)
        try:
            found = consumer.offsets_for_times({where: timestamp})[where]
        finally:
            consumer.close()
        return None if found is None else int(found.offset)

    def consumer(
        self,
        group: str,
        topic: str,
        reset: str,
        instance_id: str | None,
        session_timeout_ms: int,
        cooperative: bool,
    ) -> _driver.Consumer:
        static = {} if instance_id is None else {"group_instance_id": instance_id}
        consumer = self.plain_consumer(
            group_id=group,
            auto_offset_reset=reset,
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            retry_backoff_ms=20,
            metadata_max_age_ms=METADATA_MS,
            **static,
        )
        return GroupConsumer(consumer, topic)

    def committed(self, group: str, topic: str, partition: int) -> int | None:
        consumer = self.plain_consumer(group_id=group)
        try:
            found: int | None = consumer.committed(TopicPartition(topic, partition))
        finally:
            consumer.close()
        return found
