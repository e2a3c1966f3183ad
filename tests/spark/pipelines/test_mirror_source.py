"""barnabas.spark.pipelines.mirror_source: Spark schedules, the tasks copy (S1, S2).

The reader is first called as Spark calls it, without a session; then by Spark itself.
"""

import pickle
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.spark.pipelines.mirror_settings import MirrorPlan
from barnabas.spark.pipelines.mirror_source import MirrorReader, MirrorTask, plan_from_text, plan_text
from barnabas.spark.pipelines.progress import Progress
from barnabas.spark.pipelines.spec import Pipeline
from barnabas.spark.pipelines.supervisor import Supervisor
from barnabas.testing import Broker
from tests.spark.pipelines._mirror import contents, end_of, fill, fresh, plan, rows, settings, transact

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = ReadAllAvailable()


class Driver:
    """Calls a reader in the order in which Spark does."""

    def __init__(self, made: MirrorPlan, *, once: bool = False, start: dict[str, Any] | None = None) -> None:
        self.reader = MirrorReader(plan_text(made))
        if once:
            self.reader.prepareForTriggerAvailableNow()
        self.at = self.reader.initialOffset() if start is None else start

    def batch(self) -> list[tuple[Any, ...]] | None:
        """The rows of the next batch; None when there is none."""
        end = self.reader.latestOffset(self.at, ALL)
        if end == self.at:
            return None
        told = self.run(end)
        self.at = end
        return told

    def run(self, end: dict[str, Any]) -> list[tuple[Any, ...]]:
        tasks = self.reader.partitions(self.at, end)
        # A worker gets the reader and its task by pickle.
        return [
            row
            for task in tasks
            for row in pickle.loads(pickle.dumps(self.reader)).read(pickle.loads(pickle.dumps(task)))
        ]


class TestReader:
    def test_a_plan_travels_as_text(self, source: Broker, target: Broker) -> None:
        made = plan(source, target, "a.*", prefix="x.", tasks=3)
        assert plan_from_text(plan_text(made)) == made

    def test_batches_copy_what_is_new_and_tell(self, source: Broker, target: Broker) -> None:
        topic = fresh()
        source.create_topic(topic, 2)
        fill(source, topic, 30)
        fill(source, topic, 20, partition=1)
        driver = Driver(plan(source, target, topic))
        told = driver.batch()
        assert told is not None
        assert sorted(row[:5] for row in told) == [(topic, 0, 0, 30, 30), (topic, 1, 0, 20, 20)]
        assert driver.batch() is None
        fill(source, topic, 5, partition=1, first=20)
        told = driver.batch()
        assert told is not None
        assert [row[:5] for row in told] == [(topic, 1, 20, 25, 5)]
        assert driver.at == {"offsets": {topic: {"0": 30, "1": 25}}}
        assert driver.reader.reportLatestOffset() == driver.at
        driver.reader.stop()

    @pytest.mark.parametrize("offsets", ["auto", "translated"])
    def test_a_batch_that_runs_again_copies_nothing_twice(
        self, source: Broker, target: Broker, offsets: str
    ) -> None:
        topic = fresh()
        source.create_topic(topic)
        fill(source, topic, 30)
        made = plan(source, target, topic, offsets=offsets)
        first = Driver(made)
        end = first.reader.latestOffset(first.at, ALL)
        first.run(end)
        first.reader.stop()
        # The driver died before it noted the batch: another one plans it from the checkpoint.
        again = Driver(made)
        assert [row[4] for row in again.run(end)] == [0]
        again.reader.stop()
        assert contents(rows(target, topic)) == contents(rows(source, topic))

    def test_a_lost_checkpoint_costs_nothing(self, source: Broker, target: Broker) -> None:
        topic = fresh()
        source.create_topic(topic)
        fill(source, topic, 30)
        made = plan(source, target, topic, offsets="translated")
        for expected in (30, 0, 10):
            driver = Driver(made)
            told = driver.batch()
            assert sum(row[4] for row in told or ()) == expected
            driver.reader.stop()
            if expected == 0:
                fill(source, topic, 10, first=30)
        assert contents(rows(target, topic)) == contents(rows(source, topic))

    def test_available_now_ends_where_it_was_at_first(self, source: Broker, target: Broker) -> None:
        topic, group = fresh(), fresh("group")
        tp = TopicPartition(topic, 0)
        source.create_topic(topic)
        fill(source, topic, 30)
        with Admin(settings(source)) as admin:
            admin.alter_group_offsets(group, {tp: 17}).check()
        driver = Driver(plan(source, target, topic), once=True)
        told = driver.batch()
        fill(source, topic, 5, first=30)
        assert driver.batch() is None
        driver.reader.stop()
        assert sum(row[4] for row in told or ()) == 30
        with Admin(settings(target)) as admin:
            moved = admin.list_group_offsets(group, [tp])[tp]
        assert moved is not None
        assert moved.offset == 17

    def test_a_long_way_is_cut_into_batches(self, source: Broker, target: Broker) -> None:
        topic = fresh()
        source.create_topic(topic)
        fill(source, topic, 90, batch_size=500)
        driver = Driver(replace(plan(source, target, topic), batch_offsets=40))
        counts = []
        while (told := driver.batch()) is not None:
            counts.append(sum(row[4] for row in told))
        driver.reader.stop()
        assert sum(counts) == 90
        assert len(counts) == 3

    def test_small_partitions_share_tasks(self, source: Broker, target: Broker) -> None:
        topic = fresh()
        source.create_topic(topic, 6)
        for number in range(6):
            fill(source, topic, 3, partition=number)
        driver = Driver(plan(source, target, topic, tasks=2))
        tasks = driver.reader.partitions(driver.at, driver.reader.latestOffset(driver.at, ALL))
        assert all(isinstance(task, MirrorTask) for task in tasks)
        assert len(tasks) == 2
        driver.reader.stop()


@pytest.mark.slow
@pytest.mark.timeout(300)  # with the start of a session on a machine that is busy
def test_spark_runs_it_once_and_again(
    spark: "SparkSession", source: Broker, target: Broker, tmp_path: Path
) -> None:
    stem = fresh("spark")
    kept, other = f"{stem}-kept", f"{stem}-other"
    for name in (kept, other):
        source.create_topic(name, 2)
        fill(source, name, 200)
        transact(source, name, [b"no"], commit=False, partition=1)
        transact(source, name, [b"yes"], commit=True, partition=1)
    target.create_topic(other, 2)
    fill(target, other, 1)  # it has records of its own, so that offsets cannot be kept
    pipeline = Pipeline(stem, "mirror", plan(source, target, f"{stem}-.*", tasks=2))
    for round_ in range(2):
        told: list[Progress] = []
        supervisor = Supervisor([pipeline], checkpoint=str(tmp_path), once=True, spark=spark)
        (outcome,) = supervisor.run(threading.Event(), told.append)
        assert (outcome.state, outcome.error) == ("done", None)
        assert outcome.rows == (402 if round_ == 0 else 7)
        fill(source, kept, 7, first=200)
    for number in (0, 1):
        copied = rows(target, kept, number)
        assert copied == rows(source, kept, number)[: len(copied)]
        begin = 1 if number == 0 else 0
        assert contents(rows(target, other, number)[begin:]) == contents(rows(source, other, number))
    assert end_of(target, kept) == 207
