"""Compaction seen from outside: what readers find before, while and after a log is cleaned."""

import logging
from pathlib import Path

import pytest

from barnabas.base.types import TopicPartition
from barnabas.log.checkpoints import read_offsets
from barnabas.log.cleaner import CleanerSettings
from barnabas.log.cleaner_run import Outcome
from barnabas.log.config import BROKER_LOG, LogConfig
from barnabas.log.layout import CLEANER_OFFSETS
from barnabas.log.offset_map import BYTES_PER_SLOT
from barnabas.log.retention import enforce_retention
from barnabas.records.codecs import Codec
from tests.log._compaction import Bench, batches, committed, pairs, records, table
from tests.log._make import PARTITION, append, batch


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


class TestTheLastValueStays:
    def test_of_each_key_at_the_offset_it_had(self, bench: Bench) -> None:
        bench.write(("a", "1"), ("b", "1"), ("a", "2"))
        bench.write(("c", "1"), ("a", "3"))
        bench.roll()
        assert bench.clean()
        assert pairs(records(bench.log)) == [(1, "b", "1"), (3, "c", "1"), (4, "a", "3")]

    def test_across_segments_and_rounds(self, bench: Bench) -> None:
        for value in range(5):
            bench.write(("a", f"{value}"), (f"only-{value}", "x"))
            bench.roll()
            bench.clean()
        assert table(records(bench.log)) == {"a": "4", **{f"only-{number}": "x" for number in range(5)}}
        assert [key for _, key, _ in pairs(records(bench.log))].count("a") == 1

    def test_the_active_segment_is_not_touched(self, bench: Bench) -> None:
        bench.write(("a", "1"))
        bench.roll()
        bench.write(("a", "2"), ("a", "3"))
        bench.clean()
        assert pairs(records(bench.log)) == [(0, "a", "1"), (1, "a", "2"), (2, "a", "3")]

    def test_records_without_a_key_go(self, bench: Bench) -> None:
        bench.write_keyless(2)
        bench.write(("a", "1"))
        bench.roll()
        bench.clean()
        assert pairs(records(bench.log)) == [(2, "a", "1")]

    @pytest.mark.parametrize("codec", list(Codec))
    def test_in_the_codec_that_it_came_in(self, bench: Bench, codec: Codec) -> None:
        bench.write(*((f"key-{number % 20}", "value " * 20) for number in range(40)), codec=codec)
        bench.roll()
        bench.clean()
        (left,) = batches(bench.log)
        assert left.codec is codec
        assert [offset for offset, _, _ in pairs(records(bench.log))] == list(range(20, 40))

    def test_times_and_headers_of_what_stays_are_the_same(self, bench: Bench) -> None:
        bench.write(("a", "1"), ("b", "1"), timestamp=111)
        bench.write(("a", "2"), timestamp=222)
        bench.roll()
        before = [record for record in records(bench.log) if record.offset > 0]
        bench.clean()
        assert records(bench.log) == before

    def test_look_ups_by_time_still_find_it(self, bench: Bench) -> None:
        for number in range(300):
            bench.write((f"{number % 100}", "x" * 100), timestamp=1000 + number)
        bench.roll()
        bench.clean()
        found = bench.log.offset_for_timestamp(1250)
        assert found is not None
        assert (found.offset, found.timestamp) == (250, 1250)

    def test_a_second_clean_of_clean_data_changes_nothing(self, bench: Bench) -> None:
        bench.write(("a", "1"), ("a", "2"))
        bench.roll()
        assert bench.clean()
        assert not bench.clean()
        assert bench.cleaner.state.dirtiest_ratio == 0


class TestTombstones:
    def test_hide_older_values_at_once_and_stay_for_a_while(self, bench: Bench) -> None:
        bench.write(("a", "1"), ("b", "1"), ("a", None))
        bench.roll()
        bench.clean()
        assert pairs(records(bench.log)) == [(1, "b", "1"), (2, "a", None)]

    def test_get_their_horizon_from_the_first_clean_and_keep_their_times(self, bench: Bench) -> None:
        bench.write(("a", "1"), ("b", "1"), ("a", None), timestamp=5000)
        bench.roll()
        bench.clean()
        (left,) = batches(bench.log)
        assert left.delete_horizon_ms == bench.clock.now_ms() + 1000
        assert left.max_timestamp == 5000
        assert {record.timestamp for record in records(bench.log)} == {5000}

    def test_go_with_the_first_clean_behind_their_horizon(self, bench: Bench) -> None:
        bench.write(("a", "1"), ("b", "1"), ("a", None))
        bench.roll()
        bench.clean()
        bench.clock.advance(999)
        bench.write(("x", "1"))
        bench.roll()
        bench.clean()
        assert (2, "a", None) in pairs(records(bench.log))
        bench.clock.advance(1)
        bench.write(("x", "2"))
        bench.roll()
        bench.clean()
        assert table(records(bench.log)) == {"b": "1", "x": "2"}
        assert all(value is not None for _, _, value in pairs(records(bench.log)))

    def test_a_value_after_a_tombstone_lives(self, bench: Bench) -> None:
        bench.write(("a", "1"), ("a", None), ("a", "2"))
        bench.roll()
        bench.clean()
        assert pairs(records(bench.log)) == [(2, "a", "2")]


class TestTransactions:
    def test_aborted_records_go_and_replace_nothing(self, bench: Bench) -> None:
        bench.write(("a", "1"))
        bench.write(("a", "bad"), ("b", "bad"), producer_id=7, transactional=True)
        bench.end(7, committed=False)
        bench.write(("c", "1"))
        bench.roll()
        bench.clean()
        assert pairs(records(bench.log)) == [(0, "a", "1"), (4, "c", "1")]

    def test_committed_records_replace_older_ones(self, bench: Bench) -> None:
        bench.write(("a", "1"))
        bench.write(("a", "2"), producer_id=7, transactional=True)
        bench.end(7, committed=True)
        bench.roll()
        bench.clean()
        assert pairs(committed(bench.log)) == [(1, "a", "2")]

    def test_an_open_transaction_stops_the_cleaning(self, bench: Bench) -> None:
        bench.write(("a", "1"), ("a", "2"))
        bench.roll()
        bench.write(("a", "3"), producer_id=7, transactional=True)
        bench.roll()
        bench.write(("a", "4"))
        bench.roll()
        bench.clean()
        assert pairs(records(bench.log)) == [(1, "a", "2"), (2, "a", "3"), (3, "a", "4")]

    def test_a_marker_stays_with_its_data_then_until_its_horizon(self, bench: Bench) -> None:
        bench.write(("a", "1"), producer_id=7, transactional=True)
        bench.end(7, committed=True)
        bench.write(("keep", "1"))
        bench.roll()
        bench.clean()
        assert [each.is_control for each in batches(bench.log)] == [False, True, False]
        assert batches(bench.log)[1].delete_horizon_ms is None

        bench.log.expire_producers(bench.clock.now_ms() + 10**9, 1)
        bench.write(("a", "2"))
        bench.roll()
        bench.clean()  # the data goes; the marker was met together with it
        bench.write(("keep", "2"))
        bench.roll()
        bench.clean()  # the marker stands alone now: its horizon is set
        (left,) = [each for each in batches(bench.log) if each.is_control]
        assert left.delete_horizon_ms == bench.clock.now_ms() + 1000

        bench.clock.advance(1000)
        bench.write(("keep", "3"))
        bench.roll()
        bench.clean()
        assert [each for each in batches(bench.log) if each.is_control] == []
        assert table(committed(bench.log)) == {"a": "2", "keep": "3"}

    def test_the_index_of_aborted_transactions_follows_its_data(self, bench: Bench) -> None:
        bench.write(("a", "bad"), producer_id=7, transactional=True)
        bench.end(7, committed=False)
        bench.write(("b", "1"))
        bench.roll()
        assert len(bench.log.aborted_transactions(0, 10)) == 1
        bench.clean()  # the data was met in this pass; its batch stays, empty, for the producer's sequence
        assert len(bench.log.aborted_transactions(0, 10)) == 1
        bench.log.expire_producers(bench.clock.now_ms() + 10**9, 1)
        for value, entries in (("2", 1), ("3", 0)):
            bench.write(("b", value))
            bench.roll()
            bench.clean()
            assert len(bench.log.aborted_transactions(0, 10)) == entries
            assert table(committed(bench.log)) == {"b": value}

    def test_an_abort_across_segments_is_seen(self, bench: Bench) -> None:
        bench.write(("a", "1"))
        bench.write(("a", "bad-1"), producer_id=7, transactional=True)
        bench.roll()
        bench.write(("b", "1"))
        bench.write(("a", "bad-2"), producer_id=7, transactional=True)
        bench.roll()
        bench.end(7, committed=False)
        bench.write(("c", "1"))
        bench.roll()
        bench.clean()
        assert table(records(bench.log)) == table(committed(bench.log)) == {"a": "1", "b": "1", "c": "1"}


class TestProducers:
    def test_the_last_batch_of_a_known_producer_stays_empty(self, bench: Bench) -> None:
        bench.write(("a", "1"), ("b", "1"), producer_id=7)
        bench.write(("a", "2"), ("b", "2"))
        bench.roll()
        bench.clean()
        empty, _ = batches(bench.log)
        assert (empty.record_count, empty.base_offset, empty.last_offset) == (0, 0, 1)
        assert (empty.producer_id, empty.producer_epoch, empty.base_sequence) == (7, 0, 0)

    def test_so_a_restart_still_knows_its_sequence(self, bench: Bench) -> None:
        bench.write(("a", "1"), ("b", "1"), producer_id=7)
        bench.write(("a", "2"), ("b", "2"))
        bench.roll()
        bench.clean()
        for path in (bench.folder / "topic-0").glob("*.snapshot"):
            path.unlink()
        bench.reopen()
        again = batch(2, key=b"a", producer_id=7, epoch=0, sequence=0)
        result = append(bench.log, again)
        assert result.duplicate
        assert result.base_offset == 0

    def test_of_a_forgotten_producer_nothing_stays(self, bench: Bench) -> None:
        bench.write(("a", "1"), producer_id=7)
        bench.write(("a", "2"))
        bench.roll()
        bench.log.expire_producers(bench.clock.now_ms() + 10**9, 1)
        bench.clean()
        assert [each.base_offset for each in batches(bench.log)] == [1]

    def test_the_last_batch_of_the_range_stays_empty_so_that_offsets_go_on(self, bench: Bench) -> None:
        append(bench.log, batch(1, key=b"a"))
        bench.write_keyless(3)
        bench.roll()
        bench.clean()
        last = batches(bench.log)[-1]
        assert (last.record_count, last.next_offset) == (0, 4)


class TestSegments:
    def test_small_leftovers_become_one_segment(self, bench: Bench) -> None:
        for value in range(6):
            bench.write(("a", f"{value}"))
            bench.roll()
        bench.clean()
        assert bench.log.segments.bases == [0, 6]

    def test_segments_stay_within_segment_bytes(self, tmp_path: Path) -> None:
        config = LogConfig(compact=True, delete=False, min_cleanable_dirty_ratio=0, segment_bytes=2000)
        bench = Bench(tmp_path, config)
        for number in range(40):
            bench.write((f"key-{number}", "x" * 200))
        bench.roll()
        bench.clean()
        assert all(segment.size_bytes <= 2000 for segment in bench.log.segments)
        assert len(records(bench.log)) == 40

    def test_readers_pass_over_a_segment_of_which_nothing_is_left(self, tmp_path: Path) -> None:
        config = LogConfig(compact=True, delete=False, min_cleanable_dirty_ratio=0, segment_bytes=100)
        bench = Bench(tmp_path, config)
        for number in range(3):
            bench.write(("a", f"{number}"))
            bench.roll()
        bench.clean()
        assert [segment.size_bytes > 0 for segment in bench.log.segments] == [False, False, True, False]
        assert pairs(records(bench.log)) == [(2, "a", "2")]
        assert bench.log.read(1, max_bytes=1000).slice is not None
        found = bench.log.offset_for_timestamp(0)
        assert found is not None
        assert found.offset == 2
        bench.reopen()
        assert pairs(records(bench.log)) == [(2, "a", "2")]

    def test_readers_of_the_old_files_are_not_disturbed(self, bench: Bench) -> None:
        bench.write(("a", "1"), ("a", "2"))
        bench.roll()
        held = bench.log.read(0, max_bytes=10_000).slice
        assert held is not None
        before = held.read()
        bench.clean()
        bench.clock.advance(10**6)
        bench.log.purge(bench.clock.now_ms())
        assert held.read() == before
        assert not list((bench.folder / "topic-0").glob("*.deleted"))

    def test_appends_and_reads_go_on_between_all_steps(self, bench: Bench) -> None:
        for number in range(4):
            bench.write(("a", f"{number}"), (f"{number}", "x"))
            bench.roll()
        cleaning = bench.cleaner.pick()
        assert cleaning is not None
        written = 0
        for work in bench.cleaner.clean(cleaning):
            work()
            written += 1
            bench.write((f"late-{written}", "y"))
            if written == 2:
                bench.roll()
            assert table(records(bench.log))["a"] == "3"
        assert cleaning.outcome is Outcome.CLEANED
        assert set(table(records(bench.log))) == {
            "a",
            *map(str, range(4)),
            *(f"late-{n + 1}" for n in range(written)),
        }

    def test_the_result_opens_again(self, bench: Bench) -> None:
        for number in range(200):
            bench.write((f"{number % 50}", f"{number}" * 30))
            if number % 60 == 59:
                bench.roll()
        bench.roll()
        bench.clean()
        before = records(bench.log)
        bench.reopen(crashed=False)
        assert records(bench.log) == before
        bench.reopen(crashed=True)
        assert records(bench.log) == before


class TestWhen:
    def test_only_when_dirty_enough(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path, LogConfig(compact=True, delete=False, min_cleanable_dirty_ratio=0.5))
        bench.write(*((f"{number}", "x") for number in range(50)))
        bench.roll()
        assert bench.clean()
        bench.write(("1", "y"))
        bench.roll()
        assert not bench.clean()
        assert 0 < bench.cleaner.state.dirtiest_ratio < 0.5

    def test_or_when_a_record_has_waited_too_long(self, tmp_path: Path) -> None:
        config = LogConfig(
            compact=True, delete=False, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=5000
        )
        bench = Bench(tmp_path, config)
        bench.write(("a", "1"), ("a", "2"))
        bench.roll()
        assert not bench.clean()
        bench.clock.advance(5001)
        assert bench.clean()

    def test_and_the_active_segment_rolls_in_time_for_that(self, tmp_path: Path) -> None:
        config = LogConfig(
            compact=True, delete=False, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=5000
        )
        bench = Bench(tmp_path, config)
        bench.write(("a", "1"))
        bench.clock.advance(5001)
        bench.write(("a", "2"))
        assert bench.log.segments.bases == [0, 1]

    def test_not_before_the_smallest_lag(self, tmp_path: Path) -> None:
        config = LogConfig(
            compact=True, delete=False, min_cleanable_dirty_ratio=0, min_compaction_lag_ms=5000
        )
        bench = Bench(tmp_path, config)
        bench.write(("a", "1"), ("a", "2"))
        bench.roll()
        assert not bench.clean()
        bench.clock.advance(5000)
        assert bench.clean()

    def test_never_above_the_high_watermark(self, bench: Bench) -> None:
        bench.write(("a", "1"), ("a", "2"))
        bench.roll()
        bench.write(("a", "3"))
        bench.roll()
        bench.high_watermark = 2
        bench.clean()
        assert pairs(records(bench.log)) == [(1, "a", "2"), (2, "a", "3")]

    def test_not_without_the_policy(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path, LogConfig())
        bench.write(("a", "1"), ("a", "2"))
        bench.roll()
        assert not bench.clean()

    def test_as_many_at_once_as_there_are_threads(self, bench: Bench) -> None:
        bench.write(("a", "1"), ("a", "2"))
        bench.roll()
        cleaning = bench.cleaner.pick()
        assert cleaning is not None
        assert bench.cleaner.is_cleaning(PARTITION)
        assert bench.cleaner.pick() is None
        bench.cleaner.clean_now(cleaning)
        assert not bench.cleaner.is_cleaning(PARTITION)


class TestTheCheckpoint:
    def test_names_the_first_dirty_offset(self, bench: Bench) -> None:
        bench.write(("a", "1"), ("a", "2"))
        bench.roll()
        bench.clean()
        path = f"{bench.folder}/{CLEANER_OFFSETS}"
        assert read_offsets(bench.files, path) == {PARTITION: 2}
        assert bench.cleaner.first_dirty_offset(bench.log) == 2

    def test_is_believed_after_a_restart(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        bench.write(("a", "1"), ("a", "2"))
        bench.roll()
        bench.clean()
        bench.log.close(now_ms=bench.clock.now_ms())
        again = Bench(tmp_path, clean=True)
        assert not again.clean()

    def test_that_cannot_be_read_makes_everything_dirty(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path)
        bench.write(("a", "1"))
        bench.roll()
        bench.clean()
        (tmp_path / CLEANER_OFFSETS).write_text("nonsense\n")
        again = Bench(tmp_path)
        assert again.clean()

    def test_falls_with_a_truncation(self, bench: Bench) -> None:
        bench.write(("a", "1"))
        bench.write(("b", "1"))
        bench.roll()
        bench.clean()
        bench.log.truncate_to(1, now_ms=bench.clock.now_ms())
        bench.cleaner.truncated(bench.log, 1)
        assert bench.cleaner.first_dirty_offset(bench.log) == 1
        bench.write(("a", "2"), ("a", "3"))
        bench.roll()
        bench.clean()
        assert pairs(records(bench.log)) == [(2, "a", "3")]

    def test_forgets_partitions_that_are_gone(self, bench: Bench) -> None:
        path = bench.folder / CLEANER_OFFSETS
        path.write_text("0\n1\nother 3 17\n")
        bench.write(("a", "1"))
        bench.roll()
        bench.clean()
        assert read_offsets(bench.files, str(path)) == {PARTITION: 1}

    def test_above_the_log_end_is_reported_and_reset(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        (bench.folder / CLEANER_OFFSETS).write_text("0\n1\ntopic 0 999\n")
        bench.write(("a", "1"), ("a", "2"))
        bench.roll()
        with caplog.at_level(logging.WARNING):
            assert bench.clean()
        assert "the cleaner checkpoint 999 is not within the log" in caplog.text
        assert pairs(records(bench.log)) == [(1, "a", "2")]


class TestBoundedMemory:
    def test_more_keys_than_the_map_holds_take_several_rounds(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path, settings=CleanerSettings(dedupe_buffer_bytes=20 * BYTES_PER_SLOT))
        for round_ in range(3):
            bench.write(*((f"key-{number}", f"{round_}") for number in range(30)))
            bench.roll()
        rounds = 0
        while bench.clean():
            rounds += 1
            assert rounds < 50, "each round must get further"
        assert rounds > 1
        assert pairs(records(bench.log)) == [(60 + n, f"key-{n}", "2") for n in range(30)]


class TestWhatGetsInTheWay:
    def test_a_truncation_during_the_clean_ends_it(self, bench: Bench) -> None:
        bench.write(("a", "1"))
        bench.write(("a", "2"))
        bench.roll()
        bench.write(("b", "1"))
        cleaning = bench.cleaner.pick()
        assert cleaning is not None
        for work in bench.cleaner.clean(cleaning):
            bench.log.truncate_to(1, now_ms=bench.clock.now_ms())
            work()
        assert cleaning.outcome is Outcome.ABORTED
        assert pairs(records(bench.log)) == [(0, "a", "1")]
        assert not list((bench.folder / "topic-0").glob("*.cleaned"))

    def test_retention_during_the_clean_ends_it(self, tmp_path: Path) -> None:
        config = LogConfig(compact=True, delete=True, min_cleanable_dirty_ratio=0, retention_bytes=0)
        bench = Bench(tmp_path, config)
        bench.write(("a", "1"), ("a", "2"))
        bench.roll()
        bench.write(("b", "1"))
        cleaning = bench.cleaner.pick()
        assert cleaning is not None
        for number, work in enumerate(bench.cleaner.clean(cleaning)):
            work()
            if number == 2:
                enforce_retention(bench.log, bench.files, high_watermark=2, now_ms=bench.clock.now_ms())
        assert cleaning.outcome is Outcome.ABORTED
        assert pairs(records(bench.log)) == [(2, "b", "1")]
        assert bench.log.log_start_offset == 2

    def test_abort_keeps_the_originals(self, bench: Bench) -> None:
        bench.write(("a", "1"), ("a", "2"))
        bench.roll()
        cleaning = bench.cleaner.pick()
        assert cleaning is not None
        for number, work in enumerate(bench.cleaner.clean(cleaning)):
            work()
            if number == 2:
                bench.cleaner.abort(PARTITION)
        assert cleaning.outcome is Outcome.ABORTED
        assert len(records(bench.log)) == 2
        assert bench.clean()

    def test_giving_up_in_the_middle_leaves_nothing_behind(self, bench: Bench) -> None:
        bench.write(("a", "1"), ("a", "2"))
        bench.roll()
        cleaning = bench.cleaner.pick()
        assert cleaning is not None
        steps = bench.cleaner.clean(cleaning)
        for _ in range(3):
            next(steps)()
        steps.close()
        assert cleaning.outcome is Outcome.ABORTED
        assert not bench.cleaner.is_cleaning(PARTITION)
        assert not list((bench.folder / "topic-0").glob("*.cleaned"))

    def test_a_damaged_log_is_left_alone_and_named(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        bench.write(("a", "1"), ("a", "2"))
        bench.write(("b", "1"))
        bench.roll()
        path = bench.log.segments[0].path
        with open(path, "r+b") as file:
            file.seek(70)
            file.write(b"\xff")
        cleaning = bench.cleaner.pick()
        assert cleaning is not None
        with caplog.at_level(logging.ERROR):
            assert bench.cleaner.clean_now(cleaning) is Outcome.UNCLEANABLE
        reason = bench.cleaner.state.uncleanable[PARTITION]
        assert reason.startswith(f"{path}, position 0: the stored CRC is")
        assert "topic-0 cannot be compacted and is left alone" in caplog.text
        assert bench.cleaner.pick() is None

    def test_a_deleted_partition_is_no_longer_uncleanable(self, bench: Bench) -> None:
        bench.cleaner._uncleanable[TopicPartition("gone", 1)] = "damaged"
        bench.cleaner.pick()
        assert bench.cleaner.state.uncleanable == {}


class TestSettings:
    def test_are_read_from_the_table_with_kafkas_defaults(self) -> None:
        assert CleanerSettings.of(BROKER_LOG.parse({})) == CleanerSettings()

    def test_change_while_running(self, bench: Bench) -> None:
        bench.cleaner.configure(CleanerSettings(threads=0))
        bench.write(("a", "1"), ("a", "2"))
        bench.roll()
        assert bench.cleaner.pick() is None


def test_compact_and_delete_work_together(tmp_path: Path) -> None:
    config = LogConfig(
        compact=True, delete=True, min_cleanable_dirty_ratio=0, retention_ms=10_000, delete_retention_ms=0
    )
    bench = Bench(tmp_path, config)
    bench.write(("old", "1"))
    bench.roll()
    bench.clock.advance(8000)
    bench.write(("new", "1"), ("new", "2"))
    bench.roll()
    bench.clock.advance(3000)
    enforce_retention(bench.log, bench.files, high_watermark=3, now_ms=bench.clock.now_ms())
    bench.clean()
    assert pairs(records(bench.log)) == [(2, "new", "2")]
    assert bench.log.log_start_offset == 1
