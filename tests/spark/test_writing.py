"""Rows into batches: where they go, in which order, and what is counted.  No session."""

import random
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from barnabas.base.clock import ManualClock
from barnabas.client.bulk_produce import BulkProducer
from barnabas.client.errors import UnknownTopic
from barnabas.client.partitioners import choose_by_key
from barnabas.client.producer_batch import Compression
from barnabas.records.batch import RecordBatch
from barnabas.records.codecs import Codec
from barnabas.records.record import Record
from barnabas.spark import writing
from barnabas.spark.sink_options import ColumnError, SinkOptions, parse_sink
from barnabas.spark.writing import RowWriter, Tally, lend, write_at_least_once
from tests.spark._kit import Topics

LIMIT = 2**31 - 1
NOW = 1_760_000_000_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    yield
    writing.close_kept()


class Sent:
    """Takes batches, and gives their records back."""

    def __init__(self, **partitions: int) -> None:
        self.partitions = partitions
        self.batches: list[tuple[str, int, bytearray]] = []

    def send(self, topic: str, partition: int, batch: bytearray) -> None:
        self.batches.append((topic, partition, batch))

    def partitions_for(self, topic: str) -> int:
        if topic not in self.partitions:
            raise UnknownTopic(f"no topic {topic}")
        return self.partitions[topic]

    def records(self, topic: str, partition: int) -> list[Record]:
        return [
            record
            for name, place, data in self.batches
            if (name, place) == (topic, partition)
            for record in RecordBatch(memoryview(data)).records(limit=LIMIT)
        ]

    def values(self, topic: str, partition: int) -> list[bytes | None]:
        return [record.value for record in self.records(topic, partition)]


def write(sent: Sent, *batches: pa.RecordBatch, **options: object) -> RowWriter:
    chosen = SinkOptions({}, **options)  # type: ignore[arg-type]  # a test names the fields it wants
    writer = RowWriter(sent, chosen, tally=Tally(chosen), clock=ManualClock(now_ms=NOW))
    for batch in batches:
        writer.write(batch)
    writer.finish()
    return writer


class TestPlaces:
    def test_rows_go_by_key_in_their_order(self) -> None:
        sent = Sent(t=5)
        keys = [b"k%d" % (n % 9) for n in range(200)]
        batch = pa.record_batch({"key": keys, "value": [b"%d" % n for n in range(200)]})
        writer = write(sent, batch.slice(0, 120), batch.slice(120), topic="t")
        assert writer.rows == 200
        for partition in range(5):
            expected = [b"%d" % n for n in range(200) if choose_by_key(keys[n], 5) == partition]
            assert sent.values("t", partition) == expected

    def test_a_column_of_text_is_hashed_as_its_bytes(self) -> None:
        sent = Sent(t=7)
        write(sent, pa.record_batch({"key": ["é鍵"], "value": ["v"]}), topic="t")
        assert sent.values("t", choose_by_key("é鍵".encode(), 7)) == [b"v"]

    def test_the_column_partition_comes_first_where_it_is_not_null(self) -> None:
        sent = Sent(t=4)
        keyed = choose_by_key(b"k", 4)
        other = (keyed + 1) % 4
        columns = {
            "key": [b"k", b"k"],
            "value": [b"named", b"hashed"],
            "partition": pa.array([other, None], pa.int32()),
        }
        write(sent, pa.record_batch(columns), topic="t")
        assert sent.values("t", other) == [b"named"]
        assert sent.values("t", keyed) == [b"hashed"]

    def test_without_key_and_partition_a_batch_each_goes_round(self) -> None:
        sent = Sent(t=3)
        write(
            sent,
            pa.record_batch({"value": [b"%04d" % n * 100 for n in range(60)]}),
            topic="t",
            batch_bytes=2048,
        )
        places = [partition for _, partition, _ in sent.batches]
        assert sorted(set(places)) == [0, 1, 2]
        assert all(len(data) <= 2048 for _, _, data in sent.batches)
        assert sum(len(sent.values("t", partition)) for partition in range(3)) == 60

    def test_keys_that_are_ignored_stay_in_the_records(self) -> None:
        sent = Sent(t=8)
        keys = [b"%d" % n for n in range(50)]
        write(sent, pa.record_batch({"key": keys, "value": keys}), topic="t", ignores_keys=True)
        assert len({partition for _, partition, _ in sent.batches}) == 1
        assert [record.key for record in sent.records("t", sent.batches[0][1])] == keys

    def test_the_column_topic_says_where_unless_the_option_does(self) -> None:
        columns = {"topic": ["a", "b", "a"], "value": [b"1", b"2", b"3"]}
        sent = Sent(a=1, b=1, c=1)
        write(sent, pa.record_batch(columns))
        assert (sent.values("a", 0), sent.values("b", 0)) == ([b"1", b"3"], [b"2"])
        sent = Sent(a=1, b=1, c=1)
        write(sent, pa.record_batch(columns), topic="c")
        assert sent.values("c", 0) == [b"1", b"2", b"3"]

    def test_null_topics_and_partitions_that_are_not_there_are_refused(self) -> None:
        with pytest.raises(ColumnError, match="null in the column topic; use the option topic"):
            write(Sent(a=1), pa.record_batch({"topic": ["a", None], "value": [b"1", b"2"]}))
        columns = {"value": [b"1"], "partition": pa.array([3], pa.int32())}
        with pytest.raises(ColumnError, match="topic t: row 0: there is no partition 3, only 0 to 2"):
            write(Sent(t=3), pa.record_batch(columns), topic="t")
        with pytest.raises(UnknownTopic):
            write(Sent(), pa.record_batch({"value": [b"1"]}), topic="t")


class TestRecords:
    def test_every_field_arrives(self) -> None:
        columns = {
            "key": pa.array([b"k", None], pa.binary()),
            "value": pa.array(["text", None], pa.string()),
            "headers": pa.array([[{"key": "h", "value": b"1"}, {"key": "n", "value": None}], None], HEADERS),
            "timestamp": pa.array([5_000, None], pa.timestamp("us", tz="UTC")),
            "other": [1, 2],
        }
        sent = Sent(t=1)
        write(sent, pa.record_batch(columns), topic="t")
        found = [(r.timestamp, r.key, r.value, r.headers) for r in sent.records("t", 0)]
        full = (NOW, b"k", b"text", (("h", b"1"), ("n", None)))
        assert sorted(found, key=lambda each: each[1] is None) == [full, (NOW, None, None, ())]

    def test_times_are_the_columns_if_that_is_asked_for(self) -> None:
        columns = {"value": ["a", "b"], "timestamp": pa.array([5_000, None], pa.timestamp("us", tz="UTC"))}
        sent = Sent(t=1)
        write(sent, pa.record_batch(columns), topic="t", takes_timestamps=True)
        assert [record.timestamp for record in sent.records("t", 0)] == [5, NOW]

    def test_batches_are_compressed_as_asked(self) -> None:
        sent = Sent(t=1)
        compression = Compression(Codec.ZSTD, 5)
        write(sent, pa.record_batch({"value": ["x" * 1000] * 9}), topic="t", compression=compression)
        assert RecordBatch(memoryview(sent.batches[0][2])).codec is Codec.ZSTD
        assert sent.values("t", 0) == [b"x" * 1000] * 9

    def test_what_is_held_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(writing, "HELD_BYTES_MAX", 4000)
        sent = Sent(t=50)
        writer = RowWriter(sent, SinkOptions({}, topic="t"))
        for _ in range(3):
            writer.write(pa.record_batch({"key": [b"%d" % n for n in range(50)], "value": ["x" * 100] * 50}))
            assert sum(len(sent.values("t", partition)) for partition in range(50)) == writer.rows


class TestTally:
    def test_the_same_rows_cut_and_mixed_otherwise_come_to_the_same(self) -> None:
        rows = [(f"t{n % 3}", b"%d" % n, b"v%d" % n) for n in range(100)]

        def tally(rows: list[tuple[str, bytes, bytes]], size: int) -> tuple[int, int]:
            counted = Tally(SinkOptions({}))
            for first in range(0, len(rows), size):
                topics, keys, values = zip(*rows[first : first + size], strict=True)
                counted.add(pa.record_batch({"topic": topics, "key": keys, "value": values}))
            return counted.rows, counted.total

        mixed = random.Random(3).sample(rows, len(rows))
        assert tally(rows, 100) == tally(mixed, 7)
        assert tally(rows, 100) != tally([*rows[1:], ("t1", b"0", b"v0")], 100)
        assert tally(rows, 100) != tally([*rows[1:], ("t0", b"0", b"v1")], 100)

    def test_a_writer_counts_what_a_reader_of_the_rows_counts(self) -> None:
        options = SinkOptions({}, topic="t")
        batch = pa.record_batch({"key": [b"%d" % n for n in range(90)], "value": ["v"] * 90})
        counted, written = Tally(options), Tally(options)
        counted.add(batch)
        RowWriter(Sent(t=4), options, tally=written).write(batch)
        assert (counted.rows, counted.total) == (written.rows, written.total)


class TestLending:
    def test_a_producer_waits_for_the_next_task_unless_it_failed(self, bootstrap: str) -> None:
        client = {"bootstrap.servers": bootstrap}
        with lend(client) as first:
            pass
        with lend(client) as again, lend(client) as other:
            assert again is first
            assert other is not first
        with pytest.raises(RuntimeError), lend(client) as failed:
            raise RuntimeError
        with lend(client) as next_one:
            assert next_one is not failed

    def test_one_that_cannot_take_its_id_over_any_more_is_made_anew(
        self, bootstrap: str, name: Callable[[str], str]
    ) -> None:
        client, txn = {"bootstrap.servers": bootstrap}, name("txn")
        with lend(client, txn) as first:
            first.begin()
            first.commit()
        with lend(client, txn) as again:
            assert again is first
        again.close()
        with lend(client, txn) as anew:
            anew.begin()
            anew.commit()
            assert anew is not first

    def test_no_more_are_kept_than_allowed(self, bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(writing, "KEPT_MAX", 1)
        client = {"bootstrap.servers": bootstrap}
        lent: list[BulkProducer] = []
        for number in range(2):
            with lend({**client, "client.id": str(number)}) as producer:
                lent.append(producer)
        with lend({**client, "client.id": "1"}) as kept:
            assert kept is lent[1]
        with lend({**client, "client.id": "0"}) as made_anew:
            assert made_anew is not lent[0]


def test_rows_are_acknowledged_when_it_returns(bootstrap: str, topics: Topics, topic: str) -> None:
    topics.create(topic, 3)
    options = parse_sink({"kafka.bootstrap.servers": bootstrap, "topic": topic})
    rows = [pa.record_batch({"key": [str(n)], "value": [f"v{n}"]}) for n in range(300)]
    assert write_at_least_once(rows, options) == 300
    assert sorted(topics.values(topic)) == sorted(f"v{n}".encode() for n in range(300))
