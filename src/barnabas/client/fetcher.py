"""Brings records from the leaders, ahead of what the user has taken.

P1  at most two fetches are under way per broker, on two connections of their own: while one waits there for
    quiet partitions, the other serves those that have room again, or were just given a position
P2  a session of a partition is in no more than one fetch at a time, so its bytes are queued in offset order
P3  a fetch asks only for partitions with room: less queued than _ANSWERS_AHEAD answers of it, and in all less
    than `barnabas.prefetch.bytes`
P4  an answer for a session that has ended is dropped (S3 of `subscription`)

Two tasks per broker, on the client's loop.  What errors mean for positions is decided elsewhere: they go into
the queue behind the bytes before them.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from barnabas.base.types import TopicPartition, Uuid
from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientSettings
from barnabas.client.errors import ClientClosed, KafkaError
from barnabas.client.fetched import Fetched, FetchQueue, Span, spans_of
from barnabas.client.metadata import TopicInfo
from barnabas.client.subscription import UNKNOWN, PartitionState, Stage, Subscription
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from barnabas.records.errors import CorruptBatch

__all__ = ["FetchCounters", "Fetcher"]

_log: Final = logging.getLogger("barnabas.client.fetcher")

_IDS_FROM: Final = 13
# Deep enough that the thread that polls does not run dry while this one waits for its turn of the GIL.
_ANSWERS_AHEAD: Final = 4
_PURPOSES: Final = ("fetch", "fetch-2")
_EMPTY: Final = memoryview(b"")

# The partition lives, only not there or not as the request thought: look again, then go on.
_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


@dataclass(slots=True)
class FetchCounters:
    """What `metrics` shows of fetching."""

    fetches: int = 0
    fetched_bytes: int = 0
    latency_ms_total: float = 0.0
    latency_ms_max: float = 0.0


@dataclass(slots=True)
class _Asked:
    """A partition in a fetch that is under way."""

    state: PartitionState
    session: int
    offset: int


@dataclass(slots=True, eq=False)
class _Lane:
    """One of the two connections to a broker that fetches run over."""

    node: int
    purpose: str
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None


class Fetcher:
    """Fetches what the subscription has, into the queue."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ClientSettings,
        subscription: Subscription,
        queue: FetchQueue,
        *,
        on_data: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._queue = queue
        self._on_data = on_data
        self._lanes: dict[tuple[int, str], _Lane] = {}
        self._fetching: set[tuple[PartitionState, int]] = set()
        self._is_closed = False
        self.counters = FetchCounters()
        self._read_committed = settings.string("isolation.level") == "read_committed"
        self._min_bytes = settings.integer("fetch.min.bytes")
        self._max_bytes = settings.integer("fetch.max.bytes")
        self._max_wait_ms = settings.integer("fetch.max.wait.ms")
        self._partition_bytes = settings.integer("max.partition.fetch.bytes")
        self._partition_room = _ANSWERS_AHEAD * self._partition_bytes
        self._prefetch_bytes = settings.integer("barnabas.prefetch.bytes")
        self._retry_ms = settings.integer("retry.backoff.ms")
        self._request_timeout_ms = settings.integer("request.timeout.ms")
        self._rack = settings.string("client.rack")
        self._max_age_ms = settings.integer("metadata.max.age.ms")

    def wake(self) -> None:
        """Looks again at what can be fetched: partitions, positions or room have changed."""
        if self._is_closed:
            return
        self._queue.wants_room = False
        for node in {self._node_of(state) for state in self._subscription.partitions.values()} - {None}:
            assert node is not None, "taken out above"
            for purpose in _PURPOSES:
                if (node, purpose) not in self._lanes:
                    lane = self._lanes[node, purpose] = _Lane(node, purpose)
                    lane.task = asyncio.create_task(self._serve(lane), name=f"barnabas {purpose} {node}")
        for lane in self._lanes.values():
            lane.wake.set()

    async def close(self) -> None:
        self._is_closed = True
        tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- one broker

    async def _serve(self, lane: _Lane) -> None:
        """Fetches from one broker for as long as it has partitions of ours."""
        try:
            while not self._is_closed:
                lane.wake.clear()
                asked, waits = self._choose(lane.node)
                if not asked:
                    if not self._has_partitions_at(lane.node):
                        return
                    await self._idle(lane, self._retry_ms / 1000 if waits else None)
                    continue
                try:
                    await self._fetch(lane, asked)
                except ClientClosed:
                    return
                except KafkaError as error:
                    _log.debug("fetch from broker %d: %s", lane.node, error)
                    self._cluster.want_refresh()
                    self._forget_preferred(lane.node)
                    await asyncio.sleep(self._retry_ms / 1000)
                finally:
                    self._fetching.difference_update((item.state, item.session) for item in asked)
        finally:
            del self._lanes[lane.node, lane.purpose]

    async def _idle(self, lane: _Lane, limit_s: float | None) -> None:
        """Waits for something to fetch."""
        try:
            async with asyncio.timeout(limit_s):
                await lane.wake.wait()
        except TimeoutError:
            pass

    def _choose(self, node: int) -> tuple[list[_Asked], bool]:
        """What to fetch now, and whether there is a partition to look at again after a pause."""
        now = self._cluster.clock.monotonic_ms()
        chosen: list[_Asked] = []
        waits = False
        room_is_short = self._queue.queued_bytes >= self._prefetch_bytes
        for state in self._subscription.partitions.values():
            if state.stage is not Stage.FETCH or state.is_paused or state.is_revoking or state.has_fault:
                continue
            if (state, state.session) in self._fetching or self._node_of(state) != node:
                continue
            if state.retry_at_ms > now:
                waits = True
            elif room_is_short or state.queued_bytes >= self._partition_room:
                self._queue.wants_room = True
            else:
                chosen.append(_Asked(state, state.session, state.fetch_offset))
        if len(chosen) > 1:
            # Those with the least queued first: the broker fills an answer in the order asked.
            chosen.sort(key=lambda item: item.state.queued_bytes)
        self._fetching.update((item.state, item.session) for item in chosen)
        return chosen, waits

    async def _fetch(self, lane: _Lane, asked: list[_Asked]) -> None:
        await self._cluster.ready(lane.node, purpose=lane.purpose)
        topics = self._cluster.metadata.topics
        version = self._cluster.version_of(lane.node, ApiKey.FETCH) or 0
        ids = {item.state.topic_partition.topic: _id_of(topics, item) for item in asked}
        by_id = version >= _IDS_FROM and all(ids.values())
        request = self._request(asked, ids if by_id else {})
        loop = asyncio.get_running_loop()
        started = loop.time()
        answer = await self._cluster.send(
            lane.node,
            request,
            purpose=lane.purpose,
            timeout_ms=self._request_timeout_ms + self._max_wait_ms,
            version_max=None if by_id else _IDS_FROM - 1,
        )
        assert isinstance(answer, FetchResponse), answer
        self._count((loop.time() - started) * 1000)
        if answer.error_code:
            _log.debug("fetch from broker %d was refused: error %d", lane.node, answer.error_code)
            self._cluster.want_refresh()
            await asyncio.sleep(self._retry_ms / 1000)
            return
        names = {topic_id: name for name, topic_id in ids.items()} if by_id else {}
        self._read(answer, names, {item.state.topic_partition: item for item in asked})
        if answer.throttle_time_ms:
            await asyncio.sleep(answer.throttle_time_ms / 1000)

    def _request(self, asked: list[_Asked], ids: dict[str, Uuid | None]) -> FetchRequest:
        topics: dict[str, FetchTopic] = {}
        for item in asked:
            name, number = item.state.topic_partition
            topic = topics.get(name)
            if topic is None:
                topic_id = ids.get(name)
                topic = FetchTopic(topic_id=topic_id) if topic_id else FetchTopic(topic=name)
                topics[name] = topic
            topic.partitions.append(
                FetchPartition(
                    partition=number,
                    current_leader_epoch=item.state.leader_epoch,
                    fetch_offset=item.offset,
                    partition_max_bytes=self._partition_bytes,
                )
            )
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=self._max_wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=self._max_bytes,
            isolation_level=int(self._read_committed),
            topics=list(topics.values()),
            rack_id=self._rack,
        )

    # --- answers

    def _read(
        self, answer: FetchResponse, names: dict[Uuid | None, str], asked: dict[TopicPartition, _Asked]
    ) -> None:
        added = False
        for topic in answer.responses:
            name = names.get(topic.topic_id, "") if names else topic.topic
            for data in topic.partitions:
                item = asked.get(TopicPartition(name, data.partition_index))
                if item is None or item.state.session != item.session or item.state.is_taken_away:
                    continue
                added |= self._read_partition(item, data)
        if added:
            self._on_data()

    def _read_partition(self, item: _Asked, data: PartitionData) -> bool:
        """Takes one partition's answer; true when there is something for the user."""
        state = item.state
        if data.error_code:
            return self._failed(item, data.error_code)
        state.high_watermark = data.high_watermark
        state.last_stable_offset = data.last_stable_offset
        state.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0:
            state.preferred_node = data.preferred_read_replica
            state.preferred_until_ms = self._cluster.clock.monotonic_ms() + self._max_age_ms
            self._wake_soon()
            return False
        records = data.records
        if records is None or not len(records):
            return False
        assert isinstance(records, memoryview), "decoded records are a view"
        self.counters.fetched_bytes += len(records)
        try:
            spans = spans_of(records)
        except CorruptBatch as error:
            _log.debug("%s: %s", state, error)
            spans = []
        if not spans:  # the one who takes it finds out what is wrong with it and tells the user
            self._queue.add(self._fetched(item, data, Span(records, item.offset, UNKNOWN)))
            state.has_fault = True
            return True
        for span in spans:
            self._queue.add(self._fetched(item, data, span))
            state.fetch_offset = max(state.fetch_offset, span.next_offset)
        return True

    def _fetched(self, item: _Asked, data: PartitionData, span: Span) -> Fetched:
        aborted = None
        if self._read_committed:
            aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()]
        return Fetched(
            item.state,
            session=item.session,
            fetch_offset=item.offset,
            next_offset=span.next_offset,
            records=span.records,
            leader_epoch=span.leader_epoch,
            aborted=aborted,
        )

    def _failed(self, item: _Asked, code: int) -> bool:
        state = item.state
        if code in _MOVED:
            state.retry_at_ms = self._cluster.clock.monotonic_ms() + self._retry_ms
            state.preferred_node = UNKNOWN
            self._cluster.want_refresh()
            self._wake_soon()
            return False
        if code == ErrorCode.OFFSET_OUT_OF_RANGE and state.preferred_node != UNKNOWN:
            state.preferred_node = UNKNOWN  # the follower may lag behind; the leader has the last word
            self._wake_soon()
            return False
        state.has_fault = True
        self._queue.add(
            Fetched(
                state,
                session=item.session,
                fetch_offset=item.offset,
                next_offset=item.offset,
                records=_EMPTY,
                error_code=code,
            )
        )
        return True

    # --- where

    def _node_of(self, state: PartitionState) -> int | None:
        if state.preferred_node != UNKNOWN:
            if state.preferred_until_ms > self._cluster.clock.monotonic_ms():
                return state.preferred_node
            state.preferred_node = UNKNOWN
        topic, partition = state.topic_partition
        return self._cluster.metadata.leader(topic, partition)

    def _has_partitions_at(self, node: int) -> bool:
        return any(self._node_of(state) == node for state in self._subscription.partitions.values())

    def _forget_preferred(self, node: int) -> None:
        for state in self._subscription.partitions.values():
            if state.preferred_node == node:
                state.preferred_node = UNKNOWN
                self._wake_soon()

    def _wake_soon(self) -> None:
        """A partition is read from another broker from now on, which may have no lane yet."""
        asyncio.get_running_loop().call_soon(self.wake)

    def _count(self, latency_ms: float) -> None:
        counters = self.counters
        counters.fetches += 1
        counters.latency_ms_total += latency_ms
        counters.latency_ms_max = max(counters.latency_ms_max, latency_ms)


def _id_of(topics: Mapping[str, TopicInfo], item: _Asked) -> Uuid | None:
    topic = topics.get(item.state.topic_partition.topic)
    return topic.id if topic is not None and topic.has_id else None
