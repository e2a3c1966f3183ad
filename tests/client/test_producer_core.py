"""Tests of the way from a user's record to bytes and a partition, without a broker."""

from collections.abc import Sequence

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.errors import Misuse
from barnabas.base.types import ZERO_UUID
from barnabas.client.accumulator import ProducerTopic
from barnabas.client.config import PRODUCER, parse
from barnabas.client.errors import ClientClosed, RecordTooLarge, Serialization, UnknownTopic
from barnabas.client.interceptors import HeaderValue, ProducerRecord
from barnabas.client.metadata import PartitionInfo, TopicInfo
from barnabas.client.partitioners import choose_by_key
from barnabas.client.producer_core import ProducerCore


def core(**more: object) -> ProducerCore:
    return ProducerCore(parse(PRODUCER, {"bootstrap.servers": "a:1", **more}), clock=ManualClock(5_000))


def topic_of(producer: ProducerCore, partitions: int = 3) -> ProducerTopic:
    found = TopicInfo("t", ZERO_UUID, tuple(PartitionInfo(index, 1) for index in range(partitions)))
    return producer.accumulator.update_topic(found)


class TestPreparing:
    def test_bytes_text_and_headers(self) -> None:
        headers: dict[str, HeaderValue] = {"a": "text", "b": b"bytes", "c": None, "d": bytearray(b"x")}
        prepared = core().prepare(ProducerRecord("t", "v", b"k", headers, 2, 77))
        assert prepared[:6] == (
            "t",
            b"k",
            b"v",
            (("a", b"text"), ("b", b"bytes"), ("c", None), ("d", b"x")),
            2,
            77,
        )

    def test_the_time_is_now_unless_it_is_given(self) -> None:
        assert core().prepare(ProducerRecord("t")).timestamp_ms == 5_000

    def test_serializers_are_used(self) -> None:
        producer = core(**{"value.serializer": "json", "key.serializer": str.encode})
        prepared = producer.prepare(ProducerRecord("t", {"a": 1}, "k"))
        assert (prepared.key, prepared.value) == (b"k", b'{"a":1}')

    @pytest.mark.parametrize(
        ("record", "text"),
        [
            (
                ProducerRecord("t", 5),
                "t: the value of type int cannot be serialized.*give a value.serializer",
            ),
            (ProducerRecord("t", b"", 5.0), "t: the key of type float cannot be serialized"),
            (ProducerRecord("t", "\ud800"), "t: the value of type str cannot be serialized.*surrogates"),
            (ProducerRecord("t", headers=[("a",)]), "the header of type tuple"),  # type: ignore[list-item]  # wrong
            (ProducerRecord("t", headers={"a": 5}), "a header is a pair of"),  # type: ignore[arg-type]  # wrong
        ],
    )
    def test_what_cannot_become_bytes(self, record: ProducerRecord, text: str) -> None:
        with pytest.raises(Serialization, match=text):
            core().prepare(record)

    @pytest.mark.parametrize("name", ["", 5, None])
    def test_a_topic_must_be_a_name(self, name: object) -> None:
        with pytest.raises(Misuse, match="a topic is a str"):
            core().prepare(ProducerRecord(name))  # type: ignore[arg-type]  # wrong on purpose

    @pytest.mark.parametrize("time", [-1, 2**63, 1.5, "now"])
    def test_a_timestamp_must_be_one(self, time: object) -> None:
        with pytest.raises(Misuse, match="is not a timestamp in milliseconds"):
            core().prepare(ProducerRecord("t", timestamp_ms=time))  # type: ignore[arg-type]  # wrong on purpose

    def test_a_record_larger_than_a_request(self) -> None:
        with pytest.raises(
            RecordTooLarge, match=r"t: a record of up to 1\d+ bytes is larger than max\.request"
        ):
            core(max_request_size=1_000).prepare(ProducerRecord("t", b"x" * 1_000))

    def test_a_record_larger_than_the_buffer(self) -> None:
        with pytest.raises(RecordTooLarge, match=r"buffer\.memory, 500"):
            core(buffer_memory=500).prepare(ProducerRecord("t", b"", headers={"h": b"x" * 500}))

    def test_after_closing(self) -> None:
        producer = core()
        producer.refuse_new()
        with pytest.raises(ClientClosed):
            producer.prepare(ProducerRecord("t"))


class TestPlacing:
    def place(self, producer: ProducerCore, record: ProducerRecord) -> int | None:
        return producer.place(topic_of(producer), producer.prepare(record))

    def test_a_partition_that_was_named(self) -> None:
        assert self.place(core(), ProducerRecord("t", key=b"k", partition=2)) == 2

    def test_one_that_is_not_there(self) -> None:
        with pytest.raises(UnknownTopic, match="t has no partition 3, only 0 to 2"):
            self.place(core(), ProducerRecord("t", partition=3))

    @pytest.mark.parametrize("partition", [-1, "0"])
    def test_one_that_is_none(self, partition: object) -> None:
        record = ProducerRecord("t", partition=partition)  # type: ignore[arg-type]  # wrong on purpose
        with pytest.raises(Misuse, match="is not a partition"):
            self.place(core(), record)

    def test_the_key(self) -> None:
        assert self.place(core(), ProducerRecord("t", key=b"k")) == choose_by_key(b"k", 3)

    def test_no_key(self) -> None:
        assert self.place(core(), ProducerRecord("t")) is None

    def test_keys_may_be_ignored(self) -> None:
        assert self.place(core(partitioner_ignore_keys=True), ProducerRecord("t", key=b"k")) is None

    def test_a_partitioner_of_one_s_own(self) -> None:
        seen: list[object] = []

        def choose(
            topic: str, key: bytes | None, value: bytes | None, count: int, available: Sequence[int]
        ) -> int:
            seen.append((topic, key, value, count, list(available)))
            return 1

        producer = core(partitioner_class=choose)
        assert self.place(producer, ProducerRecord("t", b"v", b"k")) == 1
        assert seen == [("t", b"k", b"v", 3, [0, 1, 2])]
        assert self.place(producer, ProducerRecord("t", partition=0)) == 0


class TestTheShortWay:
    def test_it_is_taken_when_nothing_stands_in_it(self) -> None:
        assert core().is_direct

    @pytest.mark.parametrize(
        "given",
        [
            {"value_serializer": "json"},
            {"key_serializer": "str"},
            {"partitioner_class": "round_robin"},
            {"partitioner_ignore_keys": True},
        ],
    )
    def test_settings_that_bar_it(self, given: dict[str, object]) -> None:
        assert not core(**given).is_direct


class TestAdding:
    def test_bytes_that_were_waited_for_go_back_when_the_producer_closed(self) -> None:
        producer = core(buffer_memory=100_000)
        topic = topic_of(producer)
        prepared = producer.prepare(ProducerRecord("t", b"v"))
        assert producer.pool.take(16_384)
        producer.refuse_new()
        with pytest.raises(ClientClosed):
            producer.try_add(topic, 0, prepared, None, reserved=16_384)
        assert producer.pool.available == 100_000

    def test_no_room_is_said_in_numbers(self) -> None:
        producer = core(buffer_memory=1_000, max_block_ms=7)
        producer.pool.take(600)
        error = producer.buffer_full(500)
        assert str(error) == (
            "no room for 500 bytes in the buffer within 7 ms: 600 of 1000 bytes (buffer.memory) wait to be "
            "acknowledged"
        )

    def test_metrics_are_there_before_the_start(self) -> None:
        found = core().snapshot()
        assert found["buffer-available-bytes"] == 33_554_432
        assert found["requests-in-flight"] == 0
