"""Stand-ins for what surrounds the coordinator (time, timers, the log), and short ways to call it."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, TypeVar

from barnabas.base.clock import ManualClock
from barnabas.base.types import TopicPartition
from barnabas.coordinator.calls import (
    JoinCall,
    JoinResult,
    OffsetsResult,
    OffsetToCommit,
    Protocols,
    SyncCall,
    SyncResult,
)
from barnabas.coordinator.config import GROUPS, GroupSettings
from barnabas.coordinator.group import Group
from barnabas.coordinator.ports import KeyValue, Producer, Surroundings
from barnabas.coordinator.service import GroupCoordinator
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.storage.consumer_protocol import ConsumerProtocolSubscription

Result = TypeVar("Result")
PARTITION_COUNT = 4
RANGE: Protocols = (("range", b"any topics"),)


def subscription(*topics: str) -> bytes:
    return ConsumerProtocolSubscription(topics=list(topics)).encode_versioned(0)


class Answer(Generic[Result]):
    """A reply that remembers its result and fails when it is called twice."""

    def __init__(self) -> None:
        self.results: list[Result] = []

    def __call__(self, result: Result) -> None:
        assert not self.results, f"answered twice: {self.results[0]} and {result}"
        self.results.append(result)

    @property
    def waits(self) -> bool:
        return not self.results

    @property
    def result(self) -> Result:
        assert self.results, "not answered"
        return self.results[0]


class FakeTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualTimers:
    """Timers that fire only inside `advance`, in order of time."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.made = 0
        self._queue: list[tuple[int, int, FakeTimer]] = []

    def call_after(self, ms: int, callback: Callable[[], None]) -> FakeTimer:
        assert ms >= 0, ms
        self.made += 1
        timer = FakeTimer(callback)
        heapq.heappush(self._queue, (self.clock.monotonic_ms() + ms, self.made, timer))
        return timer

    def advance(self, ms: int) -> None:
        """Lets `ms` pass and fires what falls due, timers set meanwhile included."""
        end_ms = self.clock.monotonic_ms() + ms
        while self._queue and self._queue[0][0] <= end_ms:
            due_ms, _, timer = heapq.heappop(self._queue)
            callback, timer.callback = timer.callback, None
            if callback is not None:
                self.clock.advance(due_ms - self.clock.monotonic_ms())
                callback()
        self.clock.advance(end_ms - self.clock.monotonic_ms())

    @property
    def armed(self) -> int:
        return sum(timer.callback is not None for _, _, timer in self._queue)


@dataclass(frozen=True)
class Entry:
    """One batch of the log, or the marker that ends a transaction."""

    records: Sequence[KeyValue]
    producer: Producer | None = None
    marker: bool | None = None


@dataclass
class FakeLog:
    """The offsets topic in memory.  Writes are durable at once, or when `release` says so if `holds`."""

    holds: bool = False
    failing: ErrorCode = ErrorCode.NONE
    partitions: dict[int, list[Entry]] = field(default_factory=dict)
    held: list[tuple[int, Entry, Callable[[ErrorCode], None]]] = field(default_factory=list)

    def append(
        self,
        partition: int,
        records: Sequence[KeyValue],
        done: Callable[[ErrorCode], None],
        producer: Producer | None = None,
    ) -> None:
        assert records, "a batch has records"
        entry = Entry(list(records), producer)
        if self.holds:
            self.held.append((partition, entry, done))
        else:
            self._end(partition, entry, done, self.failing)

    def release(self, error: ErrorCode = ErrorCode.NONE, count: int | None = None) -> None:
        """Ends the oldest held writes."""
        for _ in range(len(self.held) if count is None else count):
            self._end(*self.held.pop(0), error)

    def marker(self, partition: int, producer_id: int, committed: bool) -> None:
        self.partitions.setdefault(partition, []).append(Entry((), Producer(producer_id, 0), committed))

    def _end(self, partition: int, entry: Entry, done: Callable[[ErrorCode], None], error: ErrorCode) -> None:
        if not error:
            self.partitions.setdefault(partition, []).append(entry)
        done(error)

    def records(self, partition: int) -> list[KeyValue]:
        return [record for entry in self.partitions.get(partition, []) for record in entry.records]


class FakeTopics:
    """Every topic has ten partitions, except those that are gone."""

    def __init__(self) -> None:
        self.gone: set[str] = set()

    def has_partition(self, topic: str, partition: int) -> bool:
        return topic not in self.gone and 0 <= partition < 10


class World:
    """A coordinator with its surroundings, and short ways to call it."""

    def __init__(
        self,
        log: FakeLog | None = None,
        clock: ManualClock | None = None,
        ids: Iterator[int] | None = None,
        **settings: int,
    ) -> None:
        self.clock = clock or ManualClock()
        self.timers = ManualTimers(self.clock)
        self.log = log or FakeLog()
        self.topics = FakeTopics()
        self.ids = ids = ids or count(1)
        settings.setdefault("group_initial_rebalance_delay_ms", 0)
        given = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.around = Surroundings(
            clock=self.clock,
            timers=self.timers,
            log=self.log,
            topics=self.topics,
            new_id=lambda: f"id{next(ids)}",
            settings=GroupSettings.of(GROUPS.parse(given)),
        )
        self.coordinator = GroupCoordinator(self.around, PARTITION_COUNT)
        self.coordinator.start()

    def own_all(self, epoch: int = 0) -> "World":
        for partition in range(PARTITION_COUNT):
            self.load(partition, epoch)
        return self

    def load(self, partition: int, epoch: int = 0) -> None:
        load = self.coordinator.begin_load(partition, epoch)
        assert load is not None
        for entry in self.log.partitions.get(partition, []):
            producer_id = None if entry.producer is None else entry.producer.producer_id
            if entry.marker is not None:
                assert producer_id is not None
                load.marker(producer_id, committed=entry.marker)
            for key, value in entry.records:
                load.record(key, value, producer_id)
        assert load.fault_count == 0, load.faults
        self.coordinator.finish_load(load)

    def restarted(self) -> "World":
        """Another coordinator on the same log, with the same settings and time."""
        world = World(self.log, self.clock, self.ids)
        world.around.settings = self.around.settings
        return world.own_all()

    def group(self, group_id: str = "g") -> Group:
        group = self.coordinator.table.find(group_id)
        assert group is not None, f"no group {group_id}"
        group.check()
        return group

    # Clients

    def join(
        self,
        member_id: str = "",
        *,
        group_id: str = "g",
        instance_id: str | None = None,
        client_id: str = "c",
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 60_000,
        protocol_type: str = "consumer",
        protocols: Protocols = RANGE,
        member_id_required: bool = False,
        can_skip_assignment: bool = True,
    ) -> Answer[JoinResult]:
        answer = Answer[JoinResult]()
        call = JoinCall(
            member_id=member_id,
            instance_id=instance_id,
            client_id=client_id,
            client_host="/127.0.0.1",
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            protocol_type=protocol_type,
            protocols=protocols,
            member_id_required=member_id_required,
            can_skip_assignment=can_skip_assignment,
        )
        self.coordinator.join(group_id, call, answer)
        return answer

    def sync(
        self,
        member_id: str,
        generation_id: int,
        assignments: Iterable[tuple[str, bytes]] = (),
        *,
        group_id: str = "g",
        instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> Answer[SyncResult]:
        answer = Answer[SyncResult]()
        call = SyncCall(
            generation_id, member_id, instance_id, protocol_type, protocol_name, list(assignments)
        )
        self.coordinator.sync(group_id, call, answer)
        return answer

    def beat(
        self, member_id: str, generation_id: int, *, group_id: str = "g", instance_id: str | None = None
    ) -> ErrorCode:
        return self.coordinator.heartbeat(group_id, member_id, generation_id, instance_id)

    def commit(
        self,
        offset: int,
        *,
        topic: str = "t",
        partition: int = 0,
        group_id: str = "g",
        member_id: str = "",
        generation_id: int = -1,
        instance_id: str | None = None,
        metadata: str | None = "",
        retention_ms: int | None = None,
    ) -> Answer[OffsetsResult]:
        answer = Answer[OffsetsResult]()
        self.coordinator.offsets.commit(
            group_id,
            member_id=member_id,
            generation_id=generation_id,
            instance_id=instance_id,
            offsets=[OffsetToCommit(TopicPartition(topic, partition), offset, metadata=metadata)],
            reply=answer,
            retention_ms=retention_ms,
        )
        return answer

    def commit_in_transaction(
        self,
        producer_id: int,
        offset: int,
        *,
        group_id: str = "g",
        partition: int = 0,
        member_id: str = "",
        generation_id: int = -1,
    ) -> Answer[OffsetsResult]:
        answer = Answer[OffsetsResult]()
        self.coordinator.offsets.commit_in_transaction(
            group_id,
            producer=Producer(producer_id, 0),
            offsets=[OffsetToCommit(TopicPartition("t", partition), offset)],
            reply=answer,
            member_id=member_id,
            generation_id=generation_id,
        )
        return answer

    def fetched(self, topic: str = "t", partition: int = 0, *, group_id: str = "g") -> int:
        fetched = self.coordinator.offsets.fetch(group_id, [TopicPartition(topic, partition)])
        assert fetched.error == ErrorCode.NONE
        return fetched.partitions[0].offset

    # Whole rebalances

    def joined(self, size: int, *, group_id: str = "g", **how: int) -> tuple[int, list[str]]:
        """A new group of `size` members after its first join phase: generation and ids, leader first."""
        answers = [self.join(group_id=group_id, **how) for _ in range(size)]  # type: ignore[arg-type]  # ints only
        self.timers.advance(0)
        results = [answer.result for answer in answers]
        assert {result.error for result in results} == {ErrorCode.NONE}
        leader_id = results[0].leader_id
        ids = sorted((result.member_id for result in results), key=lambda who: who != leader_id)
        return results[0].generation_id, ids

    def stable(self, size: int, *, group_id: str = "g", **how: int) -> tuple[int, list[str]]:
        """A new Stable group of `size` members; each is assigned its own id as bytes."""
        generation_id, ids = self.joined(size, group_id=group_id, **how)
        for member_id in (*ids[1:], ids[0]):
            self.sync(member_id, generation_id, [(who, who.encode()) for who in ids], group_id=group_id)
        assert self.group(group_id).state.value == "Stable"
        return generation_id, ids
