"""barnabas.spark.pipelines.replay_topic: a range once, in parts, at a rate, after being stopped (T1, T2)."""

import threading
import time
from dataclasses import replace

import pytest

from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.mirror_task import Copied
from barnabas.spark.pipelines.replay_pace import Extent
from barnabas.spark.pipelines.replay_plan import Edge, Rate, ReplayPlan
from barnabas.spark.pipelines.replay_topic import TopicReplay
from barnabas.testing import Broker
from tests.spark.pipelines._mirror import contents, fill, fresh, rows, settings, transact

T0 = 1_700_000_000_000


def replay_plan(source: Broker, target: Broker, topic: str, **more: object) -> ReplayPlan:
    given: dict[str, object] = {"topic": topic, "timeout_ms": 20_000, **more}
    return ReplayPlan(
        {name: str(value) for name, value in settings(source).items()},
        {name: str(value) for name, value in settings(target).items()},
        fresh("into"),
        fresh("r"),
        **given,  # type: ignore[arg-type]  # fields of the plan by name
    )


def run(plan: ReplayPlan, stop: threading.Event | None = None) -> int:
    copied: list[Copied] = []
    with TopicReplay(plan) as replay:
        replay.run(stop, copied.extend)
    return sum(each.records for each in copied)


@pytest.fixture
def topic(source: Broker) -> str:
    """Two partitions with 100 and 50 records, one millisecond apart."""
    name = fresh()
    source.create_topic(name, 2)
    fill(source, name, 100)
    fill(source, name, 50, partition=1)
    return name


class TestRanges:
    def test_all_of_it(self, source: Broker, target: Broker, topic: str) -> None:
        plan = replay_plan(source, target, topic)
        assert run(plan) == 150
        for number in (0, 1):
            assert contents(rows(target, plan.into, number)) == contents(rows(source, topic, number))

    def test_offsets_are_exact_in_the_middle_of_batches(
        self, source: Broker, target: Broker, topic: str
    ) -> None:
        plan = replay_plan(source, target, topic, begin=Edge("offset", 10), end=Edge("offset", 33))
        assert run(plan) == 46
        values = [row.value for row in rows(target, plan.into)]
        assert values == [b"v%d" % number for number in range(10, 33)]

    def test_times_and_single_partitions(self, source: Broker, target: Broker, topic: str) -> None:
        plan = replay_plan(
            source, target, topic, begin=Edge("time", T0 + 20), end=Edge("time", T0 + 30), partitions=(1,)
        )
        assert run(plan) == 10
        assert [row.value for row in rows(target, plan.into, 1)] == [b"v%d" % n for n in range(20, 30)]

    def test_offsets_of_each_partition(self, source: Broker, target: Broker, topic: str) -> None:
        plan = replay_plan(source, target, topic, begin=Edge("offsets", offsets={0: 95, 1: 49}))
        with TopicReplay(plan) as replay:
            assert replay.extents() == {0: Extent(95, 100), 1: Extent(49, 50)}

    def test_what_is_outside_is_cut(self, source: Broker, target: Broker, topic: str) -> None:
        plan = replay_plan(source, target, topic, begin=Edge("offset", 90), end=Edge("offset", 1_000))
        with TopicReplay(plan) as replay:
            assert replay.extents() == {0: Extent(90, 100), 1: Extent(50, 50)}

    def test_a_topic_into_itself_ends(self, source: Broker, topic: str) -> None:
        plan = replace(replay_plan(source, source, topic), into=topic)
        assert run(plan) == 150
        assert len(rows(source, topic)) == 200

    def test_only_committed_records(self, source: Broker, target: Broker) -> None:
        name = fresh()
        source.create_topic(name)
        transact(source, name, [b"no"], commit=False)
        transact(source, name, [b"yes"], commit=True)
        plan = replay_plan(source, target, name)
        assert run(plan) == 1
        assert [row.value for row in rows(target, plan.into)] == [b"yes"]

    def test_nothing_is_replayed_of_an_empty_topic(self, source: Broker, target: Broker) -> None:
        name = fresh()
        source.create_topic(name)
        assert run(replay_plan(source, target, name)) == 0


class TestOnce:
    def test_the_same_id_does_it_once_and_its_range_stays(
        self, source: Broker, target: Broker, topic: str
    ) -> None:
        plan = replay_plan(source, target, topic)
        assert run(plan) == 150
        fill(source, topic, 10, first=100)
        assert run(plan) == 0
        assert len(rows(target, plan.into)) == 100

    def test_one_that_was_stopped_goes_on(self, source: Broker, target: Broker, topic: str) -> None:
        plan = replay_plan(source, target, topic, rate=Rate("records", 300))
        stop = threading.Event()
        counts: list[int] = []

        def stop_soon(copied: list[Copied]) -> None:
            counts.append(sum(each.records for each in copied))
            stop.set()

        with TopicReplay(plan) as replay:
            replay.run(stop, stop_soon)
        assert 0 < sum(counts) < 150
        assert run(replace(plan, rate=Rate())) == 150 - sum(counts)
        assert contents(rows(target, plan.into)) == contents(rows(source, topic))

    def test_an_id_belongs_to_one_topic(self, source: Broker, target: Broker, topic: str) -> None:
        plan = replay_plan(source, target, topic)
        run(plan)
        with pytest.raises(PipelineError, match=f"was one of topic {topic}; choose another id"):
            run(replace(plan, topic=fresh()))


class TestRates:
    def test_records_a_second(self, source: Broker, target: Broker, topic: str) -> None:
        plan = replay_plan(source, target, topic, rate=Rate("records", 400))
        began = time.monotonic()
        assert run(plan) == 150
        assert time.monotonic() - began >= 150 / 400

    def test_as_recorded(self, source: Broker, target: Broker, topic: str) -> None:
        plan = replay_plan(source, target, topic, rate=Rate("speed", 0.25))
        began = time.monotonic()
        assert run(plan) == 150
        assert time.monotonic() - began >= 0.099 / 0.25

    def test_bytes_a_second(self, source: Broker, target: Broker, topic: str) -> None:
        assert run(replay_plan(source, target, topic, rate=Rate("bytes", 50_000))) == 150


class TestDryRun:
    def test_it_says_what_it_would_do_and_writes_nothing(
        self, source: Broker, target: Broker, topic: str
    ) -> None:
        plan = replay_plan(source, target, topic, begin=Edge("offset", 10), rate=Rate("records", 10))
        with TopicReplay(plan) as replay:
            found = replay.estimate()
        assert found.partitions == {0: Extent(10, 100), 1: Extent(10, 50)}
        assert (found.records, found.seconds, found.is_exact) == (130, 13.0, False)
        assert 130 * 10 < found.size_bytes < 130 * 200
        with pytest.raises(Exception, match=plan.into):
            rows(target, plan.into)

    def test_as_recorded_takes_as_long_as_the_recording(
        self, source: Broker, target: Broker, topic: str
    ) -> None:
        with TopicReplay(replay_plan(source, target, topic, rate=Rate("speed", 1))) as replay:
            assert replay.estimate().seconds == pytest.approx(0.099)


class TestRefused:
    def test_a_target_with_too_few_partitions(self, source: Broker, target: Broker, topic: str) -> None:
        plan = replay_plan(source, target, topic)
        target.create_topic(plan.into, 1)
        with pytest.raises(PipelineError, match=r"has 1 partitions and .* has records in 2"):
            run(plan)

    def test_a_partition_that_is_not_there(self, source: Broker, target: Broker, topic: str) -> None:
        with pytest.raises(PipelineError, match="has no partition 7, only 0 to 1"):
            run(replay_plan(source, target, topic, partitions=(7,)))
