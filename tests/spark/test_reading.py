"""What a task of the source yields, without Spark: rows, schema, batches, gaps, losses, kept fetchers."""

import datetime
import logging
import multiprocessing
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from barnabas.base.types import TopicPartition
from barnabas.broker.maintenance import Maintenance
from barnabas.client.errors import KafkaError, RequestTimedOut
from barnabas.client.producer import Producer
from barnabas.client.range_reads import FetchedChunk
from barnabas.log.files import OsFiles
from barnabas.records.batch import patch_batch
from barnabas.records.builder import build_batch
from barnabas.records.columns import COLUMNS, ColumnReader
from barnabas.records.legacy import write_message_set
from barnabas.records.record import Record
from barnabas.spark import reading
from barnabas.spark.errors import DataLoss
from barnabas.spark.options import SourceOptions
from barnabas.spark.planning import OffsetRange
from barnabas.spark.reading import close_fetchers, fetcher_for, read_task
from barnabas.testing import Broker
from tests.broker._calls import partition_of
from tests.spark._kit import Topics

ALL = tuple(COLUMNS)
WAIT_MS = 20_000


@pytest.fixture(autouse=True)
def fetchers_closed() -> Iterator[None]:
    yield
    close_fetchers()


@pytest.fixture
def options(broker: Broker) -> Callable[..., SourceOptions]:
    def made(*columns: str, **more: Any) -> SourceOptions:
        client = {"bootstrap.servers": broker.bootstrap_servers, "fetch.max.wait.ms": "50"}
        return SourceOptions(client, columns or ALL, **{"poll_timeout_ms": WAIT_MS, **more})

    return made


Options = Callable[..., SourceOptions]


def rows_of(batches: Iterator[Any]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


class TestRows:
    def test_all_columns_have_exactly_the_types_of_spark(
        self, topics: Topics, topic: str, options: Options
    ) -> None:
        topics.create(topic)
        topics.fill(topic, 1, timestamp_ms=1_700_000_000_123, headers=[("h", b"x")])
        (batch,) = read_task([OffsetRange(topic, 0, 0, 1)], options())
        header = pa.struct([("key", pa.string()), ("value", pa.binary())])
        assert batch.schema == pa.schema(
            [
                ("key", pa.binary()),
                ("value", pa.binary()),
                ("topic", pa.string()),
                ("partition", pa.int32()),
                ("offset", pa.int64()),
                ("timestamp", pa.timestamp("us", tz="UTC")),
                ("timestampType", pa.int32()),
                ("headers", pa.list_(pa.field("element", header))),
            ]
        )
        assert batch.to_pylist() == [
            {
                "key": b"k0",
                "value": b"v0",
                "topic": topic,
                "partition": 0,
                "offset": 0,
                "timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 123_000, datetime.UTC),
                "timestampType": 0,
                "headers": [{"key": "h", "value": b"x"}],
            }
        ]

    def test_a_range_is_cut_to_its_offsets(self, topics: Topics, topic: str, options: Options) -> None:
        topics.create(topic)
        topics.fill(topic, 100)
        rows = rows_of(read_task([OffsetRange(topic, 0, 17, 63)], options("offset", "value")))
        assert rows == [{"offset": number, "value": b"v%d" % number} for number in range(17, 63)]

    def test_columns_come_in_the_order_asked_for(self, topics: Topics, topic: str, options: Options) -> None:
        topics.create(topic)
        topics.fill(topic, 1)
        (batch,) = read_task([OffsetRange(topic, 0, 0, 1)], options("partition", "key"))
        assert batch.schema.names == ["partition", "key"]

    def test_small_ranges_share_a_batch(self, topics: Topics, topic: str, options: Options) -> None:
        topics.create(topic, 5)
        topics.fill(topic, 100)
        (batch,) = read_task([OffsetRange(topic, index, 0, 20) for index in range(5)], options())
        seen = [(row["partition"], row["offset"]) for row in batch.to_pylist()]
        assert sorted(seen) == [(index, offset) for index in range(5) for offset in range(20)]

    def test_large_ranges_come_in_batches_of_a_few_megabytes(
        self, topics: Topics, topic: str, options: Options
    ) -> None:
        topics.create(topic)
        value = b"x" * 100_000
        for _ in range(130):
            topics.producer.send(topic, value)
        topics.producer.flush()
        batches = list(read_task([OffsetRange(topic, 0, 0, 130)], options("value", "offset")))
        assert all(1 << 20 < batch.nbytes < 5 << 20 for batch in batches[:-1])
        assert [row["offset"] for row in rows_of(iter(batches))] == list(range(130))

    def test_ranges_that_alternate_stay_in_order(self, topics: Topics, topic: str, options: Options) -> None:
        topics.create(topic, 2)
        for number in range(6):
            topics.fill(topic, 10, partition=number % 2, first=number * 10)
        small = options("partition", "offset")
        client = {**small.client, "max.partition.fetch.bytes": "100"}
        chosen = SourceOptions(client, small.columns, poll_timeout_ms=WAIT_MS)
        rows = rows_of(read_task([OffsetRange(topic, index, 3, 30) for index in range(2)], chosen))
        for index in range(2):
            assert [row["offset"] for row in rows if row["partition"] == index] == list(range(3, 30))

    def test_nothing_to_read_is_nothing(self, topics: Topics, topic: str, options: Options) -> None:
        topics.create(topic)
        assert list(read_task([OffsetRange(topic, 0, 0, 0)], options())) == []


class TestTransactions:
    def transact(self, topics: Topics, topic: str, *, commit: bool, count: int = 3) -> None:
        with Producer({"bootstrap.servers": topics.bootstrap}, transactional_id=topic) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            for number in range(count):
                producer.send(topic, b"c%d" % number if commit else b"a%d" % number)
            producer.flush()
            if commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()

    def test_aborted_records_and_markers_are_left_out(
        self, topics: Topics, topic: str, options: Options
    ) -> None:
        topics.create(topic)
        self.transact(topics, topic, commit=False)
        self.transact(topics, topic, commit=True)
        self.transact(topics, topic, commit=False)
        whole = [OffsetRange(topic, 0, 0, 12)]
        committed = rows_of(read_task(whole, options("offset", "value", isolation_level="read_committed")))
        assert [row["offset"] for row in committed] == [4, 5, 6]
        everything = rows_of(read_task(whole, options("offset")))
        assert [row["offset"] for row in everything] == [0, 1, 2, 4, 5, 6, 8, 9, 10]

    def test_an_open_one_ends_the_wait_with_its_cause(
        self, topics: Topics, topic: str, options: Options
    ) -> None:
        topics.create(topic)
        with Producer({"bootstrap.servers": topics.bootstrap}, transactional_id=topic) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(topic, b"open")
            producer.flush()
            chosen = options(isolation_level="read_committed", poll_timeout_ms=100)
            with pytest.raises(RequestTimedOut, match="a transaction is open"):
                list(read_task([OffsetRange(topic, 0, 0, 1)], chosen))
            producer.abort_transaction()


class TestGaps:
    def test_compaction_leaves_holes_and_ends_that_are_holes(
        self, broker: Broker, topics: Topics, topic: str, options: Options
    ) -> None:
        topics.create(topic, config={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"})
        for number in range(20):
            topics.producer.send(topic, b"%d" % number, key=b"k%d" % (number % 2))
            topics.producer.flush()
        assert broker.node is not None
        services = broker.node.services
        assert services is not None
        log = partition_of(broker, topic).log

        async def roll() -> None:
            log.roll(int(time.time() * 1000))

        broker.run(roll())
        topics.fill(topic, 1)
        broker.run(Maintenance(services, services.directories, OsFiles()).compact())
        assert rows_of(read_task([OffsetRange(topic, 0, 0, 15)], options("offset"))) == []
        rows = rows_of(read_task([OffsetRange(topic, 0, 0, 21)], options("offset")))
        assert [row["offset"] for row in rows] == [18, 19, 20]


class TestLoss:
    def test_deleted_offsets_fail_the_task_and_are_named(
        self, topics: Topics, topic: str, options: Options
    ) -> None:
        topics.create(topic)
        topics.fill(topic, 10)
        topics.admin.delete_records({TopicPartition(topic, 0): 4}).check()
        with pytest.raises(DataLoss) as caught:
            list(read_task([OffsetRange(topic, 0, 1, 10)], options()))
        assert str(caught.value) == (
            f"offsets 1 to 3 of {topic}-0 are lost: the log starts at offset 4 now; "
            "set option failOnDataLoss=false to go on without them"
        )
        assert (caught.value.start, caught.value.end) == (1, 4)

    def test_or_are_left_out_with_a_warning(
        self, topics: Topics, topic: str, options: Options, caplog: pytest.LogCaptureFixture
    ) -> None:
        topics.create(topic)
        topics.fill(topic, 10)
        topics.admin.delete_records({TopicPartition(topic, 0): 4}).check()
        with caplog.at_level(logging.WARNING, "barnabas.spark"):
            chosen = options("offset", fail_on_data_loss=False)
            rows = rows_of(read_task([OffsetRange(topic, 0, 1, 10)], chosen))
        assert [row["offset"] for row in rows] == list(range(4, 10))
        assert caplog.messages == [
            f"offsets 1 to 3 of {topic}-0 are lost and left out: the log starts at offset 4 now"
        ]


class TestOldFormats:
    @pytest.mark.parametrize("magic", [0, 1])
    def test_message_sets_become_rows_too(self, magic: int) -> None:
        records = [Record(5, 1000, b"k", b"v"), Record(9, 2000, None, None)]
        old = memoryview(bytes(write_message_set(records, magic=magic)))
        new = reading._batches_of(FetchedChunk(0, "t", 0, old, 10))
        reader = ColumnReader(("offset", "key", "value"), start_offset=0)
        assert list(reader.feed(new)) == []
        assert rows_of(iter([reader.flush()])) == [
            {"offset": 5, "key": b"k", "value": b"v"},
            {"offset": 9, "key": None, "value": None},
        ]

    def test_the_time_of_the_log_stays_one(self) -> None:
        old = bytes(write_message_set([Record(0, 1, None, b"v")], magic=1, log_append_time=77))
        new = reading._batches_of(FetchedChunk(0, "t", 0, memoryview(old), 1))
        reader = ColumnReader(("timestampType",), start_offset=0)
        assert list(reader.feed(new)) == []
        assert rows_of(iter([reader.flush()])) == [{"timestampType": 1}]

    def test_batches_of_today_are_not_touched(self) -> None:
        built = build_batch([(1, None, b"v", ())])
        patch_batch(built, 0, 3, 0)
        records = memoryview(bytes(built))
        assert reading._batches_of(FetchedChunk(0, "t", 0, records, 4)) is records


def read_in_a_child(options: SourceOptions, topic: str, out: Any) -> None:
    before = len(reading._fetchers)
    rows = rows_of(read_task([OffsetRange(topic, 0, 0, 3)], options))
    out.put((before, len(reading._fetchers), len(rows)))
    close_fetchers()


class TestFetchers:
    def test_a_fetcher_is_kept_for_its_settings(self, options: Options) -> None:
        client = options().client
        first = fetcher_for(client)
        assert fetcher_for(dict(client)) is first
        assert fetcher_for({**client, "client.id": "other"}) is not first
        first.close()
        assert fetcher_for(client) is not first

    def test_the_one_not_used_for_longest_makes_room(
        self, options: Options, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reading, "_FETCHERS_MAX", 2)
        one, two = (fetcher_for({**options().client, "client.id": name}) for name in ("one", "two"))
        fetcher_for({**options().client, "client.id": "one"})
        fetcher_for({**options().client, "client.id": "three"})
        assert two.is_closed
        assert not one.is_closed

    def test_nobody_there_is_told(self) -> None:
        chosen = SourceOptions({"bootstrap.servers": "127.0.0.1:1", "bootstrap.timeout.ms": "0"}, ALL)
        with pytest.raises(KafkaError, match=r"127\.0\.0\.1:1"):
            list(read_task([OffsetRange("t", 0, 0, 1)], chosen))

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
    def test_a_forked_worker_has_its_own(self, topics: Topics, topic: str, options: Options) -> None:
        topics.create(topic)
        topics.fill(topic, 3)
        assert len(rows_of(read_task([OffsetRange(topic, 0, 0, 3)], options()))) == 3
        fork = multiprocessing.get_context("fork")
        out = fork.Queue()
        child = fork.Process(target=read_in_a_child, args=(options(), topic, out))
        child.start()
        assert out.get(timeout=30) == (1, 2, 3), "the parent's is left alone"
        child.join(30)
        assert child.exitcode == 0
        assert len(rows_of(read_task([OffsetRange(topic, 0, 0, 3)], options()))) == 3
