"""Tests of the per-record path, the same for both twins."""

import threading
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.clock import ManualClock
from barnabas.client import _hot_plain
from barnabas.client.partitioners import choose_by_key
from barnabas.records import kernel
from tests.client._hot_kit import Twin, twins

VALUES = st.one_of(st.none(), st.binary(max_size=30), st.text(max_size=5), st.integers())


@pytest.fixture(params=twins())
def twin(request: pytest.FixtureRequest) -> Twin:
    return Twin(request.param)


def append(appender: Any, value: object = b"v", key: object = None, **more: object) -> Any:
    return appender.append(
        more.get("topic", "t"),
        value,
        key,
        more.get("headers"),
        more.get("partition"),
        more.get("timestamp_ms"),
        more.get("on_delivery"),
    )


def records(batch: Any) -> list[kernel.Record]:
    base = batch.builder.base_timestamp
    return kernel.decode(batch.builder.take(), batch.count, 0, base)


class TestWhatIsTaken:
    def test_a_record_lands_in_the_open_batch_as_it_is(self, twin: Twin) -> None:
        batch = twin.batch()
        appender = twin.appender([batch])
        future = append(appender, b"v", b"k", timestamp_ms=7, headers=(("h", b"1"), ("n", None)))
        (record,) = records(batch)
        assert (record.key, record.value, record.timestamp) == (b"k", b"v", 7)
        assert record.headers == (("h", b"1"), ("n", None))
        assert (future.batch, future.index, future.timestamp) == (batch, 0, 7)
        assert (future.key_size, future.value_size) == (1, 1)

    @pytest.mark.parametrize("headers", [[("h", b"1")], {"h": b"1"}, (("h", b"1"),)])
    def test_headers_may_be_a_list_a_tuple_or_a_dict(self, twin: Twin, headers: object) -> None:
        batch = twin.batch()
        append(twin.appender([batch]), key=b"k", headers=headers)
        assert records(batch)[0].headers == (("h", b"1"),)

    def test_no_key_and_a_null_value(self, twin: Twin) -> None:
        batch = twin.batch()
        appender = twin.appender([batch])
        appender.topics["t"].sticky = 0
        future = append(appender, None)
        assert (future.key_size, future.value_size) == (-1, -1)
        assert records(batch)[0].value is None

    def test_the_index_rises(self, twin: Twin) -> None:
        appender = twin.appender([twin.batch()])
        assert [append(appender, key=b"k").index for _ in range(3)] == [0, 1, 2]

    def test_without_a_timestamp_the_clock_is_asked(self, twin: Twin) -> None:
        appender = twin.appender([twin.batch()], clock=ManualClock(123_000))
        assert append(appender, key=b"k").timestamp == 123_000

    def test_the_system_clock_is_the_default(self, twin: Twin) -> None:
        assert append(twin.appender([twin.batch()]), key=b"k").timestamp > 1_600_000_000_000

    def test_a_callback_is_kept_with_its_future(self, twin: Twin) -> None:
        batch = twin.batch()
        future = append(twin.appender([batch]), key=b"k", on_delivery=print)
        assert batch.deliveries == [(print, future)]


class TestTheChoiceOfThePartition:
    def test_a_key_decides(self, twin: Twin) -> None:
        appender = twin.appender([twin.batch(partition=index) for index in range(5)])
        for key in (b"a", b"some key", b"\xff" * 33):
            assert append(appender, key=key).batch.partition == choose_by_key(key, 5)

    def test_a_partition_that_was_named_wins(self, twin: Twin) -> None:
        appender = twin.appender([twin.batch(partition=index) for index in range(5)])
        assert append(appender, key=b"a", partition=3).batch.partition == 3

    def test_without_a_key_the_sticky_one(self, twin: Twin) -> None:
        appender = twin.appender([twin.batch(partition=index) for index in range(5)])
        appender.topics["t"].sticky = 2
        assert append(appender).batch.partition == 2

    def test_keys_are_left_to_the_long_way_when_they_are_not_hashed(self, twin: Twin) -> None:
        appender = twin.appender([twin.batch()], hashes_keys=False)
        assert append(appender, key=b"k") is None
        assert append(appender, key=b"k", partition=0) is not None


class TestWhatIsLeftToTheLongWay:
    @pytest.mark.parametrize(
        "given",
        [
            {"value": "text"},
            {"value": bytearray(b"x")},
            {"value": 5},
            {"key": "text"},
            {"key": 5, "partition": 0},
            {"headers": 5},
            {"headers": [("h", "text")]},
            {"headers": [["h", b""]]},
            {"headers": [("h",)]},
            {"headers": [(b"h", b"")]},
            {"headers": [("\ud800", b"")]},
            {"topic": "unknown"},
            {"topic": 5},
            {"partition": 1},
            {"partition": -1},
            {"partition": True},
            {"partition": "0"},
            {"partition": 2**70},
            {"timestamp_ms": -1},
            {"timestamp_ms": 1.5},
            {"timestamp_ms": 2**63},
        ],
    )
    def test_whatever_is_not_plain(self, twin: Twin, given: dict[str, object]) -> None:
        batch = twin.batch()
        appender = twin.appender([batch])
        appender.topics["t"].sticky = 0
        assert append(appender, **given) is None
        assert (batch.count, batch.builder.count, batch.deliveries) == (0, 0, [])

    def test_a_lane_without_an_open_batch(self, twin: Twin) -> None:
        assert append(twin.appender([None]), key=b"k") is None

    def test_no_sticky_partition_yet(self, twin: Twin) -> None:
        assert append(twin.appender([twin.batch()])) is None

    def test_a_topic_without_partitions(self, twin: Twin) -> None:
        assert append(twin.appender([]), key=b"k") is None

    def test_a_batch_that_is_full(self, twin: Twin) -> None:
        batch = twin.batch(limit=30)
        appender = twin.appender([batch])
        assert append(appender, b"x" * 15, b"k") is not None
        assert append(appender, b"x" * 15, b"k", on_delivery=print) is None
        assert (batch.count, batch.deliveries) == (1, [])


class TestAdding:
    def test_the_first_record_always_fits(self, twin: Twin) -> None:
        batch = twin.batch(limit=0)
        assert batch.add(1, None, b"x" * 100, (), None) is not None
        assert batch.add(1, None, b"", (), None) is None

    @given(value=VALUES, key=VALUES, partition=st.one_of(st.none(), st.integers(-2, 3)))
    def test_the_twins_agree(self, value: object, key: object, partition: int | None) -> None:
        answers = []
        for parameter in twins():
            chosen: tuple[ModuleType, type[Any]] = parameter.values[0]
            twin = Twin(chosen)
            batches = [twin.batch(partition=index) for index in range(3)]
            appender = twin.appender(batches)
            appender.topics["t"].sticky = 1
            future = append(appender, value, key, partition=partition, timestamp_ms=5)
            answers.append(
                None
                if future is None
                else (future.batch.partition, future.key_size, future.value_size, records(future.batch))
            )
        assert answers.count(answers[0]) == len(answers)


class TestManyThreads:
    @pytest.mark.slow
    def test_no_record_is_lost_or_mixed_and_no_index_given_twice(self, twin: Twin) -> None:
        count = 5_000
        batch = twin.batch(limit=10_000_000)
        appender = twin.appender([batch])
        indexes: list[list[int]] = [[] for _ in range(4)]

        def run(thread: int) -> None:
            for number in range(count):
                future = append(appender, b"%d:%d" % (thread, number), b"k", on_delivery=print)
                indexes[thread].append(future.index)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(index for each in indexes for index in each) == list(range(4 * count))
        assert [future.index for _, future in batch.deliveries] == list(range(4 * count))
        values = [record.value for record in records(batch)]
        for number, mine in enumerate(indexes):
            assert [values[index] for index in mine] == [b"%d:%d" % (number, at) for at in range(count)]


def test_the_hash_takes_bytes_only(twin: Twin) -> None:
    with pytest.raises(TypeError):
        twin.module.murmur2(None)


def test_the_plain_twin_documents_what_the_compiled_one_does() -> None:
    for name in _hot_plain.__all__:
        for parameter in twins():
            module = parameter.values[0][0]
            assert name == "Home" or hasattr(module, name)
