"""The driver's questions, asked of a real broker."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.errors import TopicAuthorization
from barnabas.spark.errors import OptionError, SparkPartError
from barnabas.spark.lookup import Lookup
from barnabas.spark.options import AtOffsets, AtTime, AtTimes, Edge, parse_source
from barnabas.testing.broker import Broker
from tests._kafka import free_ports
from tests.spark._kit import Topics

KEPT = {"retention.ms": "-1"}  # the records of these tests claim to be from 1970


@contextmanager
def lookup(topics: Topics, **options: str) -> Iterator[Lookup]:
    made = Lookup(parse_source({"kafka.bootstrap.servers": topics.bootstrap, **options}, stream=True))
    try:
        yield made
    finally:
        made.close()


def places(topic: str, *offsets: int) -> dict[TopicPartition, int]:
    return {TopicPartition(topic, index): offset for index, offset in enumerate(offsets)}


class TestPartitions:
    def test_of_topics_of_a_pattern_and_as_assigned(self, topics: Topics, name: Callable[[str], str]) -> None:
        stem = name("t")
        topics.create(f"{stem}-a", 2)
        topics.create(f"{stem}-b", 1)
        both = {*places(f"{stem}-a", 0, 0), *places(f"{stem}-b", 0)}
        with lookup(topics, subscribe=f"{stem}-a,{stem}-b") as asked:
            assert asked.partitions() == both
        with lookup(topics, subscribePattern=f"\\Q{stem}\\E-[a-z&&[^c]]") as asked:
            assert asked.partitions() == both
        with lookup(topics, assign=json.dumps({f"{stem}-a": [1]})) as asked:
            assert asked.partitions() == {TopicPartition(f"{stem}-a", 1)}

    def test_a_pattern_sees_topics_made_later_and_may_match_none(
        self, topics: Topics, name: Callable[[str], str]
    ) -> None:
        stem = name("t")
        with lookup(topics, subscribePattern=f"{stem}.*") as asked:
            assert asked.partitions() == frozenset()
            topics.create(f"{stem}-a")
            assert asked.partitions() == {TopicPartition(f"{stem}-a", 0)}

    def test_a_list_that_may_be_old(self, topics: Topics, name: Callable[[str], str]) -> None:
        stem = name("t")
        now = [0.0]
        options = parse_source(
            {
                "kafka.bootstrap.servers": topics.bootstrap,
                "subscribePattern": f"{stem}.*",
                "partition.metadata.cache.ttl.ms": "1000",
            }
        )
        asked = Lookup(options, monotonic=lambda: now[0])
        assert asked.partitions() == frozenset()
        topics.create(stem)
        assert asked.partitions() == frozenset()
        now[0] = 1.0
        assert asked.partitions() == {TopicPartition(stem, 0)}
        asked.close()

    def test_what_is_named_and_not_there(self, topics: Topics, topic: str) -> None:
        with lookup(topics, subscribe=topic) as asked:
            with pytest.raises(OptionError, match=f"^option subscribe: topic '{topic}' does not exist$"):
                asked.partitions()
            assert asked.partitions(gone_is_fine=True) == frozenset()
        topics.create(topic, 2)
        with lookup(topics, assign=json.dumps({topic: [0, 2]})) as asked:
            with pytest.raises(OptionError, match=f"no partition {topic}-2: topic {topic} has 2 partitions"):
                asked.partitions()
            assert asked.partitions(gone_is_fine=True) == {TopicPartition(topic, 0)}


class TestBounds:
    def test_ends_of_the_log(self, topics: Topics, topic: str) -> None:
        topics.create(topic, 2)
        topics.fill(topic, 5, partition=1)
        topics.admin.delete_records({TopicPartition(topic, 1): 2}).check()
        with lookup(topics, subscribe=topic) as asked:
            found = asked.partitions()
            assert asked.resolve(Edge.EARLIEST, found, starting=True) == places(topic, 0, 2)
            assert asked.resolve(Edge.LATEST, found, starting=True) == places(topic, 0, 5)
            mixed = AtOffsets(places(topic, -1, -2))
            assert asked.resolve(mixed, found, starting=True) == places(topic, 0, 2)
            assert asked.earliest([]) == {}
            assert asked.latest([TopicPartition(topic, 9)]) == {}

    def test_offsets_must_cover_what_is_read(self, topics: Topics, topic: str) -> None:
        topics.create(topic, 2)
        with lookup(topics, subscribe=topic) as asked:
            found = asked.partitions()
            with pytest.raises(
                OptionError, match=f"startingOffsets: it must name exactly .*{topic}-1 is miss"
            ):
                asked.resolve(AtOffsets(places(topic, 1)), found, starting=True)
            with pytest.raises(OptionError, match=f"endingOffsets: .*{topic}-2 is not among them"):
                asked.resolve(AtOffsets(places(topic, 1, 1, 1)), found, starting=False)

    def test_times(self, topics: Topics, topic: str) -> None:
        topics.create(topic, 2, config=KEPT)
        for moment in (1000, 2000, 3000):
            topics.fill(topic, 1, partition=0, timestamp_ms=moment)
        topics.fill(topic, 1, partition=1, timestamp_ms=1500)
        with lookup(topics, subscribe=topic) as asked:
            found = asked.partitions()
            assert asked.resolve(AtTime(1001), found, starting=True) == places(topic, 1, 0)
            assert asked.resolve(AtTimes(places(topic, 3000, 1)), found, starting=True) == places(topic, 2, 0)
            with pytest.raises(OptionError) as caught:
                asked.resolve(AtTime(2000), found, starting=True)
            assert str(caught.value) == (
                f"option startingTimestamp: {topic}-1 has no record at or after 2000; "
                "set startingOffsetsByTimestampStrategy=latest to start at its end"
            )
            assert asked.resolve(AtTime(2000), found, starting=False) == places(topic, 1, 1)
        with lookup(topics, subscribe=topic, startingOffsetsByTimestampStrategy="latest") as asked:
            assert asked.resolve(AtTime(2000), found, starting=True) == places(topic, 1, 1)


def test_sizes_are_averages_over_the_log(topics: Topics, topic: str) -> None:
    topics.create(topic, 1)
    topics.fill(topic, 1000)
    with lookup(topics, subscribe=topic) as asked:
        found = asked.bytes_per_offset(places(topic, 0), places(topic, 1000))
        assert 5 < found[TopicPartition(topic, 0)] < 100


def test_a_group_is_told_and_forgotten(topics: Topics, topic: str) -> None:
    topics.create(topic, 1)
    with lookup(topics, subscribe=topic) as asked:
        asked.commit(f"spark:{topic}", places(topic, 3), '{"batch": 1}')
        found = asked.committed(f"spark:{topic}")[TopicPartition(topic, 0)]
        assert found is not None
        assert (found.offset, found.metadata) == (3, '{"batch": 1}')
        asked.forget_group(f"spark:{topic}")
        assert asked.committed(f"spark:{topic}") == {}


@pytest.mark.slow
def test_a_broker_that_restarts_is_waited_for(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    settings = {"listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    broker = Broker(settings, data_dir=str(tmp_path))
    with broker, Topics(broker.bootstrap_servers) as made:
        made.create("t")
        made.fill("t", 3)
    asked = Lookup(parse_source({"kafka.bootstrap.servers": f"127.0.0.1:{port}", "subscribe": "t"}))
    with broker:
        assert asked.latest(asked.partitions()) == places("t", 3)
    with ThreadPoolExecutor(1) as other:
        answer = other.submit(asked.latest, [TopicPartition("t", 0)])
        with broker:
            assert answer.result(60) == places("t", 3)
            asked.close()


def test_nobody_there_is_one_sentence() -> None:
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.bootstrap.timeout.ms": "0", "subscribe": "t"}
    asked = Lookup(parse_source({**options, "fetchOffset.numRetries": "1"}))
    with pytest.raises(SparkPartError, match=r"^the cluster at 127.0.0.1:1 did not answer: .*refused$"):
        asked.partitions()


def test_a_refusal_is_not_taken_for_silence(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(admin: Admin, names: object) -> None:
        raise TopicAuthorization("topic 'secret': not yours")

    monkeypatch.setattr(Admin, "describe_topics", refuse)
    with (
        lookup(topics, subscribe="secret") as asked,
        pytest.raises(
            SparkPartError, match=r"^the cluster at \S+ refuses to answer: topic 'secret': not yours"
        ),
    ):
        asked.partitions()
