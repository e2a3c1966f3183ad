"""Ranges of offsets on their way from the leaders: the loop's side of a bulk read.

G1  chunks of a range are queued in offset order, and cover it from its start to its end without a hole: what
    the cluster does not have any more is named by a chunk of its own (`lost`), never left out in silence
G2  one fetch is under way per broker; the next one leaves as soon as its answer came, while less than
    `barnabas.prefetch.bytes` is queued
G3  a range ends when the log is known to have nothing more below its end: the last offsets may belong to
    control batches or to records that compaction removed
G4  whatever can pass is tried again for as long as the taking side waits; the rest is put into the queue

One task on the client's loop.  One other thread takes; nothing crosses threads per record.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Final, NamedTuple

from barnabas.base.types import TopicPartition, Uuid
from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientSettings
from barnabas.client.errors import ClientClosed, KafkaError, error_for
from barnabas.client.fetched import Span, spans_of
from barnabas.client.offsets import EARLIEST, LATEST, list_offsets
from barnabas.client.subscription import UNKNOWN
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from barnabas.records.batch import MAGIC, iter_batches
from barnabas.records.legacy import magic_of

__all__ = ["FetchedChunk", "Habits", "Lost", "RangeLike", "RangeReads"]

_log: Final = logging.getLogger("barnabas.client.bulk_fetch")

_IDS_FROM: Final = 13
_PURPOSE: Final = "bulk-fetch"
# Large enough that the cost of a request does not show, and within the largest block that connections reuse:
# memory that is touched for the first time costs as much as reading into it.
_ANSWER_BYTES: Final = (4 << 20) - (64 << 10)
_PREFETCH_BYTES: Final = 3 * _ANSWER_BYTES
_ASK_BYTES_MIN: Final = 64 << 10
_BYTES_PER_OFFSET: Final = 1024.0  # a first guess
_ASK_MARGIN: Final = 1.1
_GONE_S: Final = 5.0  # brokers may lag behind the controller for moments, not for so long
_EMPTY: Final = memoryview(b"")

RangeLike = tuple[str, int, int, int]
"""Topic, partition, first offset, and the offset before which to stop."""


class Lost(NamedTuple):
    """Offsets start <= offset < end that were asked for and do not exist any more."""

    start: int
    end: int
    why: str


class FetchedChunk(NamedTuple):
    """Whole batches of one partition as the broker sent them, or the notice that offsets are lost.

    The first batch may start below what was asked for and the last one pass the end.  `range_index` is the
    place of its range among those given; `next_offset` is where the range goes on, its end when it is done.
    `aborted` has (producer id, first offset) of aborted transactions, None for read_uncommitted.
    """

    range_index: int
    topic: str
    partition: int
    records: memoryview
    next_offset: int
    aborted: list[tuple[int, int]] | None = None
    log_start_offset: int = UNKNOWN
    high_watermark: int = UNKNOWN
    last_stable_offset: int = UNKNOWN
    lost: Lost | None = None


@dataclass(slots=True, eq=False)
class _Reading:
    """How far one range is; written on the loop only."""

    index: int
    topic_partition: TopicPartition
    position: int
    end: int
    bytes_per_offset: float = _BYTES_PER_OFFSET
    preferred: int = UNKNOWN
    is_busy: bool = False
    retry_at: float = 0.0
    missing_since: float | None = None
    trouble: str = ""

    @property
    def is_done(self) -> bool:
        return self.position >= self.end

    def ask_bytes(self, limit: int) -> int:
        wanted = (self.end - self.position) * self.bytes_per_offset * _ASK_MARGIN
        return int(min(limit, wanted + _ASK_BYTES_MIN))

    def __str__(self) -> str:
        return f"{self.topic_partition} at offset {self.position} of {self.end}"


@dataclass(slots=True)
class Habits:
    """What earlier reads have taught: how large the records of a topic are."""

    bytes_per_offset: dict[str, float] = field(default_factory=dict)


class RangeReads:
    """Fetches ranges into `queue`, which ends with None, or with the error that ended it all."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ClientSettings,
        ranges: Iterable[RangeLike],
        *,
        read_committed: bool,
        habits: Habits,
    ) -> None:
        self.queue: Final[SimpleQueue[FetchedChunk | BaseException | None]] = SimpleQueue()
        self._cluster = cluster
        self._read_committed = read_committed
        self._habits = habits
        self._readings = [_reading(index, each, habits) for index, each in enumerate(ranges)]
        self._fetching: dict[int, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self._run_task: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._added_bytes = 0  # written by the loop only
        self._used_bytes = 0  # written by the taking side only
        self._wants_room = False
        self._max_wait_ms = settings.integer("fetch.max.wait.ms")
        self._answer_bytes = _given_or(settings, "fetch.max.bytes", _ANSWER_BYTES)
        self._partition_bytes = _given_or(settings, "max.partition.fetch.bytes", _ANSWER_BYTES)
        self._prefetch_bytes = _given_or(settings, "barnabas.prefetch.bytes", _PREFETCH_BYTES)
        self._retry_s = settings.integer("retry.backoff.ms") / 1000
        self._request_timeout_ms = settings.integer("request.timeout.ms")
        self._rack = settings.string("client.rack")

    # --- the taking side

    def used(self, size_bytes: int) -> bool:
        """Notes that bytes were taken; true when `wake` has to be called on the loop."""
        self._used_bytes += size_bytes
        if not self._wants_room:
            return False
        self._wants_room = False
        return True

    def why_waiting(self) -> str:
        """What the ranges that are not done wait for, the first of them in full."""
        waiting = [reading for reading in self._readings if not reading.is_done]
        if not waiting:
            return "nothing is left to read"
        first = waiting[0]
        more = f" (and {len(waiting) - 1} more ranges)" if len(waiting) > 1 else ""
        return f"{first}: {first.trouble or 'no answer came'}{more}"

    # --- the loop's side

    def start(self) -> None:
        self._run_task = asyncio.create_task(self._run(), name="barnabas bulk fetch")

    def wake(self) -> None:
        self._wake.set()

    async def stop(self) -> None:
        """Ends the fetching; may be called again."""
        tasks = [*self._fetching.values(), *([self._run_task] if self._run_task is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        try:
            await self._learn_topics()
            while any(not reading.is_done for reading in self._readings):
                self._wake.clear()
                if self._failure is not None:
                    raise self._failure
                pause_s = self._start_fetches()
                try:
                    async with asyncio.timeout(pause_s):
                        await self._wake.wait()
                except TimeoutError:
                    pass
        except asyncio.CancelledError:
            self.queue.put(ClientClosed("the bulk fetcher was closed during a read"))
            raise
        except Exception as error:  # whoever takes raises it, also what is our own fault
            self.queue.put(error)
        else:
            self.queue.put(None)

    async def _learn_topics(self) -> None:
        topics = {reading.topic_partition.topic for reading in self._readings}
        missing = topics - set(self._cluster.metadata.topics)
        if missing:
            await self._cluster.refresh(missing)
        self._cluster.track(topics)

    # --- what to ask whom

    def _start_fetches(self) -> float | None:
        """Starts every fetch that can be started; the seconds after which to look again, if any."""
        self._wants_room = True
        if self._added_bytes - self._used_bytes >= self._prefetch_bytes:
            return None
        self._wants_room = False
        now = asyncio.get_running_loop().time()
        chosen: dict[int, list[_Reading]] = {}
        room: dict[int, int] = {}
        waits = False
        for reading in self._readings:
            if reading.is_done or reading.is_busy:
                continue
            node = self._node_of(reading, now)
            if node is None or reading.retry_at > now:
                waits = True
                continue
            if node in self._fetching or room.setdefault(node, self._answer_bytes) <= 0:
                continue
            asked = chosen.setdefault(node, [])
            if any(other.topic_partition == reading.topic_partition for other in asked):
                continue
            asked.append(reading)
            room[node] -= reading.ask_bytes(self._partition_bytes)
        for node, readings in chosen.items():
            for reading in readings:
                reading.is_busy = True
            self._fetching[node] = asyncio.create_task(self._fetch_from(node, readings))
        return self._retry_s if waits else None

    def _node_of(self, reading: _Reading, now: float) -> int | None:
        if reading.preferred != UNKNOWN:
            return reading.preferred
        topic, partition = reading.topic_partition
        metadata = self._cluster.metadata
        if (node := metadata.leader(topic, partition)) is not None:
            reading.missing_since = None
            return node
        self._cluster.want_refresh()
        if topic in metadata.topics and partition < len(metadata.topics[topic].partitions):
            reading.trouble = "it has no leader"
            return None
        code = metadata.errors.get(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not code.retriable:
            raise error_for(code, subject=f"topic {topic!r}")
        reading.trouble = "the cluster does not have it"
        if reading.missing_since is None:
            reading.missing_since = now
        elif now - reading.missing_since > _GONE_S:
            self._lose(reading, reading.end, "the cluster does not have the partition")
        return None

    async def _fetch_from(self, node: int, readings: list[_Reading]) -> None:
        try:
            await self._fetch(node, readings)
        except KafkaError as error:
            _log.debug("bulk fetch from broker %d: %s", node, error)
            if not error.retriable:
                self._failure = error
            self._cluster.want_refresh()
            self._put_off(readings, str(error))
        except Exception as error:  # bytes that are no batches, or our own fault: nothing that passes
            self._failure = error
        finally:
            del self._fetching[node]
            for reading in readings:
                reading.is_busy = False
            self._wake.set()

    async def _fetch(self, node: int, readings: list[_Reading]) -> None:
        await self._cluster.ready(node, purpose=_PURPOSE)
        version = self._cluster.version_of(node, ApiKey.FETCH) or 0
        topics = self._cluster.metadata.topics
        ids: dict[str, Uuid] = {}
        for name in {reading.topic_partition.topic for reading in readings}:
            if (info := topics.get(name)) is not None and info.has_id:
                ids[name] = info.id
        by_id = version >= _IDS_FROM and all(r.topic_partition.topic in ids for r in readings)
        answer = await self._cluster.send(
            node,
            self._request(readings, ids if by_id else {}),
            purpose=_PURPOSE,
            timeout_ms=self._request_timeout_ms + self._max_wait_ms,
            version_max=None if by_id else _IDS_FROM - 1,
        )
        assert isinstance(answer, FetchResponse), answer
        if answer.error_code:
            raise error_for(answer.error_code, subject=f"fetch from broker {node}")
        names = {topic_id: name for name, topic_id in ids.items()} if by_id else {}
        asked = {reading.topic_partition: reading for reading in readings}
        for topic in answer.responses:
            name = names.get(topic.topic_id, "") if by_id else topic.topic
            for data in topic.partitions:
                reading = asked.get(TopicPartition(name, data.partition_index))
                if reading is not None:
                    await self._take(reading, data)

    def _request(self, readings: list[_Reading], ids: dict[str, Uuid]) -> FetchRequest:
        topics: dict[str, FetchTopic] = {}
        for reading in readings:
            name, number = reading.topic_partition
            topic = topics.get(name)
            if topic is None:
                topic = FetchTopic(topic_id=ids[name]) if name in ids else FetchTopic(topic=name)
                topics[name] = topic
            topic.partitions.append(
                FetchPartition(
                    partition=number,
                    current_leader_epoch=self._epoch_of(reading),
                    fetch_offset=reading.position,
                    partition_max_bytes=reading.ask_bytes(self._partition_bytes),
                )
            )
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=self._max_wait_ms,
            min_bytes=1,
            max_bytes=self._answer_bytes,
            isolation_level=int(self._read_committed),
            topics=list(topics.values()),
            rack_id=self._rack,
        )

    def _epoch_of(self, reading: _Reading) -> int:
        topic, partition = reading.topic_partition
        info = self._cluster.metadata.topics.get(topic)
        if info is None or partition >= len(info.partitions):
            return UNKNOWN
        return info.partitions[partition].leader_epoch

    # --- answers

    async def _take(self, reading: _Reading, data: PartitionData) -> None:
        if data.error_code:
            await self._failed(reading, data.error_code)
            return
        if data.preferred_read_replica >= 0:
            reading.preferred = data.preferred_read_replica
            return
        records = data.records
        if records is None or not len(records):
            self._nothing(reading, data)
            return
        assert isinstance(records, memoryview), "decoded records are a view"
        spans = spans_of(records)
        if not spans:  # only the start of a batch: what else was asked for had filled the answer
            reading.bytes_per_offset *= 2
            self._put_off([reading], f"{len(records)} bytes do not hold a whole batch")
            return
        started_at = reading.position
        for span in spans:
            self._add(reading, data, _cut(span, reading.end))
            if reading.is_done:
                break
        if (read := reading.position - started_at) > 0:
            reading.bytes_per_offset = sum(len(span.records) for span in spans) / read
            self._habits.bytes_per_offset[reading.topic_partition.topic] = reading.bytes_per_offset

    def _add(self, reading: _Reading, data: PartitionData, span: Span) -> None:
        reading.position = max(reading.position, min(span.next_offset, reading.end))
        reading.trouble = ""
        aborted = None
        if self._read_committed:
            aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()]
        topic, partition = reading.topic_partition
        self._put(
            FetchedChunk(
                reading.index,
                topic,
                partition,
                span.records,
                reading.position,
                aborted,
                data.log_start_offset,
                data.high_watermark,
                data.last_stable_offset,
            )
        )

    def _put(self, chunk: FetchedChunk) -> None:
        self._added_bytes += len(chunk.records)
        self.queue.put(chunk)

    def _nothing(self, reading: _Reading, data: PartitionData) -> None:
        """An answer without records: other partitions had filled it, or there is nothing to see yet."""
        if self._read_committed and data.last_stable_offset < reading.end <= data.high_watermark:
            reading.trouble = (
                f"a transaction is open; committed data ends at offset {data.last_stable_offset} so far"
            )
        elif data.high_watermark < reading.end:
            reading.trouble = f"the partition ends at offset {data.high_watermark} so far"
        else:
            reading.trouble = "the broker sent no records"

    async def _failed(self, reading: _Reading, code: int) -> None:
        was_preferred, reading.preferred = reading.preferred != UNKNOWN, UNKNOWN
        error = error_for(code, subject=str(reading.topic_partition))
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if not was_preferred:  # a follower may lag behind; the leader has the last word
                await self._out_of_range(reading)
            return
        if not error.retriable and code != ErrorCode.UNKNOWN_SERVER_ERROR:
            raise error
        self._cluster.want_refresh()
        self._put_off([reading], str(error))

    async def _out_of_range(self, reading: _Reading) -> None:
        tp = reading.topic_partition
        limit_ms = self._request_timeout_ms
        starts = await list_offsets(self._cluster, {tp: EARLIEST}, timeout_ms=limit_ms)
        ends = await list_offsets(self._cluster, {tp: LATEST}, timeout_ms=limit_ms)
        start, end = starts[tp].offset, ends[tp].offset
        if reading.position < start:
            self._lose(reading, start, f"the log starts at offset {start} now")
        elif reading.position > end:
            self._lose(reading, reading.end, f"the log ends at offset {end} now")
        else:
            self._put_off([reading], f"the broker says out of range, with a log from {start} to {end}")

    def _lose(self, reading: _Reading, until: int, why: str) -> None:
        lost = Lost(reading.position, min(until, reading.end), why)
        reading.position = lost.end
        topic, partition = reading.topic_partition
        self._put(FetchedChunk(reading.index, topic, partition, _EMPTY, lost.end, lost=lost))

    def _put_off(self, readings: list[_Reading], trouble: str) -> None:
        retry_at = asyncio.get_running_loop().time() + self._retry_s
        for reading in readings:
            reading.retry_at = retry_at
            reading.trouble = trouble
            reading.preferred = UNKNOWN


def _given_or(settings: ClientSettings, name: str, default: int) -> int:
    """The setting if the user chose it: its own default is made for polls of few records."""
    return settings.integer(name) if name in settings.given else default


def _reading(index: int, given: RangeLike, habits: Habits) -> _Reading:
    topic, partition, start, end = given
    guess = habits.bytes_per_offset.get(topic, _BYTES_PER_OFFSET)
    return _Reading(index, TopicPartition(topic, partition), start, end, guess)


def _cut(span: Span, end: int) -> Span:
    """The batches of a span that start below `end`."""
    if span.next_offset <= end or (magic_of(span.records) or 0) < MAGIC:
        return span
    size = 0
    for batch in iter_batches(span.records):
        if batch.base_offset >= end:
            return Span(span.records[:size], end, span.leader_epoch)
        size += batch.size_bytes
    return span
