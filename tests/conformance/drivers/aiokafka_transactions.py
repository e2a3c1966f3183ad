"""aiokafka as a driver of transactions: its loop runs in a thread, and every call waits for its coroutine."""

import logging
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from tests.conformance.drivers._driver import HEARTBEAT_MS, serve
from tests.conformance.drivers._loop import Loop, LoopProducer
from tests.conformance.drivers._transactions import Reader, TransactionalProducer, TransactionDriver

logging.basicConfig(level=logging.CRITICAL)


class AiokafkaProducer(LoopProducer):
    def __init__(self, loop: Loop, settings: dict[str, Any]) -> None:
        super().__init__(loop, loop.run(_started(AIOKafkaProducer, settings)))

    def send_offsets(self, reader: Any, topic: str, offset: int, group: str) -> None:
        offsets = {TopicPartition(topic, 0): offset}
        self._loop.run(self._producer.send_offsets_to_transaction(offsets, group))

    def close(self) -> None:
        self._loop.run(self._producer.stop())


class AiokafkaReader:
    def __init__(self, loop: Loop, consumer: Any) -> None:
        self._loop = loop
        self.consumer = consumer

    def poll(self) -> list[tuple[str, int]]:
        polled = self._loop.run(self.consumer.getmany(timeout_ms=50))
        return [(record.value.decode(), record.offset) for records in polled.values() for record in records]

    def close(self) -> None:
        self._loop.run(self.consumer.stop())


async def _started(kind: Any, settings: dict[str, Any], *topics: str) -> Any:
    made = kind(*topics, **settings)
    await made.start()
    return made


class AiokafkaDriver(TransactionDriver):
    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._loop = Loop()

    def code_of(self, error: BaseException) -> int | None:
        return getattr(error, "errno", None) if isinstance(error, KafkaError) else None

    def open_producer(self, transactional_id: str, timeout_ms: int) -> TransactionalProducer:
        return AiokafkaProducer(
            self._loop,
            {
                "bootstrap_servers": self.bootstrap_servers,
                "transactional_id": transactional_id,
                "transaction_timeout_ms": timeout_ms,
                "retry_backoff_ms": 20,
            },
        )

    def open_reader(self, topic: str, partition: int, committed: bool) -> Reader:
        settings = {
            "bootstrap_servers": self.bootstrap_servers,
            "isolation_level": "read_committed" if committed else "read_uncommitted",
            "auto_offset_reset": "earliest",
        }

        async def opened() -> Any:
            consumer = await _started(AIOKafkaConsumer, settings)
            consumer.assign([TopicPartition(topic, partition)])
            return consumer

        return AiokafkaReader(self._loop, self._loop.run(opened()))

    def open_member(self, group: str, topic: str) -> Reader:
        settings = {
            "bootstrap_servers": self.bootstrap_servers,
            "group_id": group,
            "isolation_level": "read_committed",
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "heartbeat_interval_ms": HEARTBEAT_MS,
        }
        return AiokafkaReader(self._loop, self._loop.run(_started(AIOKafkaConsumer, settings, topic)))


if __name__ == "__main__":
    serve(AiokafkaDriver)
