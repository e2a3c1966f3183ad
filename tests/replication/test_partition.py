"""barnabas.replication.partition: a log behind the rules of a leader (P1, P2, P3)."""

from pathlib import Path

import pytest

from barnabas.base.types import TopicPartition
from barnabas.log.config import LogConfig
from barnabas.log.errors import OffsetOutOfRange
from barnabas.log.files import OsFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.log.producers import Origin
from barnabas.records.batch import iter_batches
from barnabas.records.builder import build_batch, end_txn_marker
from barnabas.replication.errors import (
    FencedLeaderEpoch,
    NotEnoughReplicas,
    NotLeader,
    UnknownLeaderEpoch,
)
from barnabas.replication.partition import NO_EPOCH, Partition

TP = TopicPartition("t", 0)
NOW_MS = 1_000_000
ONE, TWO = 1, 2


class World:
    """A partition on broker 1 and the rises of the high watermark it told."""

    def __init__(self, folder: Path, config: LogConfig | None = None) -> None:
        self.moves: list[TopicPartition] = []
        log = PartitionLog.open(OsFiles(), str(folder / "t-0"), TP, config or LogConfig(), now_ms=NOW_MS)
        self.partition = Partition(TP, b"\1" * 16, log, local=ONE, on_moved=self.moves.append)

    def lead(self, epoch: int = 0, *, replicas: tuple[int, ...] = (ONE,), mark: int = 0) -> Partition:
        self.partition.lead(epoch=epoch, replicas=replicas, in_sync=replicas, high_watermark=mark)
        return self.partition


def rows(*values: bytes, producer_id: int = -1, transactional: bool = False) -> memoryview:
    return memoryview(
        build_batch(
            [(NOW_MS, None, value, ()) for value in values],
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=0 if producer_id >= 0 else -1,
            transactional=transactional,
        )
    )


def append(partition: Partition, *values: bytes, acks_all: bool = True) -> int:
    return partition.append(rows(*values), acks_all=acks_all, now_ms=NOW_MS).base_offset


def read(partition: Partition, offset: int = 0, *, committed_only: bool = False) -> list[int]:
    result = partition.read(offset, max_bytes=1 << 20, committed_only=committed_only, min_one_batch=True)
    data = b"" if result.slice is None else result.slice.read()
    return [record.offset for batch in iter_batches(memoryview(data)) for record in batch.records(limit=9999)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


class TestBeforeAndAfterLeading:
    def test_it_serves_nothing_before(self, world: World) -> None:
        partition = world.partition
        assert partition.leader_epoch == NO_EPOCH
        for ask in (
            lambda: append(partition, b"x"),
            lambda: read(partition),
            lambda: partition.high_watermark,
            lambda: partition.last_stable_offset,
            lambda: partition.committed(0),
            lambda: partition.delete_records_before(0),
            lambda: partition.epoch_end_offset(0),
        ):
            with pytest.raises(NotLeader, match=r"^this broker does not lead t-0$"):
                ask()

    def test_who_resigns_wakes_those_that_wait_and_serves_no_more(self, world: World) -> None:
        partition = world.lead()
        append(partition, b"x")
        world.moves.clear()
        partition.resign()
        assert world.moves == [TP]
        with pytest.raises(NotLeader):
            read(partition)

    def test_an_epoch_never_falls_nor_repeats(self, world: World) -> None:
        partition = world.lead(3)
        for epoch in (2, 3):
            with pytest.raises(AssertionError, match=f"P2: epoch {epoch} after 3"):
                world.lead(epoch)
        assert partition.leader_epoch == 3

    def test_a_restarted_leader_knows_the_mark_that_was_written_down(self, world: World) -> None:
        append(world.lead(), b"0", b"1", b"2")
        partition = world.lead(1, replicas=(ONE, TWO), mark=2)
        assert partition.high_watermark == 2

    def test_a_mark_below_the_log_start_is_raised_to_it(self, world: World) -> None:
        partition = world.lead()
        append(partition, b"0", b"1", b"2")
        partition.delete_records_before(2)
        assert world.lead(1, replicas=(ONE, TWO), mark=0).high_watermark == 2


class TestAppending:
    def test_the_batch_carries_the_current_epoch(self, world: World) -> None:
        append(world.lead(4), b"x")
        assert world.partition.log.latest_epoch == 4
        append(world.lead(6), b"y")
        assert [(e.epoch, e.start_offset) for e in world.partition.log.epoch_entries()] == [(4, 0), (6, 1)]

    def test_a_single_replica_commits_at_once_and_tells(self, world: World) -> None:
        partition = world.lead()
        assert append(partition, b"a", b"b") == 0
        assert partition.high_watermark == 2
        assert partition.committed(1)
        assert world.moves == [TP]

    def test_followers_hold_the_mark_back(self, world: World) -> None:
        partition = world.lead(replicas=(ONE, TWO))
        append(partition, b"a", b"b")
        assert (partition.high_watermark, world.moves) == (0, [])
        assert not partition.committed(0)
        assert partition.leading.follower_fetched(TWO, 2, NOW_MS)
        assert partition.committed(1)

    def test_acks_all_needs_min_insync_replicas(self, tmp_path: Path) -> None:
        world = World(tmp_path, LogConfig(min_insync_replicas=2))
        partition = world.lead()
        with pytest.raises(NotEnoughReplicas, match=r"^t-0: 1 replicas are in sync, 2 are needed$"):
            append(partition, b"x")
        assert partition.log.log_end_offset == 0
        assert append(partition, b"x", acks_all=False) == 0
        assert append(world.lead(1, replicas=(ONE, TWO)), b"y") == 1


class TestReading:
    def test_nothing_at_or_above_the_high_watermark(self, world: World) -> None:
        partition = world.lead(replicas=(ONE, TWO))
        append(partition, b"0")
        append(partition, b"1")
        assert read(partition) == []
        partition.leading.follower_fetched(TWO, 1, NOW_MS)
        assert read(partition) == [0]

    def test_readers_of_committed_data_stop_at_the_last_stable_offset(self, world: World) -> None:
        partition = world.lead()
        append(partition, b"0")
        partition.append(
            rows(b"1", producer_id=9, transactional=True),
            acks_all=True,
            now_ms=NOW_MS,
            origin=Origin.COORDINATOR,
        )
        append(partition, b"2")
        assert (partition.last_stable_offset, partition.high_watermark) == (1, 3)
        assert read(partition, committed_only=True) == [0]
        assert read(partition) == [0, 1, 2]
        marker = end_txn_marker(
            committed=True, coordinator_epoch=0, timestamp=NOW_MS, producer_id=9, producer_epoch=0
        )
        partition.append(memoryview(marker), acks_all=True, now_ms=NOW_MS, origin=Origin.COORDINATOR)
        assert partition.last_stable_offset == 4

    def test_outside_the_log_is_an_error(self, world: World) -> None:
        partition = world.lead()
        append(partition, b"0")
        for offset in (-1, 2):
            with pytest.raises(OffsetOutOfRange):
                read(partition, offset)
        assert read(partition, 1) == []


class TestEpochs:
    def test_who_knows_another_epoch_is_told_which_side_is_behind(self, world: World) -> None:
        partition = world.lead(5)
        partition.check_epoch(5)
        partition.check_epoch(NO_EPOCH)
        with pytest.raises(FencedLeaderEpoch, match=r"^t-0 is in leader epoch 5, the caller in 4$"):
            partition.check_epoch(4)
        with pytest.raises(UnknownLeaderEpoch, match=r"^t-0 is in leader epoch 5, the caller knows 6$"):
            partition.check_epoch(6)

    def test_where_epochs_end(self, world: World) -> None:
        append(world.lead(0), b"0", b"1")
        append(world.lead(2), b"2")
        partition = world.lead(5)
        ends = {epoch: partition.epoch_end_offset(epoch) for epoch in range(-1, 7)}
        assert ends == {
            -1: (-1, -1),
            0: (0, 2),
            1: (0, 2),
            2: (2, 3),
            3: (2, 3),  # began and ended behind the last record
            4: (2, 3),
            5: (5, 3),
            6: (-1, -1),
        }

    def test_so_they_do_once_the_current_one_has_written(self, world: World) -> None:
        append(world.lead(0), b"0")
        append(world.lead(5), b"1")
        assert [world.partition.epoch_end_offset(epoch) for epoch in (0, 3, 5)] == [(0, 1), (0, 1), (5, 2)]

    def test_epochs_of_an_empty_log_end_where_it_begins(self, world: World) -> None:
        partition = world.lead(2)
        assert [partition.epoch_end_offset(epoch) for epoch in (0, 1, 2)] == [(0, 0), (1, 0), (2, 0)]


class TestDeletingRecords:
    def test_the_log_start_moves_up(self, world: World) -> None:
        partition = world.lead()
        append(partition, b"0", b"1", b"2")
        assert partition.delete_records_before(2) == 2
        assert partition.delete_records_before(1) == 2, "it never falls"
        assert partition.delete_records_before(-1) == 3

    def test_not_above_what_is_committed(self, world: World) -> None:
        partition = world.lead(replicas=(ONE, TWO))
        append(partition, b"0")
        for offset in (1, -2):
            with pytest.raises(OffsetOutOfRange):
                partition.delete_records_before(offset)
        assert partition.delete_records_before(-1) == 0
