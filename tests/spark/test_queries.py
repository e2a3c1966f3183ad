"""Whole reads through Spark: found by themselves, exact rows, restarts, losses, errors in one sentence."""

import json
from collections.abc import Callable, Iterator

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import Row

from barnabas.base.types import TopicPartition
from barnabas.client.producer import Producer
from barnabas.spark import as_kafka, one_sentence, register
from barnabas.spark.offsets import StreamOffset
from tests.spark._reads import Reads, numbered

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def alias() -> Iterator[None]:
    as_kafka()
    yield
    as_kafka(undo=True)


class TestBatch:
    def test_every_column_of_every_record(self, reads: Reads) -> None:
        reads.topics.create(reads.topic, 2, config={"retention.ms": "-1"})
        reads.topics.fill(reads.topic, 4, timestamp_ms=1_500, headers=[("h", b"1"), ("h", b"2")])
        rows = reads.batch(includeHeaders="true").orderBy("partition", "offset").collect()
        assert [(row.partition, row.offset, row.key, row.value) for row in rows] == [
            (0, 0, b"k0", b"v0"),
            (0, 1, b"k2", b"v2"),
            (1, 0, b"k1", b"v1"),
            (1, 1, b"k3", b"v3"),
        ]
        assert {row.topic for row in rows} == {reads.topic}
        assert {row.timestampType for row in rows} == {0}
        assert {row.timestamp.timestamp() for row in rows} == {1.5}
        assert rows[0].headers == [Row(key="h", value=b"1"), Row(key="h", value=b"2")]

    def test_columns_and_views_and_the_name_kafka(self, reads: Reads, alias: None) -> None:
        reads.topics.create(reads.topic, 3)
        reads.topics.fill(reads.topic, 30)
        assert reads.batch(columns="offset").agg({"offset": "sum"}).collect()[0][0] == 3 * 45
        options = ", ".join(f"`{name}` '{value}'" for name, value in reads.options(columns="value").items())
        reads.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW records USING barnabas OPTIONS ({options})")
        assert reads.spark.sql("SELECT count(*) FROM records").collect()[0][0] == 30
        register(reads.spark)  # not needed where Spark finds it by itself, and no harm
        assert reads.spark.read.format("kafka").options(**reads.options()).load().count() == 30

    def test_strings_have_the_bytes_of_spark_s_own_cast(self, reads: Reads) -> None:
        reads.topics.create(reads.topic)
        for value in (b"plain", "größer".encode(), b"bro\xffken", None):
            reads.topics.producer.send(reads.topic, value, key=value)
        reads.topics.producer.flush()
        wanted = reads.batch(columns="key,value").selectExpr("cast(key as string)", "cast(value as string)")
        found = reads.batch(columns="key,value", **{"key.format": "string", "value.format": "string"})
        assert found.schema == wanted.schema
        assert found.collect() == wanted.collect()
        assert found.selectExpr("hex(value)").collect() == wanted.selectExpr("hex(value)").collect()

    def test_only_what_is_committed(self, reads: Reads) -> None:
        reads.topics.create(reads.topic)
        settings = {"bootstrap.servers": reads.topics.bootstrap, "transactional.id": reads.topic}
        with Producer(settings) as producer:
            for commit in (True, False, True):
                producer.begin_transaction()
                producer.send(reads.topic, b"yes" if commit else b"no", partition=0)
                producer.flush()  # an abort drops what was not sent yet
                producer.commit_transaction() if commit else producer.abort_transaction()
        committed = reads.batch(**{"kafka.isolation.level": "read_committed"})
        assert [row.value for row in committed.collect()] == [b"yes", b"yes"]
        assert reads.batch().count() == 3


class TestStream:
    def test_every_record_once_over_restarts_new_partitions_and_limits(self, reads: Reads) -> None:
        topics, topic = reads.topics, reads.topic
        topics.create(topic, 2)
        topics.fill(topic, 100)
        reads.stream(query=f"q-{topic}", startingOffsets="earliest", maxOffsetsPerTrigger="60")
        assert (len(reads.batches), reads.values()) == (2, numbered(0, 100))
        topics.admin.create_partitions({topic: 3}).check()
        topics.fill(topic, 50, partition=2, first=100)
        reads.stream(query=f"q-{topic}")
        assert reads.values() == numbered(0, 150)
        reads.stream(query=f"q-{topic}")
        assert len(reads.batches) == 3
        lag = topics.admin.group_lag(f"spark:q-{topic}")
        assert {each.partition: each.committed for each in lag.partitions} == {
            TopicPartition(topic, 0): 50,
            TopicPartition(topic, 1): 50,
            TopicPartition(topic, 2): 50,
        }
        assert lag.messages == 0

    def test_from_the_end_nothing_is_lost_between_two_runs(self, reads: Reads) -> None:
        reads.topics.create(reads.topic)
        reads.topics.fill(reads.topic, 10)
        reads.stream()
        assert reads.batches == {0: []}
        reads.topics.fill(reads.topic, 5, first=10)
        reads.stream()
        assert reads.values() == numbered(10, 15)

    def test_a_stream_that_goes_on_reports_where_it_is(self, reads: Reads) -> None:
        reads.topics.create(reads.topic)
        frame = (
            reads.spark.readStream.format("barnabas")
            .options(**reads.options(startingOffsets="earliest", queryName=reads.topic))
            .load()
        )
        running = frame.writeStream.format("noop").option("checkpointLocation", str(reads.checkpoint)).start()
        try:
            for first in (0, 20):
                reads.topics.fill(reads.topic, 20, first=first)
                running.processAllAvailable()
            assert running.lastProgress is not None
            source = running.lastProgress["sources"][0]
        finally:
            running.stop()
        place = StreamOffset.from_json(json.loads(source["endOffset"]))
        assert place.positions == {TopicPartition(reads.topic, 0): 40}
        assert json.loads(source["latestOffset"]) == {reads.topic: {"0": 40}}

    def test_records_that_are_gone(self, reads: Reads) -> None:
        reads.topics.create(reads.topic)
        reads.topics.fill(reads.topic, 10)
        reads.stream(startingOffsets="earliest")
        reads.topics.fill(reads.topic, 10, first=10)
        reads.topics.admin.delete_records({TopicPartition(reads.topic, 0): 15}).check()
        with pytest.raises(StreamingQueryException) as caught:
            reads.stream()
        assert one_sentence(caught.value) == (
            f"offsets 10 to 14 of {reads.topic}-0 are lost: the log begins at 15; they were deleted by age; "
            "set option failOnDataLoss=false to go on without them"
        )
        reads.stream(failOnDataLoss="false")
        assert reads.values() == sorted([*numbered(0, 10), *numbered(15, 20)])


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (
                {"startingOffset": "latest"},
                "option startingoffset: there is no such option; did you mean start",
            ),
            ({"subscribe": "no-such-topic"}, "option subscribe: topic 'no-such-topic' does not exist"),
            ({"kafka.bootstrap.servers": "127.0.0.1:1"}, "the cluster at 127.0.0.1:1 did not answer: "),
            ({"endingOffsets": "{"}, "option endingOffsets: expected e.g. "),
        ],
    )
    def test_what_is_wrong_with_a_read(self, reads: Reads, options: dict[str, str], said: str) -> None:
        reads.topics.create(reads.topic)
        with pytest.raises(AnalysisException) as caught:
            reads.batch(**{"kafka.bootstrap.timeout.ms": "0", **options}).count()
        assert one_sentence(caught.value).startswith(said)

    def test_a_checkpoint_of_another_source(self, reads: Reads, name: Callable[[str], str]) -> None:
        reads.topics.create(reads.topic)
        rate = reads.spark.readStream.format("rate").load().writeStream.format("noop")
        rate.option("checkpointLocation", str(reads.checkpoint)).trigger(
            availableNow=True
        ).start().awaitTermination()
        with pytest.raises(StreamingQueryException) as caught:
            reads.stream()
        assert "another source" in one_sentence(caught.value)
