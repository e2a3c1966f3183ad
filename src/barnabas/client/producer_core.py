"""What both faces of the producer share: from a record as the user gives it to a batch, and start to end.

    send ─► interceptors ─► serializers ─► partitioner ─► accumulator ─► sender ─► cluster

C1  a record is refused by an exception of `send` (bad type, too large, no room, unknown topic, closed), or
    its outcome comes through its future; nothing in between
C2  after `close` there is no task and no socket left, and every future is done

`prepare` and `try_add` run in user threads; the coroutines on the client's event loop.  Nothing here blocks:
waiting for metadata and for room is the faces' part, each in its own way.
"""

import asyncio
import logging
import threading
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

from barnabas.base.clock import Clock, SystemClock
from barnabas.base.errors import Misuse
from barnabas.client.accumulator import Accumulator, ProducerTopic
from barnabas.client.buffer_pool import BufferPool
from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientSettings
from barnabas.client.delivery import OnDelivery, watch
from barnabas.client.errors import (
    BufferFull,
    ClientClosed,
    DeliveryFailed,
    KafkaError,
    RecordTooLarge,
    UnknownTopic,
)
from barnabas.client.hot import Appender, RecordFuture
from barnabas.client.interceptors import Headers, Interceptors, ProducerRecord
from barnabas.client.metadata import Metadata, PartitionInfo, TopicInfo
from barnabas.client.partitioners import checked_choice, choose_by_key, partitioner_of
from barnabas.client.producer_metrics import ProducerMetrics
from barnabas.client.producer_settings import limits_of, sender_settings_of, uses_idempotence
from barnabas.client.sender import Sender
from barnabas.client.sequences import Sequences
from barnabas.client.serializers import Serialize, as_bytes, refusal, serializer_of
from barnabas.client.transactions import Transactions, transactional_id_of

__all__ = ["Prepared", "ProducerCore"]

_log: Final = logging.getLogger("barnabas.client.producer")
_RECORD_BYTES: Final = 61 + 5 + 1 + 10 + 5 + 5 + 5 + 5  # batch header and the widest fields of a record
_HEADER_BYTES: Final = 10
_TIMESTAMP_MAX: Final = 2**63 - 1


class Prepared(NamedTuple):
    """A record as bytes, before it has a place."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    partition: int | None
    timestamp_ms: int
    size: int
    """Bytes that a batch of this record alone has at most."""


class ProducerCore:
    """The producer without its face."""

    def __init__(self, settings: ClientSettings, *, clock: Clock | None = None) -> None:
        self._clock: Clock = clock or SystemClock()
        self.settings: Final = settings
        self._serialize_key = serializer_of(settings, "key")
        self._serialize_value = serializer_of(settings, "value")
        self._interceptors = Interceptors.of(settings)
        self._choose = partitioner_of(settings)
        self._ignores_keys = settings.boolean("partitioner.ignore.keys")
        self.limits: Final = limits_of(settings)
        self._sender_settings = sender_settings_of(settings)
        self._sequences = Sequences() if uses_idempotence(settings) else None
        self.transactions: Final = self._transactions_of(settings)
        hashes_keys = self._choose is None and not self._ignores_keys
        self.appender: Final = Appender(hashes_keys=hashes_keys, clock=clock)
        self.is_direct: Final = hashes_keys and not (
            self._serialize_key
            or self._serialize_value
            or self._interceptors.changes_records
            or self._interceptors.watches_outcomes
        )
        """Whether a record of bytes can go straight to `appender.append`."""
        self.pool: Final = BufferPool(settings.integer("buffer.memory"))
        self.accumulator: Final = Accumulator(
            self.appender, self.pool, self.limits, self._clock, wake=self.wake, may_wait=self._may_wait
        )
        self.metrics: Final = ProducerMetrics(self._clock)
        self._learning: dict[str, asyncio.Task[TopicInfo]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread_id = 0
        self._is_woken = False
        self.is_closed = False
        self.cluster: Cluster | None = None
        self.sender: Sender | None = None

    def _transactions_of(self, settings: ClientSettings) -> Transactions | None:
        name = transactional_id_of(settings, is_idempotent=self._sequences is not None)
        if name is None:
            return None
        assert self._sequences is not None, "transactions count"
        return Transactions(settings, name, self._sequences)

    # --- life

    async def start(self) -> None:
        """Finds the cluster.  Raises NoBrokersAvailable."""
        cluster = Cluster(self.settings, clock=self._clock)
        try:
            await cluster.start()
        except BaseException:
            self.is_closed = True
            await cluster.close()
            raise
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self.cluster = cluster
        self.sender = Sender(
            cluster,
            self.accumulator,
            self._sender_settings,
            self._sequences,
            self.metrics,
            self._clock,
            self.transactions,
        )
        if self.transactions is not None:
            self.transactions.connect(cluster, self.sender)
            self.sender.open_gate(False)
        cluster.on_change(self._on_metadata)

    def wake(self) -> None:
        """Lets the sender look at the batches soon; from any thread, many calls make one look."""
        if not self._is_woken and self._loop is not None:
            self._is_woken = True
            try:
                self._loop.call_soon_threadsafe(self._pump)
            except RuntimeError as error:  # the loop is closed
                raise ClientClosed from error

    def _pump(self) -> None:
        self._is_woken = False
        if self.sender is not None:
            self.sender.pump()

    def _may_wait(self) -> None:
        if threading.get_ident() == self._thread_id:
            raise Misuse(
                "the event loop may not wait for a record that it has to send itself; await the future"
            )

    @property
    def is_on_loop(self) -> bool:
        return threading.get_ident() == self._thread_id

    async def flush(self) -> None:
        """Raises DeliveryFailed when records failed that nobody asked about."""
        assert self.sender is not None, "started"
        await self.sender.flush()
        self.raise_failures()

    def raise_failures(self) -> None:
        assert self.sender is not None, "started"
        if (error := self.sender.failures.take()) is not None:
            raise error

    def refuse_new(self) -> None:
        """From now on `send` raises ClientClosed.  Any thread."""
        self.is_closed = True
        self.accumulator.close()
        self.pool.close()

    async def close(self, timeout_s: float | None) -> DeliveryFailed | None:
        """Sends what is left for at most `timeout_s`, gives up the rest; says what was lost unseen."""
        self.refuse_new()
        if self.sender is None or self.cluster is None:
            return None
        sender, cluster = self.sender, self.cluster
        try:
            async with asyncio.timeout(timeout_s):
                if self.transactions is not None:
                    await self._abandon_transaction(self.transactions)
                await sender.flush()
        except TimeoutError:
            pass
        finally:
            if self.transactions is not None:
                self.transactions.close()
            sender.close(ClientClosed("the producer was closed before the record was acknowledged"))
            for task in self._learning.values():
                task.cancel()
            await cluster.close()
            self._interceptors.close()
        lost = sender.failures.take()
        # Records of a transaction are lost by its abort, or the error of its commit told of them.
        return lost if self.transactions is None else None

    @staticmethod
    async def _abandon_transaction(transactions: Transactions) -> None:
        try:
            await transactions.abandon()
        except KafkaError as error:  # the coordinator aborts it after transaction.timeout.ms
            _log.warning("a transaction was left open by close: %s", error)

    # --- topics

    def _on_metadata(self, metadata: Metadata) -> None:
        for name in self.accumulator.topic_names():
            if (info := metadata.topics.get(name)) is not None:
                self.accumulator.update_topic(info)
        if self.sender is not None:
            self.sender.pump()

    async def learn(self, name: str, *, partition: int | None = None) -> ProducerTopic:
        """The topic, once metadata knows it, with at least the partition asked for.

        Raises UnknownTopic after max.block.ms, InvalidTopic and TopicAuthorization at once.
        """
        assert self.cluster is not None, "started"
        if self.is_closed:
            raise ClientClosed
        info = await self._topic_info(self.cluster, name)
        if partition is not None and partition >= len(info.partitions):
            await self.cluster.refresh([name])
            info = self.cluster.metadata.topics.get(name, info)
        if self.is_closed:
            raise ClientClosed
        return self.accumulator.update_topic(info)

    async def _topic_info(self, cluster: Cluster, name: str) -> TopicInfo:
        """What metadata says about a topic; all who ask at the same time wait for one answer."""
        task = self._learning.get(name)
        if task is None:
            timeout_ms = self.settings.integer("max.block.ms")
            task = asyncio.get_running_loop().create_task(cluster.topic(name, timeout_ms=timeout_ms))
            self._learning[name] = task
            task.add_done_callback(partial(self._learnt, name))
        return await asyncio.shield(task)

    def _learnt(self, name: str, task: "asyncio.Task[TopicInfo]") -> None:
        del self._learning[name]
        if not task.cancelled():
            task.exception()  # seen: whoever still waits gets it

    async def partitions_for(self, name: str) -> tuple[PartitionInfo, ...]:
        await self.learn(name)
        assert self.cluster is not None
        info: TopicInfo = self.cluster.metadata.topics[name]
        return info.partitions

    # --- records

    def prepare(self, record: ProducerRecord) -> Prepared:
        """Intercepts, serializes, measures.  Raises Serialization, RecordTooLarge, Misuse, ClientClosed."""
        if self.is_closed:
            raise ClientClosed("the producer was closed")
        if self.transactions is not None:
            self.transactions.check_may_send()
        record = self._interceptors.on_send(record)
        topic = record.topic
        if not isinstance(topic, str) or not topic:
            raise Misuse(f"a topic is a str that is not empty, not {topic!r}")
        key = _serialized(self._serialize_key, topic, "key", record.key)
        value = _serialized(self._serialize_value, topic, "value", record.value)
        headers = _header_pairs(topic, record.headers) if record.headers else ()
        size = _RECORD_BYTES + len(key or b"") + len(value or b"")
        for name, data in headers:
            size += _HEADER_BYTES + 4 * len(name) + len(data or b"")
        limit, setting = self.limits.request_bytes_max, "max.request.size"
        if self.pool.total < limit:
            limit, setting = self.pool.total, "buffer.memory"
        if size > limit:
            raise RecordTooLarge(f"{topic}: a record of up to {size} bytes is larger than {setting}, {limit}")
        timestamp_ms = self._clock.now_ms() if record.timestamp_ms is None else record.timestamp_ms
        if not isinstance(timestamp_ms, int) or not 0 <= timestamp_ms <= _TIMESTAMP_MAX:
            raise Misuse(f"{topic}: {timestamp_ms!r} is not a timestamp in milliseconds")
        return Prepared(topic, key, value, headers, record.partition, timestamp_ms, size)

    def place(self, topic: ProducerTopic, record: Prepared) -> int | None:
        """The partition of a record, None for the sticky one.  Raises UnknownTopic, Misuse."""
        count = len(topic.lanes)
        if record.partition is not None:
            partition = record.partition
            if not isinstance(partition, int) or partition < 0:
                raise Misuse(f"{topic.name}: {partition!r} is not a partition")
            if partition >= count:
                raise UnknownTopic(
                    f"{topic.name} has no partition {partition}, only 0 to {count - 1}", retriable=False
                )
            return partition
        if self._choose is not None:
            choice = self._choose(topic.name, record.key, record.value, count, topic.available)
            return checked_choice(choice, topic.name, count)
        if record.key is not None and not self._ignores_keys:
            return choose_by_key(record.key, count)
        return None

    def try_add(
        self,
        topic: ProducerTopic,
        partition: int | None,
        record: Prepared,
        on_delivery: OnDelivery | None,
        *,
        reserved: int = 0,
    ) -> RecordFuture | None:
        """Adds a record to its batch; None when there is no room, see `Accumulator.add`."""
        if self.is_closed:
            if reserved:
                self.pool.give(reserved)
            raise ClientClosed("the producer was closed")
        if self.transactions is not None:
            self._check_transaction(self.transactions, reserved)
        future = self.accumulator.add(
            topic,
            partition,
            record.timestamp_ms,
            record.key,
            record.value,
            record.headers,
            on_delivery,
            size=record.size,
            reserved=reserved,
        )
        if future is not None and self._interceptors.watches_outcomes:
            # Not by add_done_callback: an interceptor that watches does not mean that somebody saw a failure.
            watch(future, self._interceptors.on_acknowledgement)
        return future

    def _check_transaction(self, transactions: Transactions, reserved: int) -> None:
        try:
            transactions.check_may_send()
        except BaseException:
            if reserved:
                self.pool.give(reserved)
            raise

    def buffer_full(self, size: int) -> BufferFull:
        return BufferFull(
            f"no room for {size} bytes in the buffer within {self.settings.integer('max.block.ms')} ms: "
            f"{self.pool.total - self.pool.available} of {self.pool.total} bytes (buffer.memory) wait to be "
            "acknowledged"
        )

    def snapshot(self) -> dict[str, float]:
        """The metrics as a dict; any thread."""
        pool = self.pool
        return {
            **self.metrics.snapshot(),
            "requests-in-flight": self.sender.in_flight if self.sender is not None else 0,
            "buffer-total-bytes": pool.total,
            "buffer-available-bytes": pool.available,
            "waiting-threads": pool.waiting,
        }


def _serialized(serialize: Serialize | None, topic: str, part: str, data: object) -> bytes | None:
    if serialize is not None:
        return serialize(topic, data)
    try:
        return as_bytes(topic, data)
    except (TypeError, UnicodeError) as error:
        raise refusal(topic, part, data, f"{error}; or give a {part}.serializer") from error


def _header_pairs(topic: str, headers: Headers) -> tuple[tuple[str, bytes | None], ...]:
    items: Iterable[object] = headers.items() if isinstance(headers, Mapping) else headers
    pairs = []
    for item in items:
        match item:
            case (str() as name, None | bytes() as data):
                pairs.append((name, data))
            case (str() as name, str() as text):
                pairs.append((name, text.encode()))
            case (str() as name, bytearray() | memoryview() as view):
                pairs.append((name, bytes(view)))
            case _:
                raise refusal(topic, "header", item, "a header is a pair of str and bytes, str or None")
    return tuple(pairs)
