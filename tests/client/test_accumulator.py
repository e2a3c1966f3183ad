"""Tests of the accumulator: when batches are due, where records go, what the pool holds."""

import itertools
from typing import Any

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.errors import Misuse
from barnabas.base.types import ZERO_UUID
from barnabas.client import delivery
from barnabas.client.accumulator import Accumulator, Limits, ProducerTopic
from barnabas.client.buffer_pool import BufferPool
from barnabas.client.hot import Appender, RecordFuture
from barnabas.client.metadata import PartitionInfo, TopicInfo
from barnabas.client.producer_batch import Compression, ProducerBatch

LIMITS = Limits(batch_bytes=1_000, linger_ms=50, delivery_timeout_ms=5_000, request_bytes_max=10_000)


def info(*leaders: int, name: str = "t") -> TopicInfo:
    return TopicInfo(name, ZERO_UUID, tuple(PartitionInfo(index, at) for index, at in enumerate(leaders)))


class Kit:
    def __init__(self, *leaders: int, total: int = 100_000, limits: Limits = LIMITS, **more: Any) -> None:
        self.clock = ManualClock()
        self.pool = BufferPool(total)
        self.wakes = 0
        self.accumulator = Accumulator(
            Appender(hashes_keys=True, clock=self.clock),
            self.pool,
            limits,
            self.clock,
            wake=self._wake,
            **more,
        )
        self.topic = self.accumulator.update_topic(info(*leaders))

    def _wake(self) -> None:
        self.wakes += 1

    def add(
        self, partition: int | None = 0, value: bytes = b"v", *, reserved: int = 0
    ) -> RecordFuture | None:
        return self.accumulator.add(
            self.topic, partition, 1, None, value, (), None, size=len(value) + 100, reserved=reserved
        )

    def added(self, partition: int | None = 0, value: bytes = b"v") -> ProducerBatch:
        future = self.add(partition, value)
        assert future is not None
        assert isinstance(future.batch, ProducerBatch)
        return future.batch

    def due_ms(self, partition: int = 0) -> int:
        return self.accumulator.due_in_ms(self.topic.lane(partition), self.clock.monotonic_ms())


class TestAdding:
    def test_records_of_a_partition_share_a_batch(self) -> None:
        kit = Kit(1)
        assert kit.added() is kit.added()
        assert list(kit.accumulator.incomplete) == [kit.topic.lane(0).open]

    def test_a_full_batch_is_followed_by_another(self) -> None:
        kit = Kit(1)
        first = kit.added(0, b"x" * 600)
        second = kit.added(0, b"x" * 600)
        assert first is not second
        assert list(kit.topic.lane(0).queue) == [first, second]

    def test_the_hot_path_finds_the_open_batch(self) -> None:
        kit = Kit(1)
        batch = kit.added()
        future = kit.accumulator.appender.append("t", b"v", None, None, 0, None, None)
        assert future is not None
        assert future.batch is batch

    def test_a_batch_takes_its_size_from_the_pool(self) -> None:
        kit = Kit(1)
        kit.added()
        assert kit.pool.available == 99_000
        kit.added(0, b"x" * 5_000)
        assert kit.pool.available == 99_000 - 5_100

    def test_without_room_nothing_is_added(self) -> None:
        kit = Kit(1, total=1_500)
        kit.added(0, b"x" * 900)
        wakes = kit.wakes
        assert kit.add(0, b"x" * 900) is None
        assert len(kit.accumulator.incomplete) == 1
        assert kit.wakes > wakes

    def test_reserved_bytes_become_the_batch_s(self) -> None:
        kit = Kit(1, total=1_000)
        assert kit.pool.take(1_000)
        future = kit.add(reserved=1_000)
        assert future is not None
        kit.accumulator.release(kit.topic.lane(0).queue[0])
        assert kit.pool.available == 1_000

    def test_reserved_bytes_that_are_not_needed_are_given_back(self) -> None:
        kit = Kit(1, total=2_000)
        kit.added()
        assert kit.pool.take(1_000)
        assert kit.add(reserved=1_000) is not None
        assert kit.pool.available == 1_000

    def test_every_new_batch_wakes_the_sender(self) -> None:
        kit = Kit(1)
        kit.added()
        assert kit.wakes == 1
        kit.added()
        assert kit.wakes == 1


class TestStickiness:
    def test_records_without_a_key_stay_until_the_batch_is_full(self) -> None:
        kit = Kit(1, 1, 1)
        first = kit.added(None, b"x" * 400)
        assert kit.added(None, b"x" * 400) is first
        second = kit.added(None, b"x" * 400)
        assert second.partition != first.partition

    def test_they_move_when_the_batch_was_sent(self) -> None:
        kit = Kit(1, 1)
        first = kit.added(None)
        kit.accumulator.take_first(kit.topic.lane(first.partition))
        assert kit.added(None).partition != first.partition

    def test_all_partitions_get_their_share(self) -> None:
        kit = Kit(1, 1, 1, total=10_000_000)
        seen = [kit.added(None, b"x" * 900).partition for _ in range(60)]
        assert set(seen) == {0, 1, 2}
        assert all(one != two for one, two in itertools.pairwise(seen))

    def test_partitions_without_a_leader_are_avoided(self) -> None:
        kit = Kit(-1, 1, -1, total=10_000_000)
        assert {kit.added(None, b"x" * 900).partition for _ in range(20)} == {1}

    def test_without_any_leader_records_are_taken_all_the_same(self) -> None:
        assert Kit(-1).added(None).partition == 0


class TestDue:
    def test_an_open_batch_lingers(self) -> None:
        kit = Kit(1)
        kit.added()
        assert kit.due_ms() == 50
        kit.clock.advance(50)
        assert kit.due_ms() <= 0

    def test_a_full_one_does_not(self) -> None:
        kit = Kit(1)
        kit.added(0, b"x" * 600)
        kit.added(0, b"x" * 600)
        assert kit.due_ms() <= 0

    def test_one_that_somebody_waits_for_does_not(self) -> None:
        kit = Kit(1)
        batch = kit.added()
        kit.accumulator.hasten(batch)
        assert kit.due_ms() <= 0
        assert kit.wakes == 2
        kit.accumulator.hasten(batch)
        assert kit.wakes == 2

    def test_nor_while_somebody_waits_for_memory(self) -> None:
        kit = Kit(1, total=1_000)
        kit.added()
        kit.pool.wait(500, lambda: None)
        assert kit.due_ms() <= 0

    def test_nor_during_a_flush(self) -> None:
        kit = Kit(1)
        kit.added()
        kit.accumulator.flushes += 1
        assert kit.due_ms() <= 0

    def test_nor_when_the_producer_closes(self) -> None:
        kit = Kit(1)
        kit.added()
        kit.accumulator.close()
        assert kit.due_ms() <= 0
        assert kit.accumulator.appender.append("t", b"v", None, None, 0, None, None) is None

    def test_one_that_failed_waits_its_back_off_and_nothing_passes_it(self) -> None:
        kit = Kit(1)
        kit.added(0, b"x" * 600)
        kit.added(0, b"x" * 600)
        batch = kit.accumulator.take_first(kit.topic.lane(0))
        batch.attempts, batch.retry_at_ms = 1, 100
        kit.accumulator.requeue(batch)
        kit.accumulator.flushes += 1
        assert kit.topic.lane(0).queue[0] is batch
        assert kit.due_ms() == 100
        kit.clock.advance(100)
        assert kit.due_ms() <= 0

    def test_waiting_may_be_refused(self) -> None:
        def refuse() -> None:
            raise Misuse("not here")

        kit = Kit(1, may_wait=refuse)
        batch = kit.added()
        with pytest.raises(Misuse):
            kit.accumulator.hasten(batch)
        kit.accumulator.hasten_soon(batch)
        assert batch.is_urgent


class TestTheQueue:
    def test_taking_the_last_one_closes_it(self) -> None:
        kit = Kit(1)
        batch = kit.added()
        assert kit.accumulator.take_first(kit.topic.lane(0)) is batch
        assert kit.topic.lane(0).open is None
        assert not kit.accumulator.has_unsent()
        assert batch in kit.accumulator.incomplete

    def test_requeued_batches_come_back_in_order(self) -> None:
        kit = Kit(1, total=1_000_000)
        batches = [kit.added(0, b"x" * 900) for _ in range(5)]
        lane = kit.topic.lane(0)
        taken = [kit.accumulator.take_first(lane) for _ in range(3)]
        for batch in (taken[2], taken[0], taken[1]):
            kit.accumulator.requeue(batch)
        assert list(lane.queue) == batches

    def test_parts_take_the_place_of_the_whole(self) -> None:
        kit = Kit(1, total=1_000_000)
        first = kit.added(0, b"x" * 400)
        kit.added(0, b"x" * 400)
        last = kit.added(0, b"x" * 400)
        lane = kit.topic.lane(0)
        kit.accumulator.take_first(lane)
        first.seal(Compression())
        parts = [part for _, part in first.split(0)]
        for part in reversed(parts):
            kit.accumulator.requeue(part)
        assert list(lane.queue) == [*parts, last]

    def test_what_is_too_old_is_taken_out(self) -> None:
        kit = Kit(1, 1)
        old = kit.added(0)
        kit.clock.advance(3_000)
        young = kit.added(1)
        kit.clock.advance(2_000)
        assert kit.accumulator.expired(kit.clock.monotonic_ms()) == [old]
        assert list(kit.topic.lane(1).queue) == [young]

    def test_everything_can_be_taken_out(self) -> None:
        kit = Kit(1, 1, total=1_000_000)
        batches = {kit.added(index % 2, b"x" * 900) for index in range(6)}
        assert set(kit.accumulator.take_all()) == batches
        assert not kit.accumulator.has_unsent()

    def test_a_finished_batch_gives_its_bytes_back_once(self) -> None:
        kit = Kit(1)
        batch = kit.added()
        kit.accumulator.release(batch)
        kit.accumulator.release(batch)
        assert kit.pool.available == 100_000
        assert not kit.accumulator.incomplete


class TestMetadata:
    def test_new_partitions_get_lanes_and_leaders_move(self) -> None:
        kit = Kit(1)
        batch = kit.added()
        topic = kit.accumulator.update_topic(info(2, 3, -1))
        assert topic is kit.topic
        assert [topic.lane(index).leader for index in range(3)] == [2, 3, -1]
        assert topic.available == [0, 1]
        assert topic.lane(0).open is batch

    def test_topics_are_known_by_name(self) -> None:
        kit = Kit(1)
        kit.accumulator.update_topic(info(1, name="u"))
        assert kit.accumulator.topic_names() == ["t", "u"]
        assert isinstance(kit.accumulator.topic("u"), ProducerTopic)
        assert kit.accumulator.topic("v") is None

    def test_after_closing_the_hot_path_learns_no_topic(self) -> None:
        kit = Kit(1)
        kit.accumulator.close()
        kit.accumulator.update_topic(info(1, 1))
        assert kit.accumulator.appender.topics == {}


def test_a_future_of_the_batch_hastens_it() -> None:
    kit = Kit(1)
    batch = kit.added()
    future = kit.accumulator.appender.append("t", b"v", None, None, 0, None, None)
    assert future is not None
    with pytest.raises(TimeoutError):
        future.result(0)
    assert batch.is_urgent
    delivery.finish(batch, base_offset=5, append_time_ms=-1, error=None)
    assert future.result().offset == 6
