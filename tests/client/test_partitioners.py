"""Tests of choosing a partition, held against Java's own figures, librdkafka and aiokafka."""

import random
from collections.abc import Sequence

import confluent_kafka
import pytest
from aiokafka.partitioner import murmur2 as aiokafka_murmur2
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import ConfigFault, Misuse
from barnabas.client.admin import Admin
from barnabas.client.config import PRODUCER, ClientSettings, parse
from barnabas.client.partitioners import (
    RoundRobin,
    checked_choice,
    choose_by_key,
    choose_randomly,
    murmur2,
    partitioner_of,
)


def settings(**more: object) -> ClientSettings:
    return parse(PRODUCER, {"bootstrap.servers": "localhost:9092", **more})


class TestTheHash:
    @pytest.mark.parametrize(
        ("data", "signed"),
        # From UtilsTest of Apache Kafka.
        [
            (b"21", -973932308),
            (b"foobar", -790332482),
            (b"a-little-bit-long-string", -985981536),
            (b"a-little-bit-longer-string", -1486304829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
            (b"abc", 479470107),
        ],
    )
    def test_it_is_java_s(self, data: bytes, signed: int) -> None:
        assert murmur2(data) == signed & 0xFFFF_FFFF

    @given(st.binary(max_size=70))
    def test_it_is_aiokafka_s_for_any_key(self, data: bytes) -> None:
        assert murmur2(data) == aiokafka_murmur2(data) & 0xFFFF_FFFF

    def test_a_key_goes_where_librdkafka_s_murmur2_random_sends_it(
        self, bootstrap: str, topic: str, admin: Admin
    ) -> None:
        keys = [random.Random(4).randbytes(size) for size in range(1, 64)]
        placed: dict[bytes, int] = {}

        def note(error: object, message: confluent_kafka.Message) -> None:
            assert error is None
            key, partition = message.key(), message.partition()
            assert isinstance(key, bytes)
            assert partition is not None
            placed[key] = partition

        admin.create_topic(topic, 7)
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "partitioner": "murmur2_random", "linger.ms": 0}
        )
        for key in keys:
            producer.produce(topic, b"", key, on_delivery=note)
        producer.flush(10)
        assert placed == {key: choose_by_key(key, 7) for key in keys}


class TestTheNamesOfTheSetting:
    @pytest.mark.parametrize("name", ["default", "sticky", "murmur2_random", "DefaultPartitioner"])
    def test_the_built_in_one_has_several(self, name: str) -> None:
        assert partitioner_of(settings(partitioner_class=name)) is None

    def test_nothing_given_is_the_built_in_one(self) -> None:
        assert partitioner_of(settings()) is None

    @pytest.mark.parametrize(
        "name", ["round_robin", "round-robin", "org.apache.kafka.clients.producer.RoundRobinPartitioner"]
    )
    def test_round_robin_by_our_name_or_java_s(self, name: str) -> None:
        assert isinstance(partitioner_of(settings(partitioner_class=name)), RoundRobin)

    def test_random(self) -> None:
        assert partitioner_of(settings(partitioner_class="random")) is choose_randomly

    def test_a_callable_is_taken_as_it_is(self) -> None:
        def choose(
            topic: str, key: bytes | None, value: bytes | None, count: int, available: Sequence[int]
        ) -> int:
            return 0

        assert partitioner_of(settings(partitioner_class=choose)) is choose

    def test_a_class_is_made(self) -> None:
        assert isinstance(partitioner_of(settings(partitioner_class=RoundRobin)), RoundRobin)

    def test_an_unknown_name_is_refused_with_those_there_are(self) -> None:
        with pytest.raises(ConfigFault, match=r"partitioner\.class: 'best' is not one of default, sticky"):
            partitioner_of(settings(partitioner_class="best"))

    def test_what_cannot_be_called_is_refused(self) -> None:
        with pytest.raises(ConfigFault, match=r"partitioner\.class: int cannot be called"):
            partitioner_of(settings(partitioner_class=5))


class TestRoundRobin:
    def test_each_topic_takes_turns_of_its_own(self) -> None:
        choose = RoundRobin()
        assert [choose("a", b"k", None, 3, [0, 1, 2]) for _ in range(4)] == [0, 1, 2, 0]
        assert choose("b", None, None, 3, [0, 1, 2]) == 0

    def test_partitions_without_a_leader_are_left_out(self) -> None:
        choose = RoundRobin()
        assert [choose("a", None, None, 3, [0, 2]) for _ in range(3)] == [0, 2, 0]

    def test_without_any_leader_all_are_tried(self) -> None:
        choose = RoundRobin()
        assert [choose("a", None, None, 2, []) for _ in range(3)] == [0, 1, 0]


class TestRandom:
    def test_only_partitions_with_a_leader(self) -> None:
        assert {choose_randomly("a", None, None, 9, [3, 5]) for _ in range(60)} == {3, 5}

    def test_any_when_none_has_one(self) -> None:
        assert {choose_randomly("a", None, None, 2, []) for _ in range(60)} == {0, 1}


class TestWhatACustomOneAnswers:
    @pytest.mark.parametrize("choice", [-1, 3, None, 1.0, "1"])
    def test_something_that_is_no_partition_is_misuse(self, choice: object) -> None:
        with pytest.raises(Misuse, match="which has partitions 0 to 2"):
            checked_choice(choice, "t", 3)

    def test_a_partition_is_taken(self) -> None:
        assert checked_choice(2, "t", 3) == 2
