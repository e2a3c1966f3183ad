"""The log of one partition: appending, rolling, reading, cutting, flushing."""

import resource
import signal
import subprocess
from pathlib import Path

import pytest

from barnabas.log.append import prepare_append
from barnabas.log.config import LogConfig
from barnabas.log.errors import (
    DiskFull,
    FolderMismatch,
    InvalidProducerEpoch,
    OffsetOutOfRange,
    OutOfOrderSequence,
    RecordTooLarge,
    UnexpectedOffset,
)
from barnabas.log.partition_log import PartitionLog
from barnabas.records.batch import RecordBatch
from barnabas.records.errors import CorruptBatch
from tests.log._make import NOW_MS, append, batch, fill, offsets, open_log, read_batches

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=100)


class TestAppendingAsLeader:
    def test_offsets_follow_each_other_and_are_patched_in_place(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        first, second = batch(3), batch(2)
        result = append(log, first, leader_epoch=4)
        assert (result.base_offset, result.last_offset, result.duplicate) == (0, 2, False)
        assert append(log, second, leader_epoch=4).base_offset == 3
        stored = RecordBatch(second)
        assert (stored.base_offset, stored.leader_epoch) == (3, 4)
        stored.check()
        assert log.log_end_offset == 5

    def test_several_batches_in_one_call(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        result = append(log, memoryview(bytearray(bytes(batch(3)) + bytes(batch(2)))))
        assert (result.base_offset, result.last_offset) == (0, 4)
        assert [each.base_offset for each in read_batches(log)] == [0, 3]

    def test_what_is_prepared_elsewhere_is_taken(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        prepared = prepare_append(batch(2), log.config, now_ms=NOW_MS)
        assert log.append_as_leader(prepared, leader_epoch=0, now_ms=NOW_MS).last_offset == 1

    def test_the_result_tells_times_and_log_start(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, LogConfig(log_append_time=True))
        append(log, batch(5))
        log.advance_log_start(3)
        result = append(log, batch(timestamp=NOW_MS - 50))
        assert (result.max_timestamp, result.log_append_time, result.log_start_offset) == (NOW_MS, NOW_MS, 3)

    def test_a_duplicate_is_answered_with_its_first_offset(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        for sequence in range(6):
            append(log, batch(producer_id=7, epoch=0, sequence=sequence))
        result = append(log, batch(producer_id=7, epoch=0, sequence=3))
        assert (result.duplicate, result.base_offset, result.last_offset) == (True, 3, 3)
        assert log.log_end_offset == 6

    def test_a_duplicate_of_a_stamped_batch_tells_its_time(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, LogConfig(log_append_time=True))
        append(log, batch(producer_id=7, epoch=0, sequence=0))
        again = log.append_as_leader(
            batch(producer_id=7, epoch=0, sequence=0), leader_epoch=0, now_ms=NOW_MS + 99
        )
        assert again.log_append_time == NOW_MS

    def test_gaps_and_old_epochs_are_refused_apart(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        append(log, batch(producer_id=7, epoch=1, sequence=0))
        with pytest.raises(OutOfOrderSequence):
            append(log, batch(producer_id=7, epoch=1, sequence=2))
        with pytest.raises(InvalidProducerEpoch):
            append(log, batch(producer_id=7, epoch=0, sequence=1))
        assert log.log_end_offset == 1

    def test_a_batch_larger_than_a_segment_is_refused(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        with pytest.raises(RecordTooLarge, match=r"bytes are more than segment.bytes=1000"):
            append(log, batch(value_bytes=2000))

    def test_a_leader_epoch_is_noted_with_its_first_batch(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        append(log, batch(2), leader_epoch=3)
        append(log, batch(2), leader_epoch=3)
        append(log, batch(2), leader_epoch=7)
        assert [tuple(entry) for entry in log.epoch_entries()] == [(3, 0), (7, 4)]
        assert (log.epoch_at(3), log.epoch_at(4), log.latest_epoch) == (3, 7, 7)
        assert log.epoch_end_offset(3) == (3, 4)
        assert log.epoch_end_offset(7) == (7, 6)
        assert log.epoch_end_offset(9) == (-1, -1)
        log.start_epoch(8)
        assert log.latest_epoch == 8


class TestAppendingAsFollower:
    def test_offsets_and_epochs_are_kept_gaps_included(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        sent = bytes(batch(2, base_offset=5, leader_epoch=1)) + bytes(batch(base_offset=20, leader_epoch=2))
        result = log.append_as_follower(memoryview(bytearray(sent)), now_ms=NOW_MS)
        assert result is not None
        assert (result.base_offset, result.last_offset) == (5, 20)
        assert log.log_end_offset == 21
        assert offsets(log) == [5, 6, 20]
        assert [tuple(entry) for entry in log.epoch_entries()] == [(1, 5), (2, 20)]

    def test_nothing_is_no_append(self, tmp_path: Path) -> None:
        assert open_log(tmp_path).append_as_follower(memoryview(b""), now_ms=NOW_MS) is None

    def test_offsets_that_are_not_behind_the_end_are_refused(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        log.append_as_follower(batch(3), now_ms=NOW_MS)
        with pytest.raises(UnexpectedOffset, match="offset 3 or more is due"):
            log.append_as_follower(batch(base_offset=2), now_ms=NOW_MS)
        assert log.log_end_offset == 3

    def test_damage_on_the_way_is_found(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        data = batch(3)
        data[-1] ^= 1
        with pytest.raises(CorruptBatch):
            log.append_as_follower(data, now_ms=NOW_MS)
        assert log.log_end_offset == 0

    def test_more_than_a_segment_is_spread_over_several(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        sent = b"".join(bytes(batch(base_offset=number)) for number in range(50))
        result = log.append_as_follower(memoryview(bytearray(sent)), now_ms=NOW_MS)
        assert result is not None
        assert result.rolled
        assert len(log.segments) > 3
        assert all(segment.size_bytes <= 1000 for segment in log.segments)
        assert offsets(log) == list(range(50))

    def test_producers_are_followed_without_judging_them(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        log.append_as_follower(batch(base_offset=0, producer_id=7, epoch=1, sequence=50), now_ms=NOW_MS)
        log.append_as_follower(batch(base_offset=1, producer_id=7, epoch=1, sequence=99), now_ms=NOW_MS)
        assert log.producers.producers[7].last_sequence == 99


class TestRolling:
    def test_by_size(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        fill(log, 40)
        assert len(log.segments) > 2
        assert all(segment.size_bytes <= 1000 for segment in log.segments)
        assert sorted(path.name for path in tmp_path.glob("*.snapshot")) == [
            f"{base:020d}.snapshot" for base in log.segments.bases[1:]
        ]

    def test_by_the_time_of_the_records(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, LogConfig(segment_ms=1000))
        for ms in (0, 500, 1000, 1001, 1500):
            append(log, batch(timestamp=NOW_MS + ms))
        assert log.segments.bases == [0, 3]

    def test_by_the_clock_when_records_have_no_time(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, LogConfig(segment_ms=1000))
        for ms in (0, 500, 1001, 1500):
            log.append_as_leader(batch(timestamp=-1), leader_epoch=0, now_ms=NOW_MS + ms)
        assert log.segments.bases == [0, 2]

    def test_jitter_rolls_earlier_and_differs_between_partitions(self, tmp_path: Path) -> None:
        config = LogConfig(segment_ms=10_000, segment_jitter_ms=9_000)
        rolled_after = set()
        for partition in range(5):
            log = open_log(tmp_path / str(partition), config)
            ms = 0
            while len(log.segments) == 1:
                append(log, batch(timestamp=NOW_MS + ms))
                ms += 100
            assert 1000 <= ms <= 10_300
            rolled_after.add(ms)
        assert len(rolled_after) > 1

    def test_by_a_full_index(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, LogConfig(segment_index_bytes=36, index_interval_bytes=50))
        fill(log, 30)
        assert len(log.segments) > 4
        assert all(len(segment.time_index) <= 4 for segment in log.segments)
        assert offsets(log) == list(range(30))

    def test_by_offsets_that_do_not_fit(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        log.append_as_follower(batch(base_offset=0), now_ms=NOW_MS)
        log.append_as_follower(batch(base_offset=2**31 - 1), now_ms=NOW_MS)
        log.append_as_follower(batch(base_offset=2**31), now_ms=NOW_MS)
        log.append_as_follower(batch(base_offset=2**40), now_ms=NOW_MS)
        assert log.segments.bases == [0, 2**31, 2**40]
        assert offsets(log) == [0, 2**31 - 1, 2**31, 2**40]
        assert offsets(open_log(tmp_path)) == [0, 2**31 - 1, 2**31, 2**40]

    def test_an_empty_active_segment_is_not_rolled(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        log.roll(NOW_MS)
        assert log.segments.bases == [0]

    def test_preallocation_leaves_no_trace_when_closed(self, tmp_path: Path) -> None:
        config = LogConfig(segment_bytes=1000, preallocate=True)
        log = open_log(tmp_path, config)
        fill(log, 20)
        assert Path(log.segments.active.path).stat().st_size == 1000
        log.close(now_ms=NOW_MS)
        assert offsets(open_log(tmp_path, config, clean=True)) == list(range(20))

    def test_a_crash_with_preallocated_space_is_recovered(self, tmp_path: Path) -> None:
        config = LogConfig(segment_bytes=1000, preallocate=True)
        fill(open_log(tmp_path, config), 20)
        log = open_log(tmp_path, config)
        assert offsets(log) == list(range(20))
        append(log, batch())
        assert offsets(log) == list(range(21))


class TestTruncation:
    def test_within_and_across_segments(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        fill(log, 40)
        for to in (38, 25, 3, 0):
            log.truncate_to(to, now_ms=NOW_MS)
            assert offsets(log) == list(range(to))
            assert log.log_end_offset == to
        fill(log, 5)
        assert offsets(log) == list(range(5))

    def test_at_or_behind_the_end_nothing_happens(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        fill(log, 3)
        log.truncate_to(3, now_ms=NOW_MS)
        log.truncate_to(9, now_ms=NOW_MS)
        assert log.log_end_offset == 3

    def test_producers_epochs_and_recovery_point_go_back(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        for sequence in range(30):
            append(log, batch(producer_id=7, epoch=0, sequence=sequence), leader_epoch=sequence // 10)
        log.flush(now_ms=NOW_MS)
        log.truncate_to(15, now_ms=NOW_MS)
        assert log.producers.producers[7].last_sequence == 14
        assert (log.latest_epoch, log.recovery_point) == (1, 15)
        assert append(log, batch(producer_id=7, epoch=0, sequence=15)).base_offset == 15

    def test_below_the_first_segment_everything_goes(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        fill(log, 40)
        log.delete_segments_below(20, now_ms=NOW_MS)
        log.truncate_to(5, now_ms=NOW_MS)
        assert (log.log_start_offset, log.log_end_offset, offsets(log)) == (5, 5, [])

    def test_starting_over_at_an_offset(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        fill(log, 40)
        log.truncate_fully_and_start_at(1000, now_ms=NOW_MS)
        assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (1000, 1000, 1000)
        assert (log.epoch_entries(), log.producers.producers) == ((), {})
        assert append(log, batch()).base_offset == 1000
        again = open_log(tmp_path, SMALL, log_start_offset=1000)
        assert offsets(again) == [1000]

    def test_slices_that_are_out_keep_their_bytes(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        fill(log, 40)
        found = log.read(39, max_bytes=100).slice
        assert found is not None
        log.truncate_fully_and_start_at(0, now_ms=NOW_MS)
        log.purge(NOW_MS + 10**9)
        RecordBatch(memoryview(found.read())).check()


class TestDeletion:
    def test_whole_segments_below_the_offset_go(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        fill(log, 40)
        bases = log.segments.bases
        before = log.size_bytes
        freed = log.delete_segments_below(bases[2] + 1, now_ms=NOW_MS)
        assert log.segments.bases == bases[2:]
        assert log.size_bytes == before - freed
        assert log.log_start_offset == bases[2]
        assert offsets(log) == list(range(bases[2], 40))

    def test_files_stay_for_their_delay(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, LogConfig(segment_bytes=1000, file_delete_delay_ms=500))
        fill(log, 40)
        log.delete_segments_below(40, now_ms=NOW_MS)
        assert list(tmp_path.glob("*.deleted"))
        assert log.purge(NOW_MS + 499) == 0
        assert log.purge(NOW_MS + 500) > 0
        assert not list(tmp_path.glob("*.deleted"))

    def test_the_active_segment_stays(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        fill(log, 5)
        assert log.delete_segments_below(5, now_ms=NOW_MS) == 0

    def test_the_log_start_never_passes_the_high_watermark(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        fill(log, 10)
        with pytest.raises(OffsetOutOfRange):
            log.advance_log_start(8, high_watermark=7)
        assert log.advance_log_start(7, high_watermark=7)
        assert not log.advance_log_start(3)


class TestFlushing:
    def test_moves_the_recovery_point(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        fill(log, 40)
        assert log.recovery_point == 0
        log.flush(now_ms=NOW_MS)
        assert log.recovery_point == 40

    def test_records_that_come_meanwhile_do_not_count(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        fill(log, 3)
        job = log.begin_flush()
        fill(log, 3)
        job.run()
        log.finish_flush(job, now_ms=NOW_MS)
        assert log.recovery_point == 3

    def test_a_truncation_meanwhile_takes_the_proof_away(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        fill(log, 5)
        job = log.begin_flush()
        log.truncate_to(2, now_ms=NOW_MS)
        fill(log, 3)
        job.run()
        log.finish_flush(job, now_ms=NOW_MS)
        assert log.recovery_point == 0

    def test_a_flush_that_failed_is_made_up_for(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        fill(log, 40)
        log.begin_flush()  # never run
        retried = log.begin_flush()
        assert len(retried._to_sync) > len(log.segments)
        retried.run()
        log.finish_flush(retried, now_ms=NOW_MS)
        assert len(log.begin_flush()._to_sync) == 1

    def test_flush_messages_asks_before_the_acknowledgement(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, LogConfig(flush_messages=4))
        assert [append(log, batch(2)).flush_due for _ in range(2)] == [False, True]
        assert log.flush_due(NOW_MS)
        log.flush(now_ms=NOW_MS)
        assert not log.flush_due(NOW_MS)

    def test_flush_ms_asks_when_the_oldest_is_due(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, LogConfig(flush_ms=100))
        assert not log.flush_due(NOW_MS + 500)
        append(log, batch())
        assert not log.flush_due(NOW_MS + 99)
        assert log.flush_due(NOW_MS + 100)

    def test_idle_producers_are_forgotten(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        append(log, batch(producer_id=7, epoch=0, sequence=0))
        assert log.expire_producers(NOW_MS + 10, 11) == 0
        assert log.expire_producers(NOW_MS + 11, 11) == 1


class TestTheFolder:
    def test_the_topic_id_is_kept_and_defended(self, tmp_path: Path) -> None:
        mine, other = b"m" * 16, b"o" * 16
        assert open_log(tmp_path, topic_id=mine).topic_id == mine
        assert open_log(tmp_path).topic_id == mine
        with pytest.raises(FolderMismatch, match="belongs to another topic of the same name"):
            open_log(tmp_path, topic_id=other)

    def test_closing_twice_is_as_good_as_once(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        fill(log, 40)
        log.delete_segments_below(20, now_ms=NOW_MS)
        log.close(now_ms=NOW_MS)
        log.close(now_ms=NOW_MS)
        assert not list(tmp_path.glob("*.deleted"))
        assert open_log(tmp_path, SMALL, clean=True).log_end_offset == 40

    def test_a_released_log_goes_on(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        fill(log, 20)
        log.release()
        assert offsets(log) == list(range(20))
        append(log, batch())
        assert offsets(log) == list(range(21))

    @pytest.mark.slow
    def test_many_segments_need_few_descriptors(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, LogConfig(segment_bytes=100))
        fill(log, 700)
        assert len(log.segments) == 700
        assert offsets(log) == list(range(700))
        links = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
        assert len([link for link in links if str(link).startswith(str(tmp_path))]) <= 520

    def test_an_untouched_log_is_closed_without_a_trace(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, SMALL)
        fill(log, 10)
        log.close(now_ms=NOW_MS)
        before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
        again = open_log(tmp_path, SMALL, clean=True)
        assert offsets(again) == list(range(10))
        again.close(now_ms=NOW_MS)
        assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


class TestAFullDisk:
    def append_for_ever(self, log: PartitionLog, producer_id: int = -1) -> None:
        epoch = 0 if producer_id >= 0 else -1
        while True:
            sequence = log.log_end_offset if producer_id >= 0 else -1
            append(log, batch(producer_id=producer_id, epoch=epoch, sequence=sequence))

    def test_reaches_the_caller_and_leaves_the_log_whole(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, LogConfig(segment_bytes=10_000, index_interval_bytes=100))
        append(log, batch(producer_id=7, epoch=0, sequence=0))
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, before[1]))
        try:
            with pytest.raises(DiskFull, match=r"\.log: File too large"):
                self.append_for_ever(log, producer_id=7)
            taken = log.log_end_offset
            assert offsets(log) == list(range(taken))
            with pytest.raises(DiskFull):
                append(log, batch(producer_id=7, epoch=0, sequence=taken))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)
        assert append(log, batch(producer_id=7, epoch=0, sequence=taken)).base_offset == taken
        assert offsets(open_log(tmp_path, log.config)) == list(range(taken + 1))

    @pytest.mark.slow
    def test_a_real_one_is_no_different(self, tmp_path: Path) -> None:
        """On a tiny file system, where also rolling and indexes run out of room."""
        mount = tmp_path / "tiny"
        mount.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(mount)], capture_output=True, check=False
        )
        if done.returncode != 0:
            pytest.skip(f"no tmpfs can be mounted here: {done.stderr.decode().strip()}")
        try:
            config = LogConfig(segment_bytes=20_000, index_interval_bytes=100)
            log = open_log(mount / "topic-0", config)
            for _ in range(3):
                with pytest.raises(DiskFull):
                    self.append_for_ever(log)
                taken = log.log_end_offset
                assert offsets(log) == list(range(taken))
            log.delete_segments_below(taken // 2, now_ms=NOW_MS)
            log.purge(NOW_MS + 10**9)
            append(log, batch())
            log.close(now_ms=NOW_MS)
            again = open_log(mount / "topic-0", config, clean=True)
            assert offsets(again) == list(range(again.log_start_offset, taken + 1))
        finally:
            # Lazily: whatever failed above may hold files open there.
            subprocess.run(["umount", "--lazy", str(mount)], check=True)
