"""What a writer may be told, and what DataFrames it takes; no session, no cluster."""

import pickle
from dataclasses import replace

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from barnabas.client.producer_batch import Compression
from barnabas.records.codecs import Codec
from barnabas.spark.errors import OptionError
from barnabas.spark.sink_options import (
    AT_LEAST_ONCE,
    EXACTLY_ONCE,
    MARKER_TOPIC,
    ColumnError,
    SinkOptions,
    check_columns,
    parse_sink,
)

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


TYPES: dict[str, DataType] = {
    "binary": BinaryType(),
    "headers": ArrayType(StructType().add("key", StringType()).add("value", BinaryType())),
    "int": IntegerType(),
    "long": LongType(),
    "map": MapType(StringType(), BinaryType()),
    "string": StringType(),
    "timestamp": TimestampType(),
}


def schema(columns: str) -> StructType:
    made = StructType()
    for column in columns.split(", "):
        name, kind = column.split(" ")
        made.add(name, TYPES[kind])
    return made


class TestOptions:
    def test_the_defaults(self) -> None:
        options = parse_sink(SERVERS)
        assert options.client == {
            "bootstrap.servers": "localhost:9092",
            "bootstrap.timeout.ms": "60000",
            "transaction.timeout.ms": "600000",
        }
        assert (options.topic, options.delivery, options.sink_id) == (None, None, None)
        assert (options.marker_topic, options.compression) == (MARKER_TOPIC, Compression())
        assert not options.rewrites_after_rollback
        assert not options.takes_timestamps

    def test_names_come_in_any_case(self) -> None:
        options = parse_sink(
            {
                "KAFKA.bootstrap.servers": "a:1,b:2",
                "topic": "orders",
                "DELIVERY": "Exactly-Once",
                "sinkid": "s",
                "markertopic": "marks",
                "checkpointrollback": "rewrite",
                "includetimestamp": "true",
                "kafka.compression.type": "lz4",
                "kafka.batch.size": "70000",
                "kafka.partitioner.ignore.keys": "true",
            }
        )
        assert (options.topic, options.delivery, options.sink_id) == ("orders", EXACTLY_ONCE, "s")
        assert (options.marker_topic, options.batch_bytes) == ("marks", 70_000)
        assert options.compression.codec is Codec.LZ4
        assert options.rewrites_after_rollback
        assert options.takes_timestamps
        assert options.ignores_keys

    def test_they_travel_and_print_without_secrets(self) -> None:
        options = parse_sink({**SERVERS, "topic": "t"})
        assert pickle.loads(pickle.dumps(options)) == options
        assert "localhost" not in repr(options)

    def test_options_of_the_source_and_of_spark_change_nothing(self) -> None:
        shared = {
            **SERVERS,
            "subscribe": "in",
            "startingOffsets": "earliest",
            "includeHeaders": "true",
            "kafka.group.id": "g",
            "kafka.isolation.level": "read_committed",
            "checkpointLocation": "/c",
            "path": "/p",
            "asyncProgressTrackingEnabled": "false",
            "kafka.partitioner.class": "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
        }
        assert parse_sink(shared) == replace(parse_sink(SERVERS), checkpoint="/c")

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers: it must be given"),
            ({"topik": "t"}, "topik: there is no such option; did you mean topic?"),
            ({"topic": "a b"}, "option topic: "),
            ({"markerTopic": ".."}, "option markerTopic: "),
            ({"delivery": "twice"}, "'twice' is none of exactly-once, at-least-once"),
            ({"sinkId": " "}, "sinkId: it must not be empty"),
            ({"checkpointRollback": "no"}, "'no' is none of fail, rewrite"),
            ({"includeTimestamp": "1"}, "'1' is neither true nor false"),
            ({"kafka.key.serializer": "x"}, "kafka.key.serializer: this setting is not supported"),
            ({"kafka.value.serializer": "x"}, "kafka.value.serializer: this setting is not supported"),
            ({"kafka.transactional.id": "x"}, "name the sink by the option sinkId"),
            ({"kafka.compression.type": "rar"}, "option kafka.compression.type: "),
            ({"kafka.lingr.ms": "5"}, "option kafka.lingr.ms: "),
            ({"kafka.partitioner.class": "RoundRobinPartitioner"}, "compute the column partition"),
            ({"kafka.acks": "1", "delivery": "exactly-once"}, "delivery exactly-once needs it"),
            ({"asyncProgressTrackingEnabled": "true"}, "set option delivery=at-least-once"),
        ],
    )
    def test_a_wrong_one_is_named_with_the_way_out(self, given: dict[str, str], says: str) -> None:
        with pytest.raises(OptionError) as caught:
            parse_sink({**SERVERS, **given})
        assert says in str(caught.value)

    def test_at_least_once_allows_what_exactly_once_cannot_have(self) -> None:
        lax = {"delivery": AT_LEAST_ONCE, "kafka.acks": "1", "asyncProgressTrackingEnabled": "true"}
        assert parse_sink({**SERVERS, **lax}).delivery == AT_LEAST_ONCE

    @pytest.mark.parametrize("lax", [{"kafka.acks": "1"}, {"kafka.enable.idempotence": "false"}])
    def test_a_producer_that_asks_for_less_gets_at_least_once(self, lax: dict[str, str]) -> None:
        assert parse_sink({**SERVERS, **lax}).delivery == AT_LEAST_ONCE


class TestColumns:
    def test_what_is_there_is_written_and_the_rest_left_alone(self) -> None:
        every = schema(
            "partition int, id long, value binary, topic string, key string, "
            "headers headers, timestamp timestamp"
        )
        named = SinkOptions({}, topic="t")
        assert check_columns(every, SinkOptions({})) == ("topic", "key", "value", "headers", "partition")
        assert check_columns(every, named) == ("key", "value", "headers", "partition")
        timed = SinkOptions({}, topic="t", takes_timestamps=True)
        assert check_columns(every, timed)[-1] == "timestamp"
        assert check_columns(schema("value string"), named) == ("value",)

    @pytest.mark.parametrize(
        ("ddl", "says"),
        [
            ("key string", "the required column value is missing; there are key"),
            ("value string", "there is no column topic; add one, or name the topic by the option topic"),
            ("value int, topic string", "column value must be a string or binary, and is int"),
            ("value string, topic int", "column topic must be a string, and is int"),
            ("value string, topic string, key int", "column key must be a string or binary, and is int"),
            ("value string, topic string, partition long", "column partition must be an int, and is bigint"),
            (
                "value string, topic string, headers map",
                "column headers must be array<struct<key:string,value:binary>>, and is map<string,binary>",
            ),
        ],
    )
    def test_a_wrong_one_is_named(self, ddl: str, says: str) -> None:
        with pytest.raises(ColumnError) as caught:
            check_columns(schema(ddl), SinkOptions({}))
        assert str(caught.value) == says

    def test_timestamps_that_are_asked_for_must_be_there(self) -> None:
        with pytest.raises(ColumnError, match="no column timestamp, which the option includeTimestamp"):
            check_columns(schema("value string"), SinkOptions({}, topic="t", takes_timestamps=True))
