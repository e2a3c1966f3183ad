"""The bookkeeping of `run`: what may be committed, and who handles what."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.client.work import Item, Order, Progress, Retry, Work
from barnabas.records.record import Record

TP = TopicPartition("t", 0)


def record(offset: int, key: bytes | None = None, partition: int = 0) -> Record:
    return Record(offset, 0, key, b"v", (), "t", partition, 0, 3)


def items(lanes: Iterable[tuple[int, list[Item]]]) -> list[Item]:
    return [item for _, some in lanes for item in some]


class TestProgress:
    def test_nothing_can_be_committed_before_the_first_record(self) -> None:
        assert Progress(TP).watermark is None

    @given(st.permutations(range(8)), st.integers(0, 8))
    def test_the_watermark_is_the_first_unfinished_record(self, order: list[int], finished: int) -> None:
        progress = Progress(TP)
        offsets = [3 * n for n in range(8)]  # with gaps, as compaction leaves them
        for offset in offsets:
            progress.begin(record(offset))
        for index in order[:finished]:
            progress.finish(offsets[index])
        left = [offsets[index] for index in order[finished:]]
        expected = min(left) if left else offsets[-1] + 1
        assert progress.watermark == OffsetAndMetadata(expected, "", 3)
        assert progress.unfinished == len(left)


class TestLanes:
    def test_equal_keys_go_to_one_lane_in_order(self) -> None:
        work = Work(4, "key")
        lanes = work.admit([record(n, b"%d" % (n % 5)) for n in range(50)])
        where: dict[bytes | None, set[int]] = {}
        for lane, some in lanes:
            assert [item.record.offset for item in some] == sorted(item.record.offset for item in some)
            for item in some:
                where.setdefault(item.record.key, set()).add(lane)
        assert all(len(found) == 1 for found in where.values())

    def test_records_without_a_key_are_spread(self) -> None:
        assert {lane for lane, _ in Work(3, Order.KEY).admit([record(n) for n in range(9)])} == {0, 1, 2}

    def test_a_partition_has_one_lane(self) -> None:
        lanes = Work(4, "partition").admit([record(n, b"%d" % n, partition=1) for n in range(9)])
        assert len({lane for lane, _ in lanes}) == 1

    def test_without_order_every_record_stands_alone(self) -> None:
        lanes = Work(4, "none").admit([record(n) for n in range(3)])
        assert [len(some) for _, some in lanes] == [1, 1, 1]

    def test_an_unknown_order_is_refused(self) -> None:
        with pytest.raises(Misuse, match="one of key, partition and none, not 'random'"):
            Work(1, "random")

    def test_no_worker_is_refused(self) -> None:
        with pytest.raises(Misuse, match="at least one worker"):
            Work(0, "key")


class TestCommits:
    def test_what_was_committed_is_not_committed_again(self) -> None:
        work = Work(1, "none")
        for item in items(work.admit([record(0), record(1)])):
            work.finish(item)
        offsets = work.uncommitted()
        assert offsets == {TP: OffsetAndMetadata(2, "", 3)}
        work.committed(offsets)
        assert work.uncommitted() == {}

    def test_an_unfinished_record_is_never_passed(self) -> None:
        work = Work(1, "none")
        first, second = items(work.admit([record(0), record(1)]))
        work.finish(second)
        assert work.uncommitted() == {TP: OffsetAndMetadata(0, "", 3)}
        assert work.unfinished() == {TP: OffsetAndMetadata(0, "", 3)}
        work.finish(first)
        assert work.unfinished() == {}

    def test_a_partition_that_went_no_longer_counts(self) -> None:
        work = Work(1, "none")
        first, second = items(work.admit([record(0), record(1)]))
        assert work.unfinished_of([TP]) == 2
        work.give_up([TP])
        assert first.is_void
        work.finish(first)
        work.drop(second)
        assert (work.outstanding, work.uncommitted(), work.unfinished_of([TP])) == (0, {}, 0)

    def test_a_partition_that_came_back_starts_anew(self) -> None:
        work = Work(1, "none")
        work.admit([record(5)])
        work.give_up([TP])
        (again,) = items(work.admit([record(2)]))
        work.finish(again)
        assert work.uncommitted() == {TP: OffsetAndMetadata(3, "", 3)}


def test_a_retry_tries_at_least_once() -> None:
    with pytest.raises(Misuse, match="at least once"):
        Retry(attempts=0)
