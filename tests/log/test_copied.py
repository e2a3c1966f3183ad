"""barnabas.log.copied and its append: offsets stay, nothing is skipped, nothing comes twice (K1-K3)."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import Misuse
from barnabas.log.config import LogConfig
from barnabas.log.copied import PreparedCopy, prepare_copy
from barnabas.log.errors import OffsetsKept, PositionMismatch, RecordTooLarge
from barnabas.log.partition_log import AppendResult, PartitionLog
from barnabas.log.producers import Origin
from barnabas.records.copied import run_header
from barnabas.records.errors import CorruptBatch, InvalidRecord
from tests.log._make import NOW_MS, batch, marker, open_log, read_batches

KEPT = LogConfig(offsets_kept=True)


def run(end: int, *batches: memoryview) -> memoryview:
    return memoryview(bytearray(b"".join([run_header(end), *batches])))


def append(log: PartitionLog, end: int, *batches: memoryview, epoch: int = 3) -> AppendResult:
    return log.append_copy(prepare_copy(run(end, *batches), log.config), leader_epoch=epoch, now_ms=NOW_MS)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PartitionLog]:
    made = open_log(tmp_path / "topic-0", KEPT)
    yield made
    made.close(now_ms=NOW_MS)


class TestOffsetsStay:
    def test_batches_lie_where_they_were_with_gaps(self, log: PartitionLog) -> None:
        result = append(log, 0, batch(3, base_offset=5), batch(2, base_offset=20))
        assert (result.base_offset, result.last_offset, log.log_end_offset) == (5, 21, 22)
        assert [(b.base_offset, b.last_offset, b.leader_epoch) for b in read_batches(log)] == [
            (5, 7, 3),
            (20, 21, 3),
        ]

    def test_a_jump_behind_relative_offsets_begins_a_segment(self, log: PartitionLog) -> None:
        append(log, 0, batch(base_offset=1))
        append(log, 2, batch(base_offset=2**33))
        assert log.log_end_offset == 2**33 + 1
        assert [b.base_offset for b in read_batches(log)] == [1, 2**33]

    def test_they_are_there_after_opening_again(self, tmp_path: Path) -> None:
        first = open_log(tmp_path / "t-0", KEPT)
        append(first, 0, batch(3, base_offset=5), batch(2, base_offset=20))
        first.close(now_ms=NOW_MS)
        again = open_log(tmp_path / "t-0", KEPT, clean=True)
        assert again.log_end_offset == 22
        again.release()
        crashed = open_log(tmp_path / "t-0", KEPT)
        assert crashed.log_end_offset == 22
        assert [b.base_offset for b in read_batches(crashed)] == [5, 20]
        crashed.release()


class TestComparingAndAppending:
    def test_what_is_there_is_left_out(self, log: PartitionLog) -> None:
        append(log, 0, batch(3, base_offset=0), batch(3, base_offset=3))
        again = append(log, 0, batch(3, base_offset=0), batch(3, base_offset=3), batch(3, base_offset=6))
        assert not again.duplicate
        assert [b.base_offset for b in read_batches(log)] == [0, 3, 6]

    def test_nothing_new_is_a_success(self, log: PartitionLog) -> None:
        append(log, 0, batch(3, base_offset=0))
        again = append(log, 0, batch(3, base_offset=0))
        assert (again.duplicate, again.base_offset, again.size_bytes) == (True, 0, 0)
        assert log.log_end_offset == 3

    def test_a_run_behind_a_lost_one_is_refused(self, log: PartitionLog) -> None:
        append(log, 0, batch(3, base_offset=0))
        with pytest.raises(PositionMismatch, match="the run follows offset 6, the log ends at 3"):
            append(log, 6, batch(3, base_offset=6))
        assert log.log_end_offset == 3

    def test_a_batch_across_the_log_end_is_refused(self, log: PartitionLog) -> None:
        append(log, 0, batch(3, base_offset=0))
        with pytest.raises(PositionMismatch, match="begins before the log end, 3"):
            append(log, 0, batch(6, base_offset=0))

    @given(
        sizes=st.lists(st.integers(1, 4), min_size=1, max_size=12),
        sends=st.lists(st.tuples(st.integers(0, 11), st.integers(1, 4)), max_size=20),
    )
    def test_whatever_is_sent_in_whatever_order_the_log_is_a_prefix(
        self, tmp_path_factory: pytest.TempPathFactory, sizes: list[int], sends: list[tuple[int, int]]
    ) -> None:
        source, offset = [], 0
        for size in sizes:
            source.append((offset, size))
            offset += size + size % 2  # a gap behind every second one
        log = open_log(tmp_path_factory.mktemp("k") / "t-0", KEPT)
        for first, count in sends:
            chosen = source[first : first + count]
            if not chosen:
                continue
            before = source[first - 1] if first else (0, 0)
            with contextlib.suppress(PositionMismatch):
                append(log, sum(before), *(batch(size, base_offset=base) for base, size in chosen))
        held = [(b.base_offset, b.record_count) for b in read_batches(log)]
        log.release()
        assert held == source[: len(held)]


class TestOnlyRunsGetIn:
    def test_a_producer_is_refused(self, log: PartitionLog) -> None:
        with pytest.raises(OffsetsKept, match="only a mirror may write to it"):
            prepare_copy(batch(), log.config)
        with pytest.raises(OffsetsKept, match="keeps the offsets of another cluster"):
            log.append_as_leader(batch(), leader_epoch=0, now_ms=NOW_MS)

    def test_a_marker_takes_no_offset(self, log: PartitionLog) -> None:
        result = log.append_as_leader(
            marker(7, 0, committed=False), leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR
        )
        assert result.duplicate
        assert log.log_end_offset == 0

    def test_a_run_into_another_topic_is_refused(self, tmp_path: Path) -> None:
        plain = open_log(tmp_path / "t-0")
        copy = prepare_copy(run(0, batch()), KEPT)
        with pytest.raises(OffsetsKept, match="gives offsets of its own"):
            plain.append_copy(copy, leader_epoch=0, now_ms=NOW_MS)
        plain.release()

    def test_no_batches_are_refused(self) -> None:
        with pytest.raises(InvalidRecord, match="the run has no batches"):
            prepare_copy(run(0), KEPT)
        with pytest.raises(OffsetsKept):
            prepare_copy(memoryview(bytearray()), KEPT)

    def test_offsets_that_fall_are_refused(self) -> None:
        with pytest.raises(InvalidRecord, match="comes where offset 8 or more is due"):
            prepare_copy(run(0, batch(3, base_offset=5), batch(base_offset=7)), KEPT)
        with pytest.raises(InvalidRecord, match="comes where offset 9 or more is due"):
            prepare_copy(run(9, batch(base_offset=7)), KEPT)

    def test_a_wrong_checksum_is_refused(self) -> None:
        data = run(0, batch(3))
        data[-1] ^= 1
        with pytest.raises(CorruptBatch, match="CRC"):
            prepare_copy(data, KEPT)
        data = run(0, batch(3))
        data[30] ^= 1
        with pytest.raises(CorruptBatch, match="CRC"):
            prepare_copy(data, KEPT)

    def test_a_batch_too_large_is_refused(self) -> None:
        with pytest.raises(RecordTooLarge, match=r"larger than max\.message\.bytes=100"):
            prepare_copy(run(0, batch(value_bytes=500)), LogConfig(offsets_kept=True, max_message_bytes=100))

    def test_memory_that_cannot_be_written_is_misuse(self) -> None:
        with pytest.raises(Misuse):
            prepare_copy(memoryview(bytes(run(0, batch()))), KEPT)

    @given(st.binary(max_size=200))
    def test_rubbish_gives_a_fault_and_nothing_else(self, rubbish: bytes) -> None:
        try:
            copy = prepare_copy(memoryview(bytearray(run_header(0) + rubbish)), KEPT)
        except (CorruptBatch, InvalidRecord):
            return
        assert isinstance(copy, PreparedCopy)
