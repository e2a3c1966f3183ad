"""Retention plans, rule by rule."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.log.config import LogConfig
from barnabas.log.files import OsFiles
from barnabas.log.retention import (
    Deletion,
    Reason,
    RetentionLimits,
    RetentionPlan,
    SegmentSummary,
    enforce_retention,
    plan_retention,
    summarize,
)
from tests.log._make import NOW_MS, append, batch, offsets, open_log

NOW = 1_000_000


def segments(*shapes: tuple[int, int, int]) -> list[SegmentSummary]:
    """(base offset, bytes, age in ms) of each."""
    return [SegmentSummary(base, size, NOW - age) for base, size, age in shapes]


def plan(
    log: Sequence[SegmentSummary],
    *,
    end: int = 300,
    start: int = 0,
    high_watermark: int | None = None,
    delete: bool = True,
    ms: int = -1,
    size: int = -1,
) -> RetentionPlan:
    return plan_retention(
        log,
        log_start_offset=start,
        log_end_offset=end,
        high_watermark=end if high_watermark is None else high_watermark,
        limits=RetentionLimits(delete, ms, size),
        now_ms=NOW,
    )


def gone(plan: RetentionPlan) -> list[int]:
    return [deletion.base_offset for deletion in plan.deletions]


THREE = segments((0, 100, 900), (100, 100, 500), (200, 100, 10))


class TestByTime:
    def test_segments_whose_youngest_record_is_too_old_go(self) -> None:
        assert plan(THREE, ms=400) == RetentionPlan(
            (
                Deletion(0, Reason.TIME, "is 900 ms old, retention.ms=400"),
                Deletion(100, Reason.TIME, "is 500 ms old, retention.ms=400"),
            ),
            roll_first=False,
            log_start_offset=200,
        )

    def test_exactly_as_old_as_allowed_stays(self) -> None:
        assert gone(plan(THREE, ms=900)) == []

    def test_an_old_segment_behind_a_young_one_waits_for_it(self) -> None:
        assert gone(plan(segments((0, 1, 10), (100, 1, 900), (200, 1, 0)), ms=400)) == []

    def test_minus_one_keeps_for_ever(self) -> None:
        assert plan(THREE, ms=-1) == RetentionPlan((), False, 0)

    def test_an_expired_active_segment_is_rolled_and_goes_with_the_rest(self) -> None:
        old = plan(segments((0, 100, 900), (100, 100, 800)), end=150, ms=400)
        assert gone(old) == [0, 100]
        assert old.roll_first
        assert old.log_start_offset == 150

    def test_an_empty_active_segment_stays_and_needs_no_roll(self) -> None:
        old = plan(segments((0, 100, 900), (150, 0, 900)), end=150, ms=400)
        assert (gone(old), old.roll_first, old.log_start_offset) == ([0], False, 150)

    def test_records_of_the_future_keep_their_segment(self) -> None:
        assert gone(plan(segments((0, 100, -5000), (100, 1, 0)), ms=0)) == []


class TestBySize:
    def test_the_oldest_go_while_the_rest_still_holds_the_limit(self) -> None:
        assert plan(THREE, size=150).deletions == (
            Deletion(0, Reason.SIZE, "the log is 150 bytes above retention.bytes=150"),
        )

    def test_the_log_may_stay_above_the_limit_by_less_than_its_oldest_segment(self) -> None:
        assert gone(plan(THREE, size=201)) == []
        assert gone(plan(THREE, size=200)) == [0]

    def test_a_limit_of_zero_empties_the_log_after_a_roll(self) -> None:
        none = plan(THREE, size=0)
        assert (gone(none), none.roll_first, none.log_start_offset) == ([0, 100, 200], True, 300)

    def test_size_is_counted_without_what_the_log_start_took(self) -> None:
        assert [d.reason for d in plan(THREE, start=100, size=200).deletions] == [Reason.LOG_START]

    def test_time_goes_on_where_size_ended(self) -> None:
        both = plan(THREE, size=200, ms=400)
        assert [d.reason for d in both.deletions] == [Reason.SIZE, Reason.TIME]


class TestByLogStart:
    def test_segments_wholly_below_the_start_go_whatever_the_policy(self) -> None:
        assert plan(THREE, start=250, delete=False).deletions == (
            Deletion(0, Reason.LOG_START, "ends at 100, the log starts at 250"),
            Deletion(100, Reason.LOG_START, "ends at 200, the log starts at 250"),
        )

    def test_the_start_itself_does_not_move(self) -> None:
        assert plan(THREE, start=250, delete=False).log_start_offset == 250

    def test_the_segment_that_holds_the_start_stays(self) -> None:
        assert gone(plan(THREE, start=99)) == []
        assert gone(plan(THREE, start=100)) == [0]

    def test_the_active_segment_stays_even_with_the_start_at_its_end(self) -> None:
        assert gone(plan(THREE, start=300)) == [0, 100]

    def test_a_compacted_log_keeps_what_is_old_and_large(self) -> None:
        assert gone(plan(THREE, delete=False, ms=0, size=0)) == []


class TestTheHighWatermark:
    def test_nothing_above_it_goes(self) -> None:
        assert gone(plan(THREE, ms=0, high_watermark=199)) == [0]
        assert gone(plan(THREE, ms=0, high_watermark=200)) == [0, 100]

    def test_it_holds_the_size_rule_too(self) -> None:
        assert gone(plan(THREE, size=0, high_watermark=99)) == []


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 200), st.integers(-100, 1000)), min_size=1),
    st.data(),
)
def test_any_plan_takes_a_prefix_below_the_high_watermark_and_leaves_a_segment(
    shapes: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    log, offset = [], 0
    for records, size, age in shapes:
        log.append(SegmentSummary(offset, size, NOW - age))
        offset += records
    start = data.draw(st.integers(0, offset))
    high_watermark = data.draw(st.integers(start, offset))
    limits = st.integers(-1, 1000)
    made = plan(
        log,
        end=offset,
        start=start,
        high_watermark=high_watermark,
        delete=data.draw(st.booleans()),
        ms=data.draw(limits),
        size=data.draw(limits),
    )
    assert gone(made) == [segment.base_offset for segment in log[: len(made.deletions)]]
    assert start <= made.log_start_offset <= max(start, high_watermark)
    assert made.roll_first == (len(made.deletions) == len(log))


class TestEnforcing:
    def test_old_segments_are_renamed_and_later_removed(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        log = open_log(tmp_path, LogConfig(retention_ms=1000, file_delete_delay_ms=500))
        for age in (5000, 3000, 10):
            append(log, batch(timestamp=NOW_MS - age))
            log.roll(NOW_MS)
        with caplog.at_level(logging.INFO):
            plan = enforce_retention(log, OsFiles(), high_watermark=3, now_ms=NOW_MS)
        assert gone(plan) == [0, 1]
        assert "topic-0: segment 0 goes (retention.ms): is 5000 ms old, retention.ms=1000" in caplog.text
        assert (log.log_start_offset, offsets(log)) == (2, [2])
        assert (tmp_path / "00000000000000000000.log.deleted").exists()
        log.purge(NOW_MS + 500)
        assert not list(tmp_path.glob("*.deleted"))

    def test_an_expired_active_segment_is_rolled_first(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, LogConfig(retention_ms=1000))
        append(log, batch(timestamp=NOW_MS - 5000))
        enforce_retention(log, OsFiles(), high_watermark=1, now_ms=NOW_MS)
        assert (log.log_start_offset, log.log_end_offset, log.segments.bases) == (1, 1, [1])

    def test_deleted_records_take_their_segments_along(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, LogConfig(compact=True, delete=False))
        for _ in range(3):
            append(log, batch(2))
            log.roll(NOW_MS)
        log.advance_log_start(3)
        enforce_retention(log, OsFiles(), high_watermark=6, now_ms=NOW_MS)
        assert (log.log_start_offset, log.segments.bases) == (3, [2, 4, 6])

    def test_records_without_a_time_are_as_old_as_their_file(self, tmp_path: Path) -> None:
        log = open_log(tmp_path)
        append(log, batch(timestamp=-1))
        log.roll(NOW_MS)
        os.utime(log.segments[0].path, (1234, 1234))
        assert summarize(log, OsFiles())[0].largest_timestamp_ms == 1_234_000

    def test_the_plan_of_a_log_opens_no_more_files_than_it_must(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, LogConfig(retention_ms=10**9))
        for _ in range(20):
            append(log, batch())
            log.roll(NOW_MS)
        log.close(now_ms=NOW_MS)
        log = open_log(tmp_path, LogConfig(retention_ms=10**9), clean=True)
        before = len(os.listdir("/proc/self/fd"))
        enforce_retention(log, OsFiles(), high_watermark=20, now_ms=NOW_MS)
        facts = summarize(log, OsFiles())
        assert {each.largest_timestamp_ms for each in facts[:-1]} == {NOW_MS}
        assert len(os.listdir("/proc/self/fd")) <= before + 2
