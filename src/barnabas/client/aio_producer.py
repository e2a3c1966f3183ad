"""The producer on the caller's event loop: the names and methods of the synchronous one.

async with Producer(bootstrap_servers="localhost:9092") as producer:
    future = await producer.send("events", b"value")     # taken; waits only for metadata and for room
    metadata = await future                              # acknowledged
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

from barnabas.base.errors import Misuse
from barnabas.client.config import PRODUCER, parse
from barnabas.client.delivery import OnDelivery
from barnabas.client.errors import ClientClosed, RequestTimedOut
from barnabas.client.hot import RecordFuture
from barnabas.client.interceptors import Headers, ProducerRecord
from barnabas.client.metadata import PartitionInfo
from barnabas.client.producer_core import ProducerCore
from barnabas.client.transaction_calls import AsyncTransactionCalls

__all__ = ["Producer"]

_log: Final = logging.getLogger("barnabas.client.producer")


class Producer(AsyncTransactionCalls):
    """Writes records to topics, from the tasks of one event loop.

    Settings are Kafka's, as a mapping with dots or as keywords with underscores; wrong ones raise
    ConfigFault.
    `start` it, or use it as a context manager.
    """

    def __init__(self, settings: Mapping[str, object] | None = None, /, **more: object) -> None:
        self._core = ProducerCore(parse(PRODUCER, settings, **more))
        self._append = self._core.appender.append
        self._is_direct = self._core.is_direct
        self._closing: asyncio.Task[object] | None = None

    async def start(self) -> Self:
        """Finds the cluster.  Raises NoBrokersAvailable."""
        if self._core.is_closed:
            raise ClientClosed
        if self._core.sender is not None:
            raise Misuse("the producer was started already")
        await self._core.start()
        return self

    async def send(
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
        """Hands a record over for sending and gives the future of its outcome; await that to have it written.

        As `Producer.send` of the synchronous face; a cancelled call has not taken the record.
        """
        if self._is_direct:
            future = self._append(topic, value, key, headers, partition, timestamp_ms, on_delivery)
            if future is not None:
                return future
        record = ProducerRecord(topic, value, key, headers, partition, timestamp_ms)
        return await self._send_the_long_way(record, on_delivery)

    async def _send_the_long_way(
        self, record: ProducerRecord, on_delivery: OnDelivery | None
    ) -> RecordFuture:
        core = self._started()
        prepared = core.prepare(record)
        deadline = time.monotonic() + core.settings.integer("max.block.ms") / 1000
        topic = core.accumulator.topic(prepared.topic)
        if topic is None or (prepared.partition is not None and prepared.partition >= len(topic.lanes)):
            topic = await core.learn(prepared.topic, partition=prepared.partition)
        partition = core.place(topic, prepared)
        future = core.try_add(topic, partition, prepared, on_delivery)
        if future is None:
            room = core.accumulator.bytes_for(prepared.size)
            await self._wait_for_room(room, deadline)
            future = core.try_add(topic, partition, prepared, on_delivery, reserved=room)
            assert future is not None, "with room of its own a record is always taken"
        return future

    async def _wait_for_room(self, size: int, deadline: float) -> None:
        """Returns when `size` bytes of the buffer are ours.  Raises BufferFull, ClientClosed."""
        core = self._core
        came = asyncio.Event()
        waiter = core.pool.wait(size, came.set)
        core.wake()
        try:
            async with asyncio.timeout(max(deadline - time.monotonic(), 0)):
                await came.wait()
        except TimeoutError:
            pass
        except BaseException:
            if not core.pool.cancel(waiter):
                core.pool.give(size)
            raise
        if not waiter.has_bytes and core.pool.cancel(waiter):
            if core.is_closed:
                raise ClientClosed("the producer was closed while send waited for room")
            raise core.buffer_full(size)

    async def flush(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 -- the name of the other face
        """Sends everything without lingering and waits until all of it is acknowledged or has failed.

        Raises DeliveryFailed when records failed that nobody asked about, RequestTimedOut after `timeout`
        seconds; what is under way then stays so.
        """
        core = self._started()
        try:
            async with asyncio.timeout(timeout):
                await core.flush()
        except TimeoutError as error:
            raise RequestTimedOut(f"the flush did not finish within {timeout} s") from error

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of a topic and their leaders.  Raises UnknownTopic after max.block.ms."""
        return list(await self._started().partitions_for(topic))

    def metrics(self) -> dict[str, float]:
        """Counters, rates and times under Kafka's names."""
        return self._core.snapshot()

    async def close(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 -- the name of the other face
        """Sends what is left, for at most `timeout` seconds, and ends; what was not sent then fails.

        Without a timeout delivery.timeout.ms is the limit.  May be called again.  Raises DeliveryFailed when
        records failed that nobody asked about.
        """
        if self._closing is not None:
            await asyncio.wait([self._closing])
            return
        self._closing = asyncio.get_running_loop().create_task(self._core.close(timeout))
        lost = await asyncio.shield(self._closing)
        if isinstance(lost, Exception):
            raise lost

    def _started(self) -> ProducerCore:
        if self._core.is_closed:
            raise ClientClosed("the producer was closed")
        if self._core.sender is None:
            raise Misuse("the producer was not started: await start(), or use `async with`")
        return self._core

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.close()
            return
        try:
            await self.close()
        except Exception as lost:
            _log.warning("%s", lost)  # the error of the block is the one to raise
