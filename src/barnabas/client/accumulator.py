"""Records on their way: a queue of batches per partition, and which of them are due.

    send ─► lane.open ─► lane.queue ─► drain ─► in a request ─► done
                            ▲                        │
                            └──────── requeue ◄──────┘ (refused, may be tried again)

A1  a lane's queue is in the order of the batch numbers; only its last batch can be open
A2  a batch is due when it is full (another stands behind it, or it is closed), when linger.ms is over, when
    somebody waits for it or for memory, while a flush runs, and when the producer closes; never while it
    backs off after a failure, and never before the batches in front of it
A3  every batch that is not done is in `incomplete`; its bytes are taken from the pool
A4  records without a key stay with one partition until its batch is closed, then move to another

User threads add records, the event loop does the rest; `appender.lock` is held for every change of a lane.
"""

import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.base.clock import Clock
from barnabas.client.buffer_pool import BufferPool
from barnabas.client.hot import Appender, BatchBase, Lane, RecordFuture, TopicLanes
from barnabas.client.metadata import TopicInfo
from barnabas.client.producer_batch import ProducerBatch

if TYPE_CHECKING:
    from barnabas.client.delivery import OnDelivery

__all__ = ["Accumulator", "Limits", "ProducerLane", "ProducerTopic"]

NO_LEADER: Final = -1


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings that decide when a batch is due."""

    batch_bytes: int
    linger_ms: int
    delivery_timeout_ms: int
    request_bytes_max: int


class ProducerLane(Lane):
    """One partition: its batches, and the broker that leads it."""

    __slots__ = ("_next_number", "in_flight", "leader", "partition", "queue", "topic")

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__()
        self.topic: Final = topic
        self.partition: Final = partition
        self.leader = NO_LEADER
        self.in_flight = 0
        self.queue: deque[ProducerBatch] = deque()
        self._next_number = 0

    @property
    def was_used(self) -> bool:
        return self._next_number > 0

    def next_number(self) -> tuple[int, ...]:
        self._next_number += 1
        return (self._next_number,)


class ProducerTopic(TopicLanes):
    """The partitions of a topic, and those that have a leader."""

    __slots__ = ("available",)

    def __init__(self, name: str) -> None:
        super().__init__(name, [])
        self.available: list[int] = []

    def lane(self, partition: int) -> ProducerLane:
        lane = self.lanes[partition]
        assert isinstance(lane, ProducerLane)
        return lane


class Accumulator:
    """All unsent and unanswered batches of one producer; the `Home` of its batches.

    `wake` is called, from any thread, when the sender should look again.  `may_wait` raises Misuse when the
    calling thread must not wait for a batch.
    """

    def __init__(
        self,
        appender: Appender,
        pool: BufferPool,
        limits: Limits,
        clock: Clock,
        *,
        wake: Callable[[], object],
        may_wait: Callable[[], object] = lambda: None,
    ) -> None:
        self.appender: Final = appender
        self.pool: Final = pool
        self.limits: Final = limits
        self.incomplete: dict[ProducerBatch, None] = {}
        self.flushes = 0
        self.is_closing = False
        self._is_shut = False
        self._clock = clock
        self._wake = wake
        self._may_wait = may_wait
        self._busy: dict[ProducerLane, None] = {}
        self._topics: dict[str, ProducerTopic] = {}

    # --- topics

    def topic(self, name: str) -> ProducerTopic | None:
        return self._topics.get(name)

    def topic_names(self) -> list[str]:
        return list(self._topics)

    def close(self) -> None:
        """Takes the topics from the hot path, so that nothing is added any more; what is queued is due."""
        self.is_closing = True
        with self.appender.lock:
            self.appender.topics.clear()

    def shut(self, is_shut: bool) -> None:
        """Takes the topics from the hot path, or gives them back; meanwhile records go the long way."""
        self._is_shut = is_shut
        with self.appender.lock:
            self.appender.topics.clear()
            if not is_shut and not self.is_closing:
                self.appender.topics.update(self._topics)

    def update_topic(self, info: TopicInfo) -> ProducerTopic:
        """Takes what metadata says about a topic: new partitions, leaders that moved."""
        topic = self.topic(info.name) or ProducerTopic(info.name)
        with self.appender.lock:
            for index in range(len(topic.lanes), len(info.partitions)):
                topic.lanes.append(ProducerLane(info.name, index))
            for index, partition in enumerate(info.partitions):
                topic.lane(index).leader = partition.leader if partition.has_leader else NO_LEADER
            topic.available = [partition.index for partition in info.partitions if partition.has_leader]
            if topic.sticky < 0:
                self._move_on(topic)
            self._topics[info.name] = topic
            if not self.is_closing and not self._is_shut:
                self.appender.topics[info.name] = topic
        return topic

    def _move_on(self, topic: ProducerTopic) -> None:
        """Another partition for records without a key (A4)."""
        choices = topic.available or range(len(topic.lanes))
        others = [index for index in choices if index != topic.sticky]
        if others:
            topic.sticky = random.choice(others)
        elif topic.sticky < 0 and topic.lanes:
            topic.sticky = 0

    # --- adding

    def bytes_for(self, size: int) -> int:
        """What a new batch for a record of `size` bytes takes from the pool."""
        return max(self.limits.batch_bytes, size)

    def add(
        self,
        topic: ProducerTopic,
        partition: int | None,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[tuple[str, bytes | None], ...],
        on_delivery: "OnDelivery | None",
        *,
        size: int,
        reserved: int = 0,
    ) -> RecordFuture | None:
        """Adds a record, to a new batch if need be; None when the pool has no room for one.

        The caller then waits for `bytes_for(size)` and calls again with them as `reserved`; they are the
        batch's or given back.  `partition` None is the sticky one.
        """
        future = None
        with self.appender.lock:
            lane = self._lane_for(topic, partition)
            if lane.open is not None:
                future = lane.open.add(timestamp_ms, key, value, headers, on_delivery)
                if future is None:
                    lane.open = None
                    if partition is None:
                        self._move_on(topic)
                        lane = topic.lane(topic.sticky)
                        if lane.open is not None:
                            future = lane.open.add(timestamp_ms, key, value, headers, on_delivery)
            if future is None:
                needed = self.bytes_for(size)
                if not reserved and not self.pool.take(needed):
                    self._wake()
                    return None
                lane.open = batch = ProducerBatch(
                    lane.topic,
                    lane.partition,
                    self,
                    number=lane.next_number(),
                    size_limit=self.limits.batch_bytes,
                    reserved=needed,
                    now_ms=self._clock.monotonic_ms(),
                )
                reserved = 0
                future = batch.add(timestamp_ms, key, value, headers, on_delivery)
                assert future is not None, "the first record of a batch always fits"
                lane.queue.append(batch)
                self._busy[lane] = None
                self.incomplete[batch] = None
                self._wake()
        if reserved:
            self.pool.give(reserved)
        return future

    def _lane_for(self, topic: ProducerTopic, partition: int | None) -> ProducerLane:
        if partition is not None:
            return topic.lane(partition)
        lane = topic.lane(topic.sticky)
        if lane.open is None and lane.was_used:
            self._move_on(topic)
            lane = topic.lane(topic.sticky)
        return lane

    # --- waiting for a batch

    def hasten(self, batch: BatchBase) -> None:
        self._may_wait()
        self.hasten_soon(batch)

    def hasten_soon(self, batch: BatchBase) -> None:
        assert isinstance(batch, ProducerBatch)
        if not batch.is_urgent:
            batch.is_urgent = True
            self._wake()

    # --- sending

    def busy_lanes(self) -> Iterable[ProducerLane]:
        """Lanes with something queued."""
        return list(self._busy)

    def due_in_ms(self, lane: ProducerLane, now_ms: int) -> int:
        """How long until the first batch of a lane is due; 0 or less is now (A2)."""
        first = lane.queue[0]
        if first.retry_at_ms > now_ms:
            return first.retry_at_ms - now_ms
        if (
            first.attempts
            or first is not lane.open
            or first.is_urgent
            or self.flushes
            or self.is_closing
            or self.pool.waiting
        ):
            return 0
        return first.created_ms + self.limits.linger_ms - now_ms

    def take_first(self, lane: ProducerLane) -> ProducerBatch:
        """Takes the first batch out of a lane's queue; nothing is added to it from now on."""
        with self.appender.lock:
            batch = lane.queue.popleft()
            if lane.open is batch:
                lane.open = None
            if not lane.queue:
                del self._busy[lane]
        return batch

    def requeue(self, batch: ProducerBatch) -> None:
        """Puts a batch, or a part of one, back into its place (A1)."""
        topic = self.topic(batch.topic)
        assert topic is not None, "a batch has a topic"
        lane = topic.lane(batch.partition)
        with self.appender.lock:
            queue = lane.queue
            if not queue or queue[-1].number < batch.number:
                queue.append(batch)  # a batch that came ready-made belongs behind all others
            else:
                place = 0
                while queue[place].number < batch.number:
                    place += 1
                queue.insert(place, batch)
            self._busy[lane] = None
            self.incomplete[batch] = None

    def expired(self, now_ms: int) -> list[ProducerBatch]:
        """Takes out the queued batches whose delivery.timeout.ms is over."""
        found = []
        for lane in list(self._busy):
            while lane.queue and self.expires_in_ms(lane.queue[0], now_ms) <= 0:
                found.append(self.take_first(lane))
        return found

    def expires_in_ms(self, batch: ProducerBatch, now_ms: int) -> int:
        return batch.created_ms + self.limits.delivery_timeout_ms - now_ms

    def take_all(self) -> list[ProducerBatch]:
        """Takes out everything queued: the producer gives up."""
        return [self.take_first(lane) for lane in list(self._busy) for _ in range(len(lane.queue))]

    def release(self, batch: ProducerBatch) -> None:
        """A batch is done, or was replaced by its parts."""
        self.incomplete.pop(batch, None)
        if batch.reserved:
            reserved, batch.reserved = batch.reserved, 0
            self.pool.give(reserved)

    def has_unsent(self) -> bool:
        return bool(self._busy)
