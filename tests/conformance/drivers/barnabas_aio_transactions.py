"""Barnabas's own client for asyncio as a driver of transactions."""

from typing import Any

from barnabas.base.types import TopicPartition
from barnabas.client.aio import Consumer, Producer
from tests.conformance.drivers._driver import serve
from tests.conformance.drivers._loop import Loop, LoopProducer
from tests.conformance.drivers._transactions import Reader, TransactionalProducer, TransactionDriver
from tests.conformance.drivers.barnabas_transactions import (
    code_of,
    member_settings,
    producer_settings,
    reader_settings,
)


async def started(settings: dict[str, object]) -> Producer:
    producer = Producer(settings)
    await producer.start()
    await producer.init_transactions()
    return producer


class AsyncProducer(LoopProducer):
    def __init__(self, loop: Loop, settings: dict[str, object]) -> None:
        super().__init__(loop, loop.run(started(settings)))

    def send_offsets(self, reader: Any, topic: str, offset: int, group: str) -> None:
        offsets = {TopicPartition(topic, 0): offset}
        metadata = reader.consumer.group_metadata()
        self._loop.run(self._producer.send_offsets_to_transaction(offsets, metadata))

    def close(self) -> None:
        self._loop.run(self._producer.close())


class AsyncReader:
    def __init__(self, loop: Loop, settings: dict[str, object]) -> None:
        self._loop = loop
        self.consumer = Consumer(settings)
        loop.run(self.consumer.start())

    def poll(self) -> list[tuple[str, int]]:
        records = self._loop.run(self.consumer.poll(0.05))
        return [((record.value or b"").decode(), record.offset) for record in records]

    def close(self) -> None:
        self._loop.run(self.consumer.close())


class AsyncDriver(TransactionDriver):
    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._loop = Loop()

    def code_of(self, error: BaseException) -> int | None:
        return code_of(error)

    def open_producer(self, transactional_id: str, timeout_ms: int) -> TransactionalProducer:
        settings = producer_settings(self.bootstrap_servers, transactional_id, timeout_ms)
        return AsyncProducer(self._loop, settings)

    def open_reader(self, topic: str, partition: int, committed: bool) -> Reader:
        reader = AsyncReader(self._loop, reader_settings(self.bootstrap_servers, committed=committed))
        self._loop.run(reader.consumer.assign([TopicPartition(topic, partition)]))
        return reader

    def open_member(self, group: str, topic: str) -> Reader:
        reader = AsyncReader(self._loop, member_settings(self.bootstrap_servers, group))
        self._loop.run(reader.consumer.subscribe(topic))
        return reader


if __name__ == "__main__":
    serve(AsyncDriver)
