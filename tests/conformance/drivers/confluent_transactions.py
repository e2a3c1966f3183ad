"""confluent-kafka (librdkafka) as a driver of transactions."""

from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.conformance.drivers._driver import HEARTBEAT_MS, Refused, serve
from tests.conformance.drivers._transactions import Reader, TransactionalProducer, TransactionDriver

TIMEOUT_S = 20


class ConfluentProducer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._producer = Producer(settings)
        self._producer.init_transactions(TIMEOUT_S)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, values: list[str]) -> None:
        failures: list[Any] = []

        def delivered(error: Any, _message: Any) -> None:
            if error is not None:
                failures.append(error)

        for value in values:
            self._producer.produce(topic, value, partition=partition, on_delivery=delivered)
        self._producer.flush(TIMEOUT_S)
        if failures:
            raise Refused(failures[0].code(), str(failures[0]))

    def send_offsets(self, reader: Any, topic: str, offset: int, group: str) -> None:
        self._producer.send_offsets_to_transaction(
            [TopicPartition(topic, 0, offset)], reader.consumer.consumer_group_metadata(), TIMEOUT_S
        )

    def commit(self) -> None:
        self._producer.commit_transaction(TIMEOUT_S)

    def abort(self) -> None:
        self._producer.abort_transaction(TIMEOUT_S)

    def close(self) -> None:
        self._producer.close()


class ConfluentReader:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.consumer = Consumer(settings)

    def poll(self) -> list[tuple[str, int]]:
        found = []
        for record in self.consumer.consume(100, 0.05):
            if error := record.error():
                raise KafkaException(error)
            found.append(((record.value() or b"").decode(), int(record.offset() or 0)))
        return found

    def close(self) -> None:
        self.consumer.close()


class ConfluentDriver(TransactionDriver):
    def code_of(self, error: BaseException) -> int | None:
        return int(error.args[0].code()) if isinstance(error, KafkaException) else None

    def _settings(self, **more: Any) -> dict[str, Any]:
        common = {
            "bootstrap.servers": self.bootstrap_servers,
            "log_level": 0,
            "reconnect.backoff.max.ms": 200,
        }
        return {**common, **{name.replace("_", "."): value for name, value in more.items()}}

    def open_producer(self, transactional_id: str, timeout_ms: int) -> TransactionalProducer:
        settings = self._settings(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            # Else it is raised to more than the transaction may last.
            message_timeout_ms=timeout_ms,
            linger_ms=1,
        )
        return ConfluentProducer(settings)

    def open_reader(self, topic: str, partition: int, committed: bool) -> Reader:
        level = "read_committed" if committed else "read_uncommitted"
        reader = ConfluentReader(self._settings(group_id="unused", isolation_level=level))
        reader.consumer.assign([TopicPartition(topic, partition, 0)])
        return reader

    def open_member(self, group: str, topic: str) -> Reader:
        reader = ConfluentReader(
            self._settings(
                group_id=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                heartbeat_interval_ms=HEARTBEAT_MS,
            )
        )
        reader.consumer.subscribe([topic])
        return reader


if __name__ == "__main__":
    serve(ConfluentDriver)
