"""The stream reader as PySpark 4.0 and 4.1 ask it: it keeps its place itself, and trusts nothing."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from barnabas.spark.errors import SparkPartError
from barnabas.spark.planning import OffsetRange
from tests.spark._stream_kit import A, PlainRun
from tests.spark._stream_machine import QueryMachine


class TestPlace:
    def test_the_first_batch_runs_whatever_it_is_and_keeps_the_start(self) -> None:
        run = PlainRun({A: (0, 0)}, startingOffsets="earliest")
        assert run.batch() == []
        run.restart()
        run.cluster.logs[A] = (0, 1)
        assert run.batch() == [(0, 0, 1)]

    def test_topics_of_a_pattern_that_has_none_at_first(self) -> None:
        run = PlainRun({})
        assert run.batch() == []
        assert run.batch() is None
        run.cluster.logs[A] = (0, 3)
        assert run.batch() == [(0, 0, 3)]

    def test_limits_go_on_from_the_place_also_after_a_restart(self) -> None:
        run = PlainRun({A: (0, 10)}, startingOffsets="earliest", maxOffsetsPerTrigger="4")
        assert run.batch() == [(0, 0, 4)]
        assert run.plan()
        run.restart()
        assert [run.batch(), run.batch(), run.batch()] == [[(0, 4, 8)], [(0, 8, 10)], None]

    def test_waiting_for_enough(self) -> None:
        run = PlainRun(
            {A: (0, 1)}, startingOffsets="earliest", minOffsetsPerTrigger="3", maxTriggerDelay="60s"
        )
        assert run.batch() == [(0, 0, 1)]
        run.cluster.logs[A] = (0, 3)
        assert run.batch() is None
        run.cluster.logs[A] = (0, 4)
        assert run.batch() == [(0, 1, 4)]

    def test_a_batch_from_another_place_than_it_was_made_for_is_refused(self) -> None:
        run = PlainRun({A: (0, 5)}, startingOffsets="earliest")
        run.batch()
        run.cluster.logs[A] = (0, 9)
        end = run.reader.latestOffset()
        with pytest.raises(SparkPartError, match=r"Spark starts a batch at .* that was made for"):
            run.reader.partitions({"t": {"0": 3}}, end)

    def test_it_may_be_asked_again_before_the_batch_runs(self) -> None:
        run = PlainRun({A: (0, 5)}, startingOffsets="earliest")
        assert run.plan()
        for end in (5, 8):
            run.cluster.logs[A] = (0, end)
            run.reader.latestOffset()
            assert run.ranges() == [OffsetRange("t", 0, 0, 5)]

    def test_a_place_that_is_shown_too_late_is_refused(self) -> None:
        run = PlainRun({A: (0, 5)}, startingOffsets="earliest")
        run.reader.latestOffset()
        with pytest.raises(SparkPartError, match=r"triggerAvailableNowWrapper.* use PySpark 4.2 or newer$"):
            run.reader.partitions({"t": {"0": 3}}, {"t": {"0": 3}})


class TestProgress:
    def test_the_group_is_told_what_spark_has_committed(self) -> None:
        run = PlainRun({A: (0, 3)}, startingOffsets="earliest")
        run.batch()
        run.cluster.logs[A] = (0, 5)
        run.batch()
        run.batch()
        assert run.cluster.told == [
            ("spark:q", {A: 0}, '{"batch": -1}'),
            ("spark:q", {A: 3}, '{"batch": 0}'),
            ("spark:q", {A: 5}, '{"batch": 1}'),
        ]

    def test_tasks_are_asked_for_the_name_only_when_more_questions_come(self) -> None:
        run = PlainRun({A: (0, 3)}, startingOffsets="earliest", queryName="")
        tokens = []
        for end in (3, 6, 9):
            run.cluster.logs[A] = (0, end)
            run.plan()
            tokens.append([task.token is not None for task in run.tasks()])
            run.committed += 1
        assert tokens == [[False], [True], [True]]


class PlainMachine(QueryMachine[PlainRun]):
    """With a limit or without."""

    @initialize(first=st.integers(0, 9), limit=st.none() | st.integers(1, 20), latest=st.booleans())
    def begin(self, first: int, limit: int | None, latest: bool) -> None:
        options = {} if limit is None else {"maxOffsetsPerTrigger": str(limit), "trigger": "processingTime"}
        self.begin_with(PlainRun, first, latest, options)


PlainMachine.TestCase.settings = settings(stateful_step_count=20)
TestQueries = PlainMachine.TestCase
