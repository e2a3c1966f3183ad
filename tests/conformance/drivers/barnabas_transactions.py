"""Barnabas's own client as a driver of transactions."""

from typing import Any

from barnabas.base.types import TopicPartition
from barnabas.client.consumer import Consumer
from barnabas.client.errors import KafkaError
from barnabas.client.producer import Producer
from tests.conformance.drivers._driver import HEARTBEAT_MS, serve
from tests.conformance.drivers._transactions import Reader, TransactionalProducer, TransactionDriver

TIMEOUT_S = 20


def producer_settings(bootstrap_servers: str, transactional_id: str, timeout_ms: int) -> dict[str, object]:
    return {
        "bootstrap.servers": bootstrap_servers,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": timeout_ms,
        "linger.ms": 1,
        "reconnect.backoff.max.ms": 200,
    }


def reader_settings(bootstrap_servers: str, *, committed: bool) -> dict[str, object]:
    return {
        "bootstrap.servers": bootstrap_servers,
        "isolation.level": "read_committed" if committed else "read_uncommitted",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }


def member_settings(bootstrap_servers: str, group: str) -> dict[str, object]:
    return {
        **reader_settings(bootstrap_servers, committed=True),
        "group.id": group,
        "heartbeat.interval.ms": HEARTBEAT_MS,
    }


def code_of(error: BaseException) -> int | None:
    return error.number if isinstance(error, KafkaError) else None


class BarnabasProducer:
    def __init__(self, settings: dict[str, object]) -> None:
        self._producer = Producer(settings)
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, values: list[str]) -> None:
        sent = [self._producer.send(topic, value.encode(), partition=partition) for value in values]
        for each in sent:
            each.result(TIMEOUT_S)

    def send_offsets(self, reader: Any, topic: str, offset: int, group: str) -> None:
        offsets = {TopicPartition(topic, 0): offset}
        self._producer.send_offsets_to_transaction(offsets, reader.consumer.group_metadata())

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close()


class BarnabasReader:
    def __init__(self, settings: dict[str, object]) -> None:
        self.consumer = Consumer(settings)

    def poll(self) -> list[tuple[str, int]]:
        return [((record.value or b"").decode(), record.offset) for record in self.consumer.poll(0.05)]

    def close(self) -> None:
        self.consumer.close()


class BarnabasDriver(TransactionDriver):
    def code_of(self, error: BaseException) -> int | None:
        return code_of(error)

    def open_producer(self, transactional_id: str, timeout_ms: int) -> TransactionalProducer:
        return BarnabasProducer(producer_settings(self.bootstrap_servers, transactional_id, timeout_ms))

    def open_reader(self, topic: str, partition: int, committed: bool) -> Reader:
        reader = BarnabasReader(reader_settings(self.bootstrap_servers, committed=committed))
        reader.consumer.assign([TopicPartition(topic, partition)])
        return reader

    def open_member(self, group: str, topic: str) -> Reader:
        reader = BarnabasReader(member_settings(self.bootstrap_servers, group))
        reader.consumer.subscribe(topic)
        return reader


if __name__ == "__main__":
    serve(BarnabasDriver)
