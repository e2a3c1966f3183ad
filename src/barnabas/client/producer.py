"""The producer for threads: `send` from any of them, a private thread does the rest.

    with Producer({"bootstrap.servers": "localhost:9092"}) as producer:
        producer.send("events", b"fire and forget")
        producer.send("events", "with a key", key="k", on_delivery=print)
        metadata = producer.send("events", b"sync").result(10)

Leaving the block sends what is left.  Records that failed unseen (no callback, and nobody asked their future)
are raised by `flush`, `close` and the end of the block as one DeliveryFailed.
"""

import contextlib
import logging
import threading
import time
import warnings
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

from barnabas.client.config import PRODUCER, parse
from barnabas.client.delivery import OnDelivery
from barnabas.client.errors import ClientClosed, KafkaError
from barnabas.client.hot import RecordFuture
from barnabas.client.interceptors import Headers, ProducerRecord
from barnabas.client.metadata import PartitionInfo
from barnabas.client.producer_core import ProducerCore
from barnabas.client.thread import ClientThread
from barnabas.client.transaction_calls import TransactionCalls

__all__ = ["Producer"]

_log: Final = logging.getLogger("barnabas.client.producer")


class Producer(TransactionCalls):
    """Writes records to topics.  Any number of threads may use one producer, and should.

    Settings are Kafka's (see docs/producer.md), as a mapping with dots or as keywords with underscores.
    Raises ConfigFault for wrong ones and NoBrokersAvailable when no broker can be reached.
    """

    def __init__(self, settings: Mapping[str, object] | None = None, /, **more: object) -> None:
        self._core = ProducerCore(parse(PRODUCER, settings, **more))
        self._append = self._core.appender.append
        self._is_direct = self._core.is_direct
        self._close_lock = threading.Lock()
        self._thread = ClientThread("barnabas-client-producer")
        try:
            self._thread.call(self._core.start())
        except BaseException:
            self._thread.stop()
            raise

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> RecordFuture:
        """Hands a record over for sending and gives the future of its outcome, most often without waiting.

        Waits up to max.block.ms for the first metadata of a topic and for room in the buffer.  `on_delivery`
        is called on the producer's thread with (RecordMetadata, error or None): it must be quick and must not
        wait for the producer.  Without a partition the key decides, without a key the sticky partition.
        Raises Serialization, RecordTooLarge, BufferFull, UnknownTopic, ClientClosed, Misuse; all failures
        behind this point come through the future.
        """
        if self._is_direct:
            future = self._append(topic, value, key, headers, partition, timestamp_ms, on_delivery)
            if future is not None:
                return future
        record = ProducerRecord(topic, value, key, headers, partition, timestamp_ms)
        return self._send_the_long_way(record, on_delivery)

    def _send_the_long_way(self, record: ProducerRecord, on_delivery: OnDelivery | None) -> RecordFuture:
        core = self._core
        prepared = core.prepare(record)
        deadline = time.monotonic() + core.settings.integer("max.block.ms") / 1000
        topic = core.accumulator.topic(prepared.topic)
        if topic is None or (prepared.partition is not None and prepared.partition >= len(topic.lanes)):
            topic = self._thread.call(core.learn(prepared.topic, partition=prepared.partition))
        partition = core.place(topic, prepared)
        future = core.try_add(topic, partition, prepared, on_delivery)
        if future is None:
            room = core.accumulator.bytes_for(prepared.size)
            self._wait_for_room(room, deadline)
            future = core.try_add(topic, partition, prepared, on_delivery, reserved=room)
            assert future is not None, "with room of its own a record is always taken"
        return future

    def _wait_for_room(self, size: int, deadline: float) -> None:
        """Returns when `size` bytes of the buffer are ours.  Raises BufferFull, ClientClosed."""
        core = self._core
        if core.is_on_loop:
            raise core.buffer_full(size)  # a callback that waited would wait for itself
        if not core.pool.take_within(size, deadline - time.monotonic(), hasten=core.wake):
            if core.is_closed:
                raise ClientClosed("the producer was closed while send waited for room")
            raise core.buffer_full(size)

    def flush(self, timeout: float | None = None) -> None:
        """Sends everything without lingering and waits until all of it is acknowledged or has failed.

        Raises DeliveryFailed when records failed that nobody asked about, RequestTimedOut after `timeout`
        seconds; what is under way then stays so.
        """
        self._thread.call(self._core.flush(), timeout)

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of a topic and their leaders.  Raises UnknownTopic after max.block.ms."""
        return list(self._thread.call(self._core.partitions_for(topic)))

    def metrics(self) -> dict[str, float]:
        """Counters, rates and times under Kafka's names."""
        return self._core.snapshot()

    def close(self, timeout: float | None = None) -> None:
        """Sends what is left, for at most `timeout` seconds, and ends; what was not sent then fails.

        Without a timeout delivery.timeout.ms is the limit.  May be called again.  Raises DeliveryFailed when
        records failed that nobody asked about.
        """
        core = self._core
        core.refuse_new()
        with self._close_lock:
            if self._thread.is_stopped:
                return
            try:
                lost = self._thread.call(core.close(timeout))
            finally:
                self._thread.stop()
        if lost is not None:
            raise lost

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        try:
            self.close()
        except Exception as lost:
            _log.warning("%s", lost)  # the error of the block is the one to raise

    def __del__(self) -> None:
        core, thread = getattr(self, "_core", None), getattr(self, "_thread", None)
        if core is None or thread is None or core.is_closed or thread.is_stopped or thread.is_current:
            return
        unsent = sum(batch.count for batch in list(core.accumulator.incomplete))
        with contextlib.suppress(KafkaError):
            self.close(0)
        if unsent:
            warnings.warn(
                f"a producer was dropped without close(): {unsent} records are lost",
                ResourceWarning,
                source=self,
                stacklevel=2,
            )
