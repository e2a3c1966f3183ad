"""The stream reader as PySpark asks it from 4.2 on: limits, Trigger.AvailableNow, lag."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows, ReadMinRows

from barnabas.spark.errors import SparkPartError
from tests.spark._stream_kit import A, B, LimitedRun
from tests.spark._stream_machine import QueryMachine


class TestStarting:
    def test_an_empty_topic_from_its_beginning_needs_no_batch(self) -> None:
        run = LimitedRun({A: (0, 0)}, startingOffsets="earliest")
        assert run.batch() is None
        run.cluster.logs[A] = (0, 1)
        assert run.batch() == [(0, 0, 1)]


class TestLimits:
    def test_shares_of_a_trigger(self) -> None:
        run = LimitedRun({A: (0, 1000), B: (0, 2000)}, startingOffsets="earliest", maxOffsetsPerTrigger="700")
        assert run.batch() == [(0, 0, 233), (1, 0, 466)]
        assert isinstance(run.reader.getDefaultReadLimit(), ReadMaxRows)

    def test_by_bytes(self) -> None:
        run = LimitedRun({A: (0, 1000)}, startingOffsets="earliest", maxBytesPerTrigger="10k")
        assert run.batch() == [(0, 0, 102)]
        run.cluster.record_bytes = 1000.0
        assert run.batch() == [(0, 102, 204)]
        run.now_s = 30.0
        assert run.batch() == [(0, 204, 214)]
        assert isinstance(run.reader.getDefaultReadLimit(), ReadMaxBytes)

    def test_once_reads_all_there_is(self) -> None:
        run = LimitedRun({A: (0, 1000)}, startingOffsets="earliest", maxOffsetsPerTrigger="7")
        end = run.reader.latestOffset(run.reader.initialOffset(), ReadAllAvailable())
        assert end["t"] == {"0": 1000}

    def test_waiting_for_enough_but_not_for_ever(self) -> None:
        run = LimitedRun(
            {A: (0, 1)}, startingOffsets="earliest", minOffsetsPerTrigger="10", maxTriggerDelay="60s"
        )
        assert isinstance(run.reader.getDefaultReadLimit(), ReadMinRows)
        assert run.batch() == [(0, 0, 1)]  # as Spark's own source: the first one does not wait
        run.cluster.logs[A] = (0, 5)
        assert run.batch() is None
        run.cluster.logs[A] = (0, 11)
        assert run.batch() == [(0, 1, 11)]
        run.cluster.logs[A] = (0, 12)
        run.now_s = 59.0
        assert run.batch() is None
        run.now_s = 60.0
        assert run.batch() == [(0, 11, 12)]

    def test_no_limit_is_the_default(self) -> None:
        assert isinstance(LimitedRun({A: (0, 1)}).reader.getDefaultReadLimit(), ReadAllAvailable)


class TestAvailableNow:
    def test_the_end_is_fixed_and_reached_in_shares(self) -> None:
        run = LimitedRun(
            {A: (0, 10)}, startingOffsets="earliest", maxOffsetsPerTrigger="4", minOffsetsPerTrigger="3"
        )
        run.restart(available_now=True)
        seen = []
        while (found := run.batch()) is not None:
            seen += found
            run.cluster.logs[A] = (0, run.cluster.logs[A][1] + 5)
        assert seen == [(0, 0, 4), (0, 4, 8), (0, 8, 10)]

    def test_a_partition_that_vanishes_ends_the_run(self) -> None:
        run = LimitedRun({A: (0, 10), B: (0, 3)}, startingOffsets="earliest", maxOffsetsPerTrigger="4")
        run.restart(available_now=True)
        run.batch()
        del run.cluster.logs[B]
        with pytest.raises(
            SparkPartError, match=r"^t-1 is gone, but this run .* up to 3; start the query ag"
        ):
            run.batch()

    def test_a_log_that_shrinks_ends_the_run(self) -> None:
        run = LimitedRun({A: (0, 10)}, startingOffsets="earliest", maxOffsetsPerTrigger="4")
        run.restart(available_now=True)
        run.batch()
        run.cluster.logs[A] = (0, 9)
        with pytest.raises(SparkPartError, match="t-0 ends at 9 now, but this run"):
            run.batch()


class TestProgress:
    def test_the_group_is_told_what_spark_has_committed(self) -> None:
        run = LimitedRun({A: (0, 5)}, startingOffsets="earliest", maxOffsetsPerTrigger="3")
        while run.batch() is not None:
            pass
        assert run.cluster.told == [
            ("spark:q", {A: 0}, '{"batch": -1}'),
            ("spark:q", {A: 3}, '{"batch": 0}'),
            ("spark:q", {A: 5}, '{"batch": 1}'),
        ]

    def test_what_is_there_is_reported_for_lag(self) -> None:
        run = LimitedRun({A: (0, 5)}, startingOffsets="earliest", maxOffsetsPerTrigger="3")
        assert run.reader.reportLatestOffset() is None
        run.batch()
        assert run.reader.reportLatestOffset() == {"t": {"0": 5}}


class LimitedMachine(QueryMachine[LimitedRun]):
    """With limits, and restarts with another trigger."""

    @initialize(first=st.integers(0, 9), limit=st.none() | st.integers(1, 20), latest=st.booleans())
    def begin(self, first: int, limit: int | None, latest: bool) -> None:
        options = {} if limit is None else {"maxOffsetsPerTrigger": str(limit)}
        self.begin_with(LimitedRun, first, latest, options)

    @precondition(lambda self: self.begun)
    @rule()
    def it_restarts_to_read_what_is_there(self) -> None:
        self.run.restart(available_now=True)


LimitedMachine.TestCase.settings = settings(stateful_step_count=20)
TestQueries = LimitedMachine.TestCase
