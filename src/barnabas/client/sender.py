"""Sends what is due: one request per broker with a batch of every partition that has one; takes the answers.

N1  at most max.in.flight.requests.per.connection requests per broker are unanswered
N2  the batches of a partition are written in their order: with idempotence always (see `sequences`), without
    it as long as one request is in flight; a batch that may be tried again goes back to its place
N3  every batch ends: acknowledged, refused for good, or given up after delivery.timeout.ms
N4  nothing is sent before there is a producer id, if sequences are used

No task per request: `pump` runs when something changed (records, answers, metadata, time) and never waits.
Everything here runs on the client's event loop; only `wake` may be called from other threads.
"""

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import Final

from barnabas.base.clock import Clock
from barnabas.base.types import ZERO_UUID, Uuid
from barnabas.client import delivery
from barnabas.client.accumulator import NO_LEADER, Accumulator, ProducerLane
from barnabas.client.cluster import Cluster
from barnabas.client.doubts import was_written
from barnabas.client.errors import (
    BadAnswer,
    ClientClosed,
    KafkaError,
    SendTimeout,
    UnsupportedByBroker,
)
from barnabas.client.flushes import Flush
from barnabas.client.outcomes import Failures, delivery_error
from barnabas.client.produce_requests import AnswersByPartition, produce_request
from barnabas.client.producer_batch import Compression, ProducerBatch
from barnabas.client.producer_id import new_identity
from barnabas.client.producer_metrics import ProducerMetrics
from barnabas.client.sequences import Sequences
from barnabas.client.transactions import Transactions
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.produce import ProduceResponse
from barnabas.protocol.schema import Message
from barnabas.records.batch import HEADER_BYTES
from barnabas.records.codecs import Codec

__all__ = ["Sender", "SenderSettings"]

_log: Final = logging.getLogger("barnabas.client.producer")

_ZSTD_FROM: Final = 7
_IDLE_MS: Final = 3_600_000
_LEADER_POLL_MS: Final = 100
_ENDING_PAUSE_MS: Final = 20  # for the transaction before, which is still ending
_NO_OFFSET: Final = -1
# After these a batch may be in the log: nothing came back, or not all that acks=all asks for was done.
_LEAVES_OPEN: Final = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)
_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """The settings that decide how batches are sent."""

    acks: int
    retries: int
    in_flight_max: int
    request_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    compression: Compression


class _Broker:
    """What the sender knows about one broker."""

    __slots__ = ("in_flight", "not_before_ms")

    def __init__(self) -> None:
        self.in_flight = 0
        self.not_before_ms = 0  # it asked us to wait (KIP-219)


class Sender:
    """Drains the accumulator.  `sequences` is None without idempotence."""

    def __init__(
        self,
        cluster: Cluster,
        accumulator: Accumulator,
        settings: SenderSettings,
        sequences: Sequences | None,
        metrics: ProducerMetrics,
        clock: Clock,
        transactions: Transactions | None = None,
    ) -> None:
        self._cluster = cluster
        self._accumulator = accumulator
        self._settings = settings
        self._sequences = sequences
        self._metrics = metrics
        self._clock = clock
        self._transactions = transactions
        self._loop = asyncio.get_running_loop()
        self._brokers: dict[int, _Broker] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._asking_id: asyncio.Task[None] | None = None
        self._in_requests: dict[ProducerBatch, None] = {}
        self._turn = 0
        self._is_pumping = False
        self._is_pump_due = False
        self._is_closed = False
        self._flushes: list[Flush] = []
        self._looking: set[asyncio.Task[bool | None]] = set()
        self.failures: Final = Failures()

    @property
    def in_flight(self) -> int:
        return sum(broker.in_flight for broker in self._brokers.values())

    # --- when to look

    def pump(self) -> None:
        """Sends what can be sent now and arranges to look again when more will be due."""
        self._is_pump_due = False
        if self._is_pumping or self._is_closed:
            return
        self._is_pumping = True
        try:
            now_ms = self._clock.monotonic_ms()
            wait_ms = self._give_up_late(now_ms)
            if not self._needs_id():
                wait_ms = min(wait_ms, self._send_due(now_ms))
            elif self._accumulator.has_unsent():
                self._ask_for_id()
        finally:
            self._is_pumping = False
        self._arrange(wait_ms)

    def pump_soon(self) -> None:
        """Pumps once everything that is known by now was taken in: a lost connection fails many requests."""
        if not self._is_pump_due:
            self._is_pump_due = True
            self._loop.call_soon(self.pump)

    def _needs_id(self) -> bool:
        # The id of a transactional producer comes with its first transaction, before there are records.
        return self._transactions is None and self._sequences is not None and self._sequences.settle()

    def _arrange(self, wait_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._accumulator.incomplete:
            self._timer = self._loop.call_later(max(wait_ms, 1) / 1000, self.pump)

    def _give_up_late(self, now_ms: int) -> int:
        accumulator = self._accumulator
        for batch in accumulator.expired(now_ms):
            self._expire(batch)
        for batch in [b for b in self._in_requests if accumulator.expires_in_ms(b, now_ms) <= 0]:
            self._expire(batch)
        first = next(iter(accumulator.incomplete), None)
        # The oldest batch is the first to expire, but for parts and for what was put back; those are seen
        # when that one is done.
        return _IDLE_MS if first is None else accumulator.expires_in_ms(first, now_ms)

    # --- sending

    def _send_due(self, now_ms: int) -> int:
        """Sends everything due; the result is how long until more is."""
        wait_ms = _IDLE_MS
        by_leader: dict[int, list[ProducerLane]] = {}
        for lane in self._accumulator.busy_lanes():
            due_ms = self._accumulator.due_in_ms(lane, now_ms)
            if due_ms > 0:
                wait_ms = min(wait_ms, due_ms)
            if lane.leader != NO_LEADER:
                by_leader.setdefault(lane.leader, []).append(lane)
            elif due_ms <= 0:
                self._cluster.want_refresh()
                wait_ms = min(wait_ms, _LEADER_POLL_MS)
        self._turn += 1
        for node, lanes in by_leader.items():
            broker = self._brokers.setdefault(node, _Broker())
            if broker.not_before_ms > now_ms:
                wait_ms = min(wait_ms, broker.not_before_ms - now_ms)
                continue
            start = self._turn % len(lanes)
            lanes = lanes[start:] + lanes[:start]  # no partition is always the one left out of a full request
            while broker.in_flight < self._settings.in_flight_max:
                batches = self._drain(lanes, now_ms)
                if not batches:
                    break
                self._transmit(node, broker, batches, now_ms)
        return wait_ms

    def _drain(self, lanes: list[ProducerLane], now_ms: int) -> list[ProducerBatch]:
        """The batches of the next request: if one is due, the others of this broker travel with it."""
        accumulator = self._accumulator
        ready = [lane for lane in lanes if self._may_send(lane, now_ms)]
        if not any(accumulator.due_in_ms(lane, now_ms) <= 0 for lane in ready):
            return []
        batches: list[ProducerBatch] = []
        size = 0
        for lane in ready:
            size += lane.queue[0].size_bytes
            if batches and size > accumulator.limits.request_bytes_max:
                break
            batch = accumulator.take_first(lane)
            batches.append(batch)
            if self._sequences is not None:
                self._sequences.assign(batch)
        return batches

    def _may_send(self, lane: ProducerLane, now_ms: int) -> bool:
        """Whether the first batch of a lane may go now, due or not."""
        if not lane.queue or lane.queue[0].retry_at_ms > now_ms:
            return False
        if self._transactions is not None and not self._transactions.may_send(lane.topic, lane.partition):
            return False
        if self._sequences is not None:
            return self._sequences.may_send(lane.queue[0])
        # N2: with one in flight, what was sent may still be at a broker that led before.
        return self._settings.in_flight_max > 1 or lane.in_flight == 0

    def _transmit(self, node: int, broker: _Broker, batches: list[ProducerBatch], now_ms: int) -> None:
        settings = self._settings
        transactions = self._transactions
        transactional_id = None if transactions is None else transactions.transactional_id
        sealed: list[bytearray] = []
        for batch in batches:
            plain_bytes = batch.size_bytes
            sealed.append(batch.seal(settings.compression, is_transactional=transactional_id is not None))
            self._note_sent(batch, plain_bytes, len(sealed[-1]), now_ms)
        request, version_max = produce_request(
            batches,
            sealed,
            self._topic_id,
            acks=settings.acks,
            timeout_ms=settings.request_timeout_ms,
            transactional_id=transactional_id,
            version_max=None if transactions is None else transactions.produce_version_max,
        )
        records, size = sum(batch.count for batch in batches), sum(map(len, sealed))
        self._metrics.sent(records, size, now_ms)
        broker.in_flight += 1
        if (refusal := self._refusal(node)) is not None:
            answer: asyncio.Future[Message] = self._loop.create_future()
            answer.set_exception(refusal)
        else:
            answer = self._cluster.send(
                node,
                request,
                version_max=version_max,
                answered=settings.acks != 0,
            )
        answer.add_done_callback(partial(self._answered, broker, batches, now_ms))

    def _note_sent(self, batch: ProducerBatch, plain_bytes: int, sealed_bytes: int, now_ms: int) -> None:
        metrics = self._metrics
        if batch.attempts == 0:
            metrics.queue_ms.add(now_ms - batch.created_ms)
            metrics.batch_bytes.add(sealed_bytes)
            if self._settings.compression.codec is not Codec.NONE and plain_bytes > HEADER_BYTES:
                metrics.compression.add(sealed_bytes / plain_bytes)
        batch.was_reset = False
        batch.sent_ms = now_ms
        self._in_requests[batch] = None
        self._lane(batch).in_flight += 1

    def _refusal(self, node: int) -> KafkaError | None:
        """Why this broker cannot take our batches, if it cannot."""
        if self._settings.compression.codec is Codec.ZSTD:
            version = self._cluster.version_of(node, ApiKey.PRODUCE)
            if version is not None and version < _ZSTD_FROM:
                return UnsupportedByBroker(f"broker {node} is too old for zstd: it offers Produce {version}")
        return None

    def _topic_id(self, name: str) -> Uuid:
        info = self._cluster.metadata.topics.get(name)
        return ZERO_UUID if info is None else info.id

    def _lane(self, batch: ProducerBatch) -> ProducerLane:
        topic = self._accumulator.topic(batch.topic)
        assert topic is not None, "a batch has a topic"
        return topic.lane(batch.partition)

    # --- answers

    def _answered(
        self, broker: _Broker, batches: list[ProducerBatch], sent_ms: int, answer: "asyncio.Future[Message]"
    ) -> None:
        now_ms = self._clock.monotonic_ms()
        broker.in_flight -= 1
        for batch in batches:
            self._in_requests.pop(batch, None)
            self._lane(batch).in_flight -= 1
        self._metrics.latency_ms.add(now_ms - sent_ms)
        error = None if answer.cancelled() else answer.exception()
        if answer.cancelled() or error is not None:
            fault = error if isinstance(error, KafkaError) else KafkaError(f"the request failed: {error}")
            for batch in batches:
                self._refused(batch, fault, _NO_OFFSET, now_ms)
        else:
            response = answer.result()
            assert isinstance(response, ProduceResponse), response
            self._take(broker, batches, response, now_ms)
        self.pump_soon()

    def _take(
        self, broker: _Broker, batches: list[ProducerBatch], response: ProduceResponse, now_ms: int
    ) -> None:
        if response.throttle_time_ms > 0:
            broker.not_before_ms = now_ms + response.throttle_time_ms
            self._metrics.throttle_ms.add(response.throttle_time_ms)
        if self._settings.acks == 0:
            for batch in batches:
                self._complete(batch, _NO_OFFSET, -1)
            return
        found = AnswersByPartition(response)
        for batch in batches:
            answer = found.get(batch, self._topic_id(batch.topic))
            if answer is None:
                missing = BadAnswer(f"{batch.topic}-{batch.partition}: the broker's answer leaves it out")
                self._refused(batch, missing, _NO_OFFSET, now_ms)
            elif answer.error_code == ErrorCode.NONE:
                self._complete(batch, answer.base_offset, answer.log_append_time_ms)
            else:
                error = delivery_error(batch, answer)
                self._refused(batch, error, answer.log_start_offset, now_ms)

    def _refused(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int, now_ms: int) -> None:
        if batch.is_done:
            return  # given up while it was on its way
        batch.last_error = error
        if error.code in _LEAVES_OPEN:
            batch.may_be_written = True
        if error.refreshes_metadata:
            self._cluster.want_refresh()
        if self._is_written(batch, error):
            self._complete(batch, _NO_OFFSET, -1)
        elif batch.may_be_written and self._is_about_a_gap(batch, error):
            self._look_for(batch, error, log_start_offset)
        else:
            self._decide(batch, error, log_start_offset, now_ms)

    def _decide(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int, now_ms: int) -> None:
        if error.code in _TOO_LARGE and batch.count > 1:
            self._split(batch, now_ms)
        elif self._may_retry(batch, error, log_start_offset):
            self._retry(batch, error, now_ms)
        else:
            unknown = error.retriable or isinstance(error, BadAnswer | ClientClosed)
            self._fail(batch, error, may_be_written=unknown)

    def _retry(self, batch: ProducerBatch, error: KafkaError, now_ms: int) -> None:
        self._metrics.retries += batch.count
        batch.attempts += 1
        wait_ms = _ENDING_PAUSE_MS if error.code is ErrorCode.CONCURRENT_TRANSACTIONS else _IDLE_MS
        batch.retry_at_ms = now_ms + min(wait_ms, self._backoff_ms(batch.attempts))
        self._accumulator.requeue(batch)
        _log.debug("%r is sent again: %s", batch, error)

    def _may_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        if batch.attempts >= self._settings.retries or self._is_closed:
            return False
        if self._sequences is None:
            return error.retriable
        if self._transactions is not None:
            if error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                return not self._transactions.is_giving_up and not self._sequences.sees_gap(batch)
            return not self._transactions.is_giving_up and error.retriable
        if self._sequences.may_retry(batch, error.code, log_start_offset):
            return error.retriable or error.code is not ErrorCode.NETWORK_EXCEPTION
        return False

    def _backoff_ms(self, attempts: int) -> int:
        settings = self._settings
        return int(min(settings.retry_backoff_ms << min(attempts - 1, 20), settings.retry_backoff_max_ms))

    def _split(self, batch: ProducerBatch, now_ms: int) -> None:
        parts = batch.split(now_ms)
        _log.debug("%r is too large for the broker and goes in %d parts", batch, len(parts))
        self._metrics.splits += 1
        if self._sequences is not None:
            self._sequences.replace(batch, [part for _, part in parts])
        delivery.share(batch, [(first, part) for first, part in parts])
        for _, part in parts:
            self._accumulator.requeue(part)
        self._accumulator.release(batch)
        batch.forget_bytes()
        for flush in self._flushes:
            flush.split(batch, [part for _, part in parts])

    def _is_written(self, batch: ProducerBatch, error: KafkaError) -> bool:
        """Whether the broker has the batch and only forgot its place."""
        if error.code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            return True
        return (
            error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            and self._sequences is not None
            and self._sequences.is_written(batch)
        )

    def _is_about_a_gap(self, batch: ProducerBatch, error: KafkaError) -> bool:
        return (
            error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            and self._sequences is not None
            and self._sequences.sees_gap(batch)
        )

    def _look_for(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> None:
        """Asks the leader for a batch that is missing or written already, see `doubts`."""
        self._in_requests[batch] = None  # it still expires
        task = self._loop.create_task(was_written(self._cluster, self._lane(batch).leader, batch))
        self._looking.add(task)
        task.add_done_callback(partial(self._looked_for, batch, error, log_start_offset))

    def _looked_for(
        self,
        batch: ProducerBatch,
        error: KafkaError,
        log_start_offset: int,
        task: "asyncio.Task[bool | None]",
    ) -> None:
        self._looking.discard(task)
        self._in_requests.pop(batch, None)
        if batch.is_done or task.cancelled():
            return
        now_ms = self._clock.monotonic_ms()
        match task.result():
            case True:
                _log.debug("%r was written, its answer lost", batch)
                self._complete(batch, _NO_OFFSET, -1)
            case False:
                self._decide(batch, error, log_start_offset, now_ms)
            case None:
                self._retry(batch, error, now_ms)
        self.pump()

    # --- outcomes

    def _complete(self, batch: ProducerBatch, base_offset: int, append_time_ms: int) -> None:
        if batch.is_done:
            return
        if self._sequences is not None:
            self._sequences.acknowledge(batch, base_offset + batch.count - 1)
        self._finish(batch, base_offset, append_time_ms, None)

    def _expire(self, batch: ProducerBatch) -> None:
        limit_ms = self._accumulator.limits.delivery_timeout_ms
        cause = "" if batch.last_error is None else f"; the last try failed: {batch.last_error}"
        error = SendTimeout(
            f"{batch.topic}-{batch.partition}: {batch.count} records were not acknowledged within "
            f"{limit_ms} ms{cause}",
            retriable=False,
        )
        error.__cause__ = batch.last_error
        self._in_requests.pop(batch, None)
        self._fail(batch, error, may_be_written=batch.has_sequence)

    def _fail(self, batch: ProducerBatch, error: KafkaError, *, may_be_written: bool) -> None:
        if self._sequences is not None:
            self._sequences.give_up(batch, may_be_written=may_be_written)
        self._metrics.errors += batch.count
        self._finish(batch, _NO_OFFSET, -1, error)
        self.failures.add(batch)
        if self._transactions is not None:
            self._transactions.batch_failed(batch, error)

    def _finish(
        self, batch: ProducerBatch, base_offset: int, append_time_ms: int, error: KafkaError | None
    ) -> None:
        batch.forget_bytes()
        self._accumulator.release(batch)
        delivery.finish(batch, base_offset=base_offset, append_time_ms=append_time_ms, error=error)
        for flush in list(self._flushes):
            flush.finished(batch)

    async def flush(self) -> None:
        """Sends everything without lingering and waits for the outcome of what was there at the call."""
        accumulator = self._accumulator
        flush = Flush(accumulator.incomplete, self._loop.create_future())
        accumulator.flushes += 1
        self._flushes.append(flush)
        try:
            self.pump()
            await flush.done
        finally:
            accumulator.flushes -= 1
            self._flushes.remove(flush)

    # --- producer id

    def _ask_for_id(self) -> None:
        if self._asking_id is None:
            self._asking_id = self._loop.create_task(self._obtain_id(), name="barnabas producer id")
            self._asking_id.add_done_callback(self._id_came)

    async def _obtain_id(self) -> None:
        assert self._sequences is not None
        limit_ms = self._accumulator.limits.delivery_timeout_ms
        identity = await self._cluster.retry(lambda: new_identity(self._cluster), timeout_ms=limit_ms)
        self._sequences.adopt(identity)

    def _id_came(self, task: "asyncio.Task[None]") -> None:
        self._asking_id = None
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, KafkaError) and not error.retriable:
            self.fail_all(error)
        elif error is not None and not isinstance(error, KafkaError):
            raise error
        self.pump()

    # --- end

    def fail_queued(self, error: KafkaError) -> None:
        """Gives up everything that is not in a request."""
        for batch in self._accumulator.take_all():
            self._fail(batch, error, may_be_written=batch.has_sequence)

    def forget_failures(self) -> None:
        """Does not report the records that failed unseen: they were part of a transaction that failed."""
        self.failures.take()

    def open_gate(self, is_open: bool) -> None:
        """Whether records may come in without a look at the state of the transaction."""
        self._accumulator.shut(not is_open)

    def fail_all(self, error: KafkaError) -> None:
        """Gives up everything that is not acknowledged."""
        for batch in [*self._accumulator.take_all(), *self._in_requests]:
            self._fail(batch, error, may_be_written=batch.has_sequence)
        self._in_requests.clear()

    def close(self, error: KafkaError) -> None:
        """Gives up what is left and sends nothing any more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in [*self._looking, *([] if self._asking_id is None else [self._asking_id])]:
            task.cancel()
        self.fail_all(error)
