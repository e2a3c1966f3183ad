"""kafka-python 3 as a driver of transactions."""

import logging
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from tests.conformance.drivers._driver import HEARTBEAT_MS, serve
from tests.conformance.drivers._transactions import Reader, TransactionalProducer, TransactionDriver

TIMEOUT_S = 20
POLL_MS = 200
logging.basicConfig(level=logging.ERROR)


class KafkaPythonProducer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._producer = KafkaProducer(**settings)
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, values: list[str]) -> None:
        futures = [self._producer.send(topic, value.encode(), partition=partition) for value in values]
        for future in futures:
            future.get(TIMEOUT_S)

    def send_offsets(self, reader: Any, topic: str, offset: int, group: str) -> None:
        offsets = {TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)}
        self._producer.send_offsets_to_transaction(offsets, reader.consumer.group_metadata())

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(1)


class KafkaPythonReader:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.consumer = KafkaConsumer(**settings)

    def poll(self) -> list[tuple[str, int]]:
        polled = self.consumer.poll(timeout_ms=POLL_MS)
        return [(record.value.decode(), record.offset) for records in polled.values() for record in records]

    def close(self) -> None:
        self.consumer.close()


class KafkaPythonDriver(TransactionDriver):
    def code_of(self, error: BaseException) -> int | None:
        return getattr(error, "errno", None) if isinstance(error, KafkaError) else None

    def open_producer(self, transactional_id: str, timeout_ms: int) -> TransactionalProducer:
        return KafkaPythonProducer(
            {
                "bootstrap_servers": self.bootstrap_servers,
                "transactional_id": transactional_id,
                "transaction_timeout_ms": timeout_ms,
                "reconnect_backoff_max_ms": 200,
                "retry_backoff_ms": 20,
            }
        )

    def open_reader(self, topic: str, partition: int, committed: bool) -> Reader:
        reader = KafkaPythonReader(
            {
                "bootstrap_servers": self.bootstrap_servers,
                "isolation_level": "read_committed" if committed else "read_uncommitted",
                "auto_offset_reset": "earliest",
                "reconnect_backoff_max_ms": 200,
            }
        )
        where = TopicPartition(topic, partition)
        reader.consumer.assign([where])
        reader.consumer.seek(where, 0)
        return reader

    def open_member(self, group: str, topic: str) -> Reader:
        reader = KafkaPythonReader(
            {
                "bootstrap_servers": self.bootstrap_servers,
                "group_id": group,
                "isolation_level": "read_committed",
                "auto_offset_reset": "earliest",
                "enable_auto_commit": False,
                "heartbeat_interval_ms": HEARTBEAT_MS,
                "reconnect_backoff_max_ms": 200,
            }
        )
        reader.consumer.subscribe([topic])
        return reader


if __name__ == "__main__":
    serve(KafkaPythonDriver)
