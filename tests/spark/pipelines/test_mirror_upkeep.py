"""barnabas.spark.pipelines.mirror_upkeep: what is to be copied, and who copies it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.errors import NoBrokersAvailable
from barnabas.spark.pipelines.mirror import run_here
from barnabas.spark.pipelines.mirror_task import TopicEnded, Work
from barnabas.spark.pipelines.mirror_upkeep import MirrorUpkeep, share
from barnabas.testing import Broker
from tests.spark.pipelines._mirror import contents, end_of, fill, fresh, plan, rows, settings, transact


def work(number: int) -> Work:
    return Work("t", number, 10, "t", True)


class TestSharing:
    def test_the_large_ones_are_spread(self) -> None:
        sizes = {TopicPartition("t", number): size for number, size in enumerate((100, 90, 10, 5))}
        parts = share([work(number) for number in range(4)], sizes, 2)
        assert [[each.partition for each in part] for part in parts] == [[0, 3], [1, 2]]

    @given(st.lists(st.integers(0, 1_000), min_size=1, max_size=20), st.integers(1, 9))
    def test_each_is_in_one_part(self, sizes: list[int], tasks: int) -> None:
        known = {TopicPartition("t", number): size for number, size in enumerate(sizes)}
        parts = share([work(number) for number in range(len(sizes))], known, tasks)
        assert sorted(each.partition for part in parts for each in part) == list(range(len(sizes)))
        assert len(parts) <= tasks
        assert all(parts)


class TestLooking:
    def test_it_looks_when_it_is_time(self, source: Broker, target: Broker) -> None:
        topic = fresh()
        source.create_topic(topic)
        with MirrorUpkeep(plan(source, target, topic, sync_interval_ms=3_600_000)) as upkeep:
            assert upkeep.look()
            assert not upkeep.look()
            assert upkeep.look(force=True)
            assert list(upkeep.topics) == [topic]

    def test_ends_are_those_of_committed_data(self, source: Broker, target: Broker) -> None:
        topic = fresh()
        tp = TopicPartition(topic, 0)
        source.create_topic(topic)
        fill(source, topic, 5)
        with MirrorUpkeep(plan(source, target, topic)) as upkeep:
            upkeep.look()
            assert upkeep.ends() == {tp: 5}
            transact(source, topic, [b"a"], commit=True)
            assert upkeep.ends() == {tp: 7}

    @pytest.mark.parametrize("offsets", ["auto", "translated"])
    def test_positions_are_the_targets_word(self, source: Broker, target: Broker, offsets: str) -> None:
        topic = fresh()
        tp = TopicPartition(topic, 0)
        source.create_topic(topic)
        fill(source, topic, 5)
        made = plan(source, target, topic, offsets=offsets)
        run_here(made, once=True)
        with MirrorUpkeep(made) as upkeep:
            assert upkeep.positions() == {}
            upkeep.look()
            assert upkeep.positions() == {tp: 5}

    @pytest.mark.parametrize("offsets", ["auto", "translated"])
    def test_a_topic_that_was_made_again_is_told(self, source: Broker, target: Broker, offsets: str) -> None:
        topic = fresh()
        source.create_topic(topic)
        fill(source, topic, 50)
        made = plan(source, target, topic, offsets=offsets)
        run_here(made, once=True)
        with Admin(settings(source)) as admin:
            admin.delete_topics([topic]).check()
            admin.create_topic(topic, 1, 1)
        with pytest.raises(TopicEnded, match=f"{topic}-0 was copied up to offset 50, but ends at 0 now"):
            run_here(made, once=True)

    @pytest.mark.parametrize("offsets", ["auto", "translated"])
    def test_a_topic_that_was_made_again_is_told_even_when_it_is_longer_now(
        self, source: Broker, target: Broker, offsets: str
    ) -> None:
        topic = fresh()
        source.create_topic(topic)
        fill(source, topic, 50)
        made = plan(source, target, topic, offsets=offsets)
        run_here(made, once=True)
        with Admin(settings(source)) as admin:
            admin.delete_topics([topic]).check()
            admin.create_topic(topic, 1, 1)
            fill(source, topic, 80, first=1_000)
            said = f"topic {topic} was deleted and made again at the source: its id was "
            with pytest.raises(TopicEnded, match=said):
                run_here(made, once=True)
            assert end_of(target, topic) in (50, 51)  # with the marker of the transaction
        # What the message says to do.
        with Admin(settings(target)) as admin:
            admin.delete_topics([topic]).check()
        run_here(made, once=True)
        assert contents(rows(target, topic)) == contents(rows(source, topic))

    def test_a_topic_that_was_made_again_before_anything_was_copied_is_copied(
        self, source: Broker, target: Broker
    ) -> None:
        topic = fresh()
        made = plan(source, target, topic)
        with Admin(settings(source)) as admin:
            for count in (0, 0, 5, 5):
                if count == 0:
                    admin.delete_topics([topic])
                    admin.create_topic(topic, 1, 1)
                fill(source, topic, count, first=end_of(source, topic))
                run_here(made, once=True)
        assert rows(target, topic) == rows(source, topic)
        assert end_of(target, topic) == 10

    @pytest.mark.parametrize("offsets", ["auto", "translated"])
    def test_latest_is_where_it_was_first_looked_at(
        self, source: Broker, target: Broker, offsets: str
    ) -> None:
        topic = fresh()
        source.create_topic(topic)
        fill(source, topic, 10)
        made = plan(source, target, topic, offsets=offsets, start="latest")
        with MirrorUpkeep(made) as upkeep:
            upkeep.look()
            assert [each.start for each in upkeep.works(upkeep.ends())] == [10]
        fill(source, topic, 5, first=10)
        (done,) = run_here(made, once=True)
        assert (done.start, done.end, done.records) == (10, 15, 5)

    def test_a_cluster_that_is_away_is_named(self, source: Broker) -> None:
        made = plan(source, "127.0.0.1:1", "x")
        away = replace(made, target={**made.target, "bootstrap.timeout.ms": "0"})
        with pytest.raises(NoBrokersAvailable, match=r"127\.0\.0\.1:1"):
            MirrorUpkeep(away)
