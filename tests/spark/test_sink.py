"""The sink under Spark: batch and streaming writes, what is refused, tasks that fail."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.functions import col
from pyspark.sql.types import StringType, StructType

from barnabas.base.types import TopicPartition
from barnabas.client.bulk_produce import BulkProducer
from barnabas.client.consumer import Consumer
from barnabas.client.errors import KafkaError, NoBrokersAvailable
from barnabas.client.partitioners import choose_by_key
from barnabas.spark import sink
from barnabas.spark.errors import OptionError, SparkPartError, one_sentence
from barnabas.spark.exactly_once import TaskName
from barnabas.spark.sink import BatchSink, Written, batch_writer, prepare, stream_writer, task_name
from barnabas.spark.sink_options import AT_LEAST_ONCE, EXACTLY_ONCE, MARKER_TOPIC, SinkOptions, parse_sink
from tests.client._faulty import faulty_broker
from tests.spark._kit import Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql._typing import UserDefinedFunctionLike

VALUE = StructType().add("value", StringType())


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    yield
    sink._prepared.clear()


class TestNames:
    def test_a_task_of_a_stream_goes_by_query_and_batch(self) -> None:
        assert task_name(SinkOptions({}), None, 3, "q", "7") == TaskName("q", "q", 7, 3)
        named = SinkOptions({}, sink_id="s")
        assert task_name(named, None, 3, "q", "7") == TaskName("s", "q", 7, 3)
        assert task_name(named, None, 3, "q", "7").key == "spark-sink:s/3"

    def test_a_task_of_a_job_goes_by_the_job(self) -> None:
        assert task_name(SinkOptions({}), "job", 3, None, None) == TaskName("job", "job", 0, 3)
        assert task_name(SinkOptions({}), "job", 3, "q", "7") == TaskName("job", "job", 0, 3)

    def test_a_job_in_foreach_batch_goes_by_the_batch_if_it_has_a_name_there(self) -> None:
        assert task_name(SinkOptions({}, sink_id="s"), "job", 3, "q", "7") == TaskName("s", "q", 7, 3)
        with pytest.raises(OptionError, match="sinkId: a batch write needs none"):
            task_name(SinkOptions({}, sink_id="s"), "job", 3, None, None)

    def test_a_stream_without_a_batch_cannot_be(self) -> None:
        with pytest.raises(SparkPartError, match="which batch of which query"):
            task_name(SinkOptions({}), None, 3, None, None)


class TestPlanning:
    def test_exactly_once_is_the_choice_where_the_brokers_can(self, bootstrap: str, topics: Topics) -> None:
        options = parse_sink({"kafka.bootstrap.servers": bootstrap})
        assert prepare(options).delivery == EXACTLY_ONCE
        assert MARKER_TOPIC in [topic.name for topic in topics.admin.list_topics()]
        assert prepare(parse_sink({"kafka.bootstrap.servers": bootstrap})).delivery == EXACTLY_ONCE
        lax = parse_sink({"kafka.bootstrap.servers": bootstrap, "delivery": AT_LEAST_ONCE})
        assert prepare(lax).delivery == AT_LEAST_ONCE

    def test_brokers_without_transactions_get_at_least_once_with_a_word(
        self, bootstrap: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(BulkProducer, "offers_transactions", lambda self: False)
        assert prepare(parse_sink({"kafka.bootstrap.servers": bootstrap})).delivery == AT_LEAST_ONCE
        assert "have no transactions: rows are delivered at least once" in caplog.text
        asked = parse_sink({"kafka.bootstrap.servers": bootstrap, "delivery": EXACTLY_ONCE})
        with pytest.raises(OptionError, match="these brokers have no transactions; use at-least-once"):
            prepare(asked)

    def test_what_is_wrong_is_said_before_a_job_starts(
        self, bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        servers = {"kafka.bootstrap.servers": bootstrap}
        with pytest.raises(SparkPartError, match="there is no column topic"):
            stream_writer(servers, VALUE, overwrite=False)
        with pytest.raises(SparkPartError, match="cannot be overwritten; use the mode append"):
            batch_writer({**servers, "topic": topic}, VALUE, overwrite=True)
        monkeypatch.setattr(sink, "_PLAN_TIMEOUT_MS", "200")
        with pytest.raises(NoBrokersAvailable, match=r"127\.0\.0\.1:1"):
            stream_writer({"kafka.bootstrap.servers": "127.0.0.1:1", "topic": topic}, VALUE, overwrite=False)
        with faulty_broker({"auto.create.topics.enable": "false"}) as broker:
            elsewhere = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "missing"}
            with pytest.raises(KafkaError, match="missing"):
                stream_writer(elsewhere, VALUE, overwrite=False)

    def test_a_job_that_is_done_removes_its_markers(self, bootstrap: str, topics: Topics) -> None:
        writer = BatchSink(prepare(parse_sink({"kafka.bootstrap.servers": bootstrap})), "job-7")
        key = TopicPartition(MARKER_TOPIC, 0)
        group = TaskName("job-7", "job-7", 0, 5).key
        topics.admin.alter_group_offsets(group, {key: 1})
        writer.abort([Written(5, 1, False), None])
        assert group in [found.id for found in topics.admin.list_groups()]
        writer.commit([Written(5, 1, False)])
        assert group not in [found.id for found in topics.admin.list_groups()]


@pytest.fixture
def options(bootstrap: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bootstrap}


def records_of(bootstrap: str, topic: str, partitions: int) -> list[Any]:
    settings = {"bootstrap.servers": bootstrap, "isolation.level": "read_committed"}
    with Consumer(settings) as consumer:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        ends = consumer.end_offsets(*places)
        found: list[Any] = []
        while any(consumer.position(place) < ends[place] for place in places):
            found += consumer.poll(0.2)
    return found


def failing_once() -> "UserDefinedFunctionLike":
    """Gives its text back, but fails the first attempt of every task behind a hundred rows."""
    from pyspark.sql.functions import udf

    def check(text: str) -> str:
        from pyspark import TaskContext

        context = TaskContext.get()
        seen[0] += 1
        if seen[0] > 100 and context is not None and context.attemptNumber() == 0:
            raise RuntimeError("the first attempt fails")
        return text

    seen = [0]
    return udf(check, "string", useArrow=False)


def copy(
    spark: "SparkSession", options: dict[str, str], source: str, target: str, checkpoint: Path, **more: str
) -> None:
    rows = (
        spark.readStream.format("barnabas")
        .options(**options, subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger="400")
        .load()
        .select("key", failing_once()(col("value").cast("string")).alias("value"))
    )
    writer = rows.writeStream.format("barnabas").options(**options, topic=target, **more)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()


@pytest.mark.slow
class TestUnderSpark:
    def test_a_batch_write_has_every_column_and_no_failed_attempt(
        self, spark: "SparkSession", bootstrap: str, options: dict[str, str], topics: Topics, topic: str
    ) -> None:
        topics.create(topic, 3)
        rows: DataFrame = spark.range(0, 600, 1, 3).selectExpr(
            "cast(id as string) key",
            "encode(concat('v', id), 'utf-8') value",
            "array(struct('h' key, encode(cast(id as string), 'utf-8') value)) headers",
            "if(id = 5, 2, null) partition",
            f"'{topic}' topic",
            "id unused",
        )
        rows = rows.withColumn("key", failing_once()("key"))
        rows.write.format("barnabas").options(**options).mode("append").save()
        found = records_of(bootstrap, topic, 3)
        assert sorted(int(record.key) for record in found) == list(range(600))
        for record in found:
            assert record.value == b"v" + record.key
            assert record.headers == (("h", record.key),)
            assert record.partition == (2 if record.key == b"5" else choose_by_key(record.key, 3))

    def test_a_stream_writes_each_row_once_through_failures_and_a_lost_commit(
        self,
        spark: "SparkSession",
        options: dict[str, str],
        topics: Topics,
        name: Callable[[str], str],
        tmp_path: Path,
    ) -> None:
        source, target = name("source"), name("target")
        topics.create(source, 3)
        topics.create(target, 2)
        topics.fill(source, 1000)
        copy(spark, options, source, target, tmp_path)
        expected = sorted(b"v%d" % number for number in range(1000))
        assert sorted(topics.values(target, isolation="read_committed")) == expected
        # As if the driver had died between the last task and the commit log: the batch is run once more.
        last = max(int(path.name) for path in (tmp_path / "commits").iterdir() if path.name.isdigit())
        for path in (tmp_path / "commits").glob(f"*{last}*"):
            path.unlink()
        copy(spark, options, source, target, tmp_path)
        assert sorted(topics.values(target, isolation="read_committed")) == expected
        topics.fill(source, 50, first=1000)
        copy(spark, options, source, target, tmp_path)
        assert len(topics.values(target, isolation="read_committed")) == 1050

    def test_at_least_once_repeats_a_lost_batch_and_numbers_what_it_sends(
        self,
        spark: "SparkSession",
        options: dict[str, str],
        topics: Topics,
        name: Callable[[str], str],
        tmp_path: Path,
    ) -> None:
        source, target = name("source"), name("target")
        topics.create(source, 2)
        topics.create(target)
        topics.fill(source, 300)
        copy(spark, options, source, target, tmp_path, delivery="at-least-once")
        for path in (tmp_path / "commits").glob("*0*"):
            path.unlink()
        copy(spark, options, source, target, tmp_path, delivery="at-least-once")
        found = topics.values(target)
        assert set(found) == {b"v%d" % number for number in range(300)}
        assert len(found) >= 600, "no marker told the second run what was there"
        (producers,) = topics.admin.describe_producers([TopicPartition(target, 0)]).check().values()
        assert sum(each.last_sequence + 1 for each in producers) == len(found)

    def test_what_is_refused_reaches_the_user_as_one_sentence(
        self, spark: "SparkSession", options: dict[str, str], topics: Topics, topic: str
    ) -> None:
        topics.create(topic)
        frame = spark.sql("select 'a' value, cast(null as string) topic")
        with pytest.raises(Exception, match="null") as caught:
            frame.write.format("barnabas").options(**options).mode("append").save()
        assert one_sentence(caught.value).startswith("a row has null in the column topic")
        with pytest.raises(Exception, match="delivry") as caught:
            frame.write.format("barnabas").options(**options, delivry="x").mode("append").save()
        assert "did you mean delivery?" in one_sentence(caught.value)
