"""The stream reader, asked as Spark asks it: restarts, limits, losses, new partitions.

`Memory` is a cluster of numbers; `Run` keeps the logs of a checkpoint as Spark does.
"""

import json
import pickle
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows, ReadMinRows

from barnabas.base.types import TopicPartition
from barnabas.client.admin_types import OffsetSpec
from barnabas.spark.errors import DataLoss, SparkPartError
from barnabas.spark.lookup import Lookup
from barnabas.spark.offsets import Positions
from barnabas.spark.options import SourceOptions, parse_source
from barnabas.spark.planning import OffsetRange, ReadTask
from barnabas.spark.stream import StreamReader

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Memory(Lookup):
    """Partitions as first and next offset; groups as what was committed."""

    def __init__(self, options: SourceOptions, logs: dict[TopicPartition, tuple[int, int]]) -> None:
        super().__init__(options)
        self.logs = logs
        self.told: list[tuple[str, dict[TopicPartition, int], str]] = []
        self.record_bytes = 100.0

    def partitions(self, *, gone_is_fine: bool = False) -> frozenset[TopicPartition]:
        return frozenset(self.logs)

    def _offsets(self, asked: Mapping[TopicPartition, OffsetSpec | int]) -> dict[TopicPartition, int]:
        side = {OffsetSpec.EARLIEST: 0, OffsetSpec.LATEST: 1}
        return {where: self.logs[where][side[OffsetSpec(what)]] for where, what in asked.items()}

    def bytes_per_offset(self, begins: Positions, ends: Positions) -> dict[TopicPartition, float]:
        return dict.fromkeys(ends, self.record_bytes)

    def commit(
        self, group: str, positions: Positions, metadata: str, *, timeout_ms: int | None = None
    ) -> None:
        self.told.append((group, dict(positions), metadata))


class Run:
    """One query with its checkpoint: `restart` forgets everything else, `crash` also an open batch's work."""

    def __init__(self, logs: dict[TopicPartition, tuple[int, int]], **options: str) -> None:
        self.options = parse_source(
            {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "queryName": "q", **options}, stream=True
        )
        self.cluster = Memory(self.options, logs)
        self.now_s = 0.0
        self.wal: list[str] = []
        self.committed = 0
        self.restart()

    def restart(self, *, available_now: bool = False) -> None:
        self.reader = StreamReader(self.options, lookup=self.cluster, monotonic_s=lambda: self.now_s)
        if available_now:
            self.reader.prepareForTriggerAvailableNow()

    def _start(self) -> dict[str, Any]:
        if not self.committed:
            assert self.reader.initialOffset() == self.reader.initialOffset()
            return self.reader.initialOffset()
        return dict(json.loads(self.wal[self.committed - 1]))

    def plan(self) -> bool:
        """Write the next batch into the log, unless there is one open or nothing to do."""
        if len(self.wal) > self.committed:
            return True
        start = self._start()
        end = self.reader.latestOffset(start, self.reader.getDefaultReadLimit())
        if json.dumps(end) == json.dumps(start):
            return False
        self.wal.append(json.dumps(end))
        return True

    def ranges(self) -> list[OffsetRange]:
        """What the open batch reads."""
        tasks = self.reader.partitions(self._start(), json.loads(self.wal[self.committed]))
        return sorted(each for task in tasks if isinstance(task, ReadTask) for each in task.ranges)

    def batch(self) -> list[tuple[int, int, int]] | None:
        """Run one batch to its commit: partition, start, end of what it read; None if there was none."""
        if not self.plan():
            return None
        found = self.ranges()
        self.committed += 1
        return [each[1:] for each in found]


class TestStarting:
    def test_at_the_beginning_then_what_is_new(self) -> None:
        run = Run({A: (2, 5)}, startingOffsets="earliest")
        assert run.batch() == [(0, 2, 5)]
        assert run.batch() is None
        run.cluster.logs[A] = (2, 9)
        assert run.batch() == [(0, 5, 9)]

    def test_at_the_end_an_empty_batch_keeps_the_place(self) -> None:
        run = Run({A: (0, 5)})
        assert run.batch() == []
        run.restart()
        run.cluster.logs[A] = (0, 7)
        assert run.batch() == [(0, 5, 7)]

    def test_an_empty_topic_from_its_beginning_needs_no_batch(self) -> None:
        run = Run({A: (0, 0)}, startingOffsets="earliest")
        assert run.batch() is None
        run.cluster.logs[A] = (0, 1)
        assert run.batch() == [(0, 0, 1)]

    def test_a_crash_in_the_first_batch_repeats_it_exactly(self) -> None:
        run = Run({A: (0, 5)})
        run.reader.initialOffset()
        run.cluster.logs[A] = (0, 9)
        assert run.plan()
        before = run.ranges()
        run.cluster.logs[A] = (3, 20)
        run.restart()
        assert run.ranges() == before == [OffsetRange("t", 0, 5, 9)]
        assert run.batch() == [(0, 5, 9)]
        assert run.batch() == [(0, 9, 20)]

    def test_offsets_outside_the_log(self) -> None:
        with pytest.raises(DataLoss, match="offsets 1 to 4 of t-0 are lost: the log begins at 5"):
            Run({A: (5, 9)}, startingOffsets='{"t":{"0":1}}').batch()
        run = Run({A: (5, 9)}, startingOffsets='{"t":{"0":1}}', failOnDataLoss="false")
        assert run.batch() == [(0, 5, 9)]
        run = Run({A: (5, 9)}, startingOffsets='{"t":{"0":100}}', failOnDataLoss="false")
        assert run.batch() == []


class TestLimits:
    def test_shares_of_a_trigger(self) -> None:
        run = Run({A: (0, 1000), B: (0, 2000)}, startingOffsets="earliest", maxOffsetsPerTrigger="700")
        assert run.batch() == [(0, 0, 233), (1, 0, 466)]
        assert isinstance(run.reader.getDefaultReadLimit(), ReadMaxRows)

    def test_by_bytes(self) -> None:
        run = Run({A: (0, 1000)}, startingOffsets="earliest", maxBytesPerTrigger="10k")
        assert run.batch() == [(0, 0, 102)]
        run.cluster.record_bytes = 1000.0
        assert run.batch() == [(0, 102, 204)]
        run.now_s = 30.0
        assert run.batch() == [(0, 204, 214)]
        assert isinstance(run.reader.getDefaultReadLimit(), ReadMaxBytes)

    def test_once_reads_all_there_is(self) -> None:
        run = Run({A: (0, 1000)}, startingOffsets="earliest", maxOffsetsPerTrigger="7")
        end = run.reader.latestOffset(run.reader.initialOffset(), ReadAllAvailable())
        assert end["t"] == {"0": 1000}

    def test_waiting_for_enough_but_not_for_ever(self) -> None:
        run = Run({A: (0, 1)}, startingOffsets="earliest", minOffsetsPerTrigger="10", maxTriggerDelay="60s")
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
        assert isinstance(Run({A: (0, 1)}).reader.getDefaultReadLimit(), ReadAllAvailable)


class TestAvailableNow:
    def test_the_end_is_fixed_and_reached_in_shares(self) -> None:
        run = Run(
            {A: (0, 10)}, startingOffsets="earliest", maxOffsetsPerTrigger="4", minOffsetsPerTrigger="3"
        )
        run.restart(available_now=True)
        seen = []
        while (found := run.batch()) is not None:
            seen += found
            run.cluster.logs[A] = (0, run.cluster.logs[A][1] + 5)
        assert seen == [(0, 0, 4), (0, 4, 8), (0, 8, 10)]

    def test_a_partition_that_vanishes_ends_the_run(self) -> None:
        run = Run({A: (0, 10), B: (0, 3)}, startingOffsets="earliest", maxOffsetsPerTrigger="4")
        run.restart(available_now=True)
        run.batch()
        del run.cluster.logs[B]
        with pytest.raises(
            SparkPartError, match=r"^t-1 is gone, but this run .* up to 3; start the query ag"
        ):
            run.batch()

    def test_a_log_that_shrinks_ends_the_run(self) -> None:
        run = Run({A: (0, 10)}, startingOffsets="earliest", maxOffsetsPerTrigger="4")
        run.restart(available_now=True)
        run.batch()
        run.cluster.logs[A] = (0, 9)
        with pytest.raises(SparkPartError, match="t-0 ends at 9 now, but this run"):
            run.batch()


class TestPartitionsThatComeAndGo:
    def test_new_ones_begin_at_their_first_offset(self) -> None:
        run = Run({A: (0, 5)})
        run.batch()
        run.cluster.logs[B] = (0, 3)
        assert run.plan()
        assert "#base" in json.loads(run.wal[-1])
        run.cluster.logs[B] = (1, 4)
        run.restart()
        assert run.batch() == [(1, 0, 3)]
        assert run.batch() == [(1, 3, 4)]

    def test_new_ones_without_their_first_records(self) -> None:
        run = Run({A: (0, 5)})
        run.batch()
        run.cluster.logs[B] = (2, 3)
        with pytest.raises(DataLoss, match="offsets 0 to 1 of t-1 are lost"):
            run.batch()

    def test_records_that_age_out(self) -> None:
        for fail in ("true", "false"):
            run = Run({A: (0, 5)}, startingOffsets="earliest", failOnDataLoss=fail)
            run.batch()
            run.cluster.logs[A] = (8, 9)
            if fail == "true":
                with pytest.raises(DataLoss, match="offsets 5 to 7 of t-0 are lost: the log begins at 8"):
                    run.batch()
            else:
                assert run.batch() == [(0, 8, 9)]

    def test_a_topic_made_anew(self) -> None:
        run = Run({A: (0, 5)}, startingOffsets="earliest", failOnDataLoss="false")
        run.batch()
        run.cluster.logs[A] = (0, 2)
        assert run.batch() == [(0, 0, 2)]
        assert run.batch() is None

    def test_a_topic_that_is_deleted(self) -> None:
        run = Run({A: (0, 5), B: (0, 0)}, startingOffsets="earliest", failOnDataLoss="false")
        run.batch()
        del run.cluster.logs[A]
        assert run.batch() == []
        assert run.batch() is None
        run.cluster.logs[A] = (0, 1)
        assert run.batch() == [(0, 0, 1)]

    def test_a_topic_that_is_deleted_fails_by_default(self) -> None:
        run = Run({A: (0, 5)}, startingOffsets="earliest")
        run.batch()
        del run.cluster.logs[A]
        with pytest.raises(DataLoss, match="offsets from 5 on of t-0 are lost: the partition is not there"):
            run.batch()


class TestProgress:
    def test_the_group_is_told_what_spark_has_committed(self) -> None:
        run = Run({A: (0, 5)}, startingOffsets="earliest", maxOffsetsPerTrigger="3")
        while run.batch() is not None:
            pass
        assert run.cluster.told == [
            ("spark:q", {A: 0}, '{"batch": -1}'),
            ("spark:q", {A: 3}, '{"batch": 0}'),
            ("spark:q", {A: 5}, '{"batch": 1}'),
        ]

    def test_what_is_there_is_reported_for_lag(self) -> None:
        run = Run({A: (0, 5)}, startingOffsets="earliest", maxOffsetsPerTrigger="3")
        assert run.reader.reportLatestOffset() is None
        run.batch()
        assert run.reader.reportLatestOffset() == {"t": {"0": 5}}


class TestTravel:
    def test_executors_get_options_only(self) -> None:
        run = Run({A: (0, 5)}, startingOffsets="earliest")
        run.reader.initialOffset()
        copy = pickle.loads(pickle.dumps(run.reader))
        assert isinstance(copy, StreamReader)
        assert copy.reportLatestOffset() is None

    def test_stop_and_commit_do_no_harm(self) -> None:
        reader = Run({A: (0, 5)}).reader
        reader.commit({"t": {"0": 5}})
        reader.stop()
        reader.stop()


class QueryMachine(RuleBasedStateMachine):
    """Whatever happens, each offset from the first start on is read once, in order."""

    @initialize(first=st.integers(0, 9), limit=st.none() | st.integers(1, 20), latest=st.booleans())
    def begin(self, first: int, limit: int | None, latest: bool) -> None:
        options = {} if limit is None else {"maxOffsetsPerTrigger": str(limit)}
        options["startingOffsets"] = "latest" if latest else "earliest"
        self.run = Run({A: (0, first)}, **options)
        self.run.reader.initialOffset()
        self.read: dict[TopicPartition, int] = {A: first if latest else 0}
        self.begun = False

    @rule(where=st.sampled_from([A, B]), count=st.integers(0, 30))
    def records_come(self, where: TopicPartition, count: int) -> None:
        if where in self.run.cluster.logs:
            start, end = self.run.cluster.logs[where]
            self.run.cluster.logs[where] = (start, end + count)

    @rule()
    def a_partition_is_added(self) -> None:
        self.run.cluster.logs.setdefault(B, (0, 0))

    @rule()
    def a_batch_runs(self) -> None:
        found = self.run.batch()
        self.begun = self.begun or found is not None
        for partition, start, end in found or []:
            where = TopicPartition("t", partition)
            assert start == self.read.get(where, 0)
            self.read[where] = end

    @precondition(lambda self: self.begun)
    @rule()
    def it_crashes_after_planning(self) -> None:
        if self.run.plan():
            before = self.run.ranges()
            self.run.restart()
            assert self.run.ranges() == before

    @precondition(lambda self: self.begun)
    @rule(available_now=st.booleans())
    def it_restarts(self, available_now: bool) -> None:
        self.run.restart(available_now=available_now)

    @invariant()
    def nothing_is_read_that_is_not_there(self) -> None:
        for where, end in self.read.items():
            assert end <= self.run.cluster.logs[where][1]


QueryMachine.TestCase.settings = settings(stateful_step_count=20)
TestQueries = QueryMachine.TestCase
