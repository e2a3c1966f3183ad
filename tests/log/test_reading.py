"""What can be asked of a log: reading by offset, bounds, transactions, segment starts, epochs."""

from pathlib import Path

import pytest

from barnabas.log.config import LogConfig
from barnabas.log.errors import OffsetOutOfRange
from barnabas.log.partition_log import Origin, PartitionLog
from tests.log._make import NOW_MS, append, batch, fill, marker, open_log

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=100)


class TestReading:
    def test_outside_of_the_log_is_out_of_range(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        fill(log, 10)
        log.advance_log_start(5)
        for offset in (4, 11, -1):
            with pytest.raises(OffsetOutOfRange, match=rf"offset {offset} is not within \[5, 10\]"):
                log.read(offset, max_bytes=100)

    def test_at_the_end_there_is_nothing(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        fill(log, 3)
        assert log.read(3, max_bytes=100) == (None, 3)
        assert log.read(2, max_bytes=100, upper_bound=2) == (None, 2)
        assert log.read(2, max_bytes=0, min_one_batch=False) == (None, 2)

    def test_the_upper_bound_hides_what_is_behind_it(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        fill(log, 10)
        assert log.read(3, max_bytes=10**6, upper_bound=7).next_offset == 7

    def test_a_gap_leads_into_the_next_segment(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        log.append_as_follower(batch(base_offset=0), now_ms=NOW_MS)
        log.roll(NOW_MS, 10)
        log.append_as_follower(batch(base_offset=20), now_ms=NOW_MS)
        found = log.read(5, max_bytes=100)
        assert found.slice is not None
        assert found.next_offset == 21

    def test_a_read_ends_with_its_segment(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        fill(log, 40)
        assert log.read(0, max_bytes=10**6).next_offset == log.segments.bases[1]

    def test_segment_starts(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        fill(log, 40)
        log.advance_log_start(2)
        assert log.segment_starts() == [2, *log.segments.bases[1:]]


class TestTransactions:
    def write(self, log: PartitionLog, producer: int, committed: bool) -> None:
        append(log, batch(2, producer_id=producer, epoch=0, sequence=0, transactional=True))
        self.end(log, producer, committed)

    def end(self, log: PartitionLog, producer: int, committed: bool) -> None:
        data = marker(producer, 0, committed=committed)
        log.append_as_leader(data, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)

    def test_the_last_stable_offset(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        fill(log, 5)
        assert log.last_stable_offset(5) == 5
        append(log, batch(2, producer_id=1, epoch=0, sequence=0, transactional=True))
        fill(log, 3)
        assert (log.last_stable_offset(10), log.last_stable_offset(3), log.first_unstable_offset) == (5, 3, 5)
        self.end(log, 1, True)
        assert log.last_stable_offset(10) == 5
        assert log.last_stable_offset(11) == 11
        assert log.first_unstable_offset is None

    def test_aborted_ones_are_found_by_range(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        for producer in range(20):
            self.write(log, producer, committed=producer % 2 == 0)
        assert len(log.segments) > 3
        found = log.aborted_transactions(0, log.log_end_offset)
        assert [each.producer_id for each in found] == list(range(1, 20, 2))
        assert [(each.first_offset, each.last_offset) for each in found[:2]] == [(3, 5), (9, 11)]
        assert [each.producer_id for each in log.aborted_transactions(10, 16)] == [3, 5]
        assert log.aborted_transactions(12, 14) == []

    def test_the_log_start_bounds_stability(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        append(log, batch(5, producer_id=1, epoch=0, sequence=0, transactional=True))
        log.advance_log_start(3)
        assert log.first_unstable_offset == 3

    def test_one_that_spans_segments_is_found_from_any_of_them(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        append(log, batch(producer_id=1, epoch=0, sequence=0, transactional=True))
        fill(log, 30)
        self.end(log, 1, False)
        fill(log, 30)
        for first in (0, 10, 31):
            assert [each.producer_id for each in log.aborted_transactions(first, first + 1)] == [1]
        assert log.aborted_transactions(32, 60) == []
        log.flush(now_ms=NOW_MS)
        assert [each.last_offset for each in log.aborted_transactions(5, 60)] == [31]


class TestEpochs:
    def test_ends_and_offsets(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        append(log, batch(2), leader_epoch=3)
        append(log, batch(2), leader_epoch=7)
        assert [tuple(entry) for entry in log.epoch_entries()] == [(3, 0), (7, 2)]
        assert [log.epoch_end_offset(epoch) for epoch in (3, 5, 7, 9)] == [(3, 2), (3, 2), (7, 4), (-1, -1)]
        assert (log.epoch_at(1), log.epoch_at(2), log.latest_epoch) == (3, 7, 7)


def test_bytes_behind_a_slice(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    fill(log, 40)
    for offset in (0, 17, 39):
        found = log.read(offset, max_bytes=1).slice
        assert found is not None
        behind = (40 - offset) * found.length
        assert log.bytes_behind(offset, found, 10**9) == behind
        assert 1 <= log.bytes_behind(offset, found, 1) <= behind
