"""Schema and batch planning, on a real broker but without a session."""

import json
import pickle
from collections.abc import Iterable, Sequence
from contextlib import closing

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from barnabas.base.types import TopicPartition
from barnabas.spark import source
from barnabas.spark.errors import DataLoss, OptionError, SparkPartError
from barnabas.spark.lookup import Lookup
from barnabas.spark.options import parse_source
from barnabas.spark.planning import ReadTask
from barnabas.spark.stream import StreamReader
from tests.spark._kit import Topics


def given(topics: Topics, topic: str, **options: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic, **options}


def reader(topics: Topics, topic: str, **options: str) -> source.BatchReader:
    chosen = given(topics, topic, **options)
    return source.batch_reader(chosen, source.schema(chosen))


def ranges(partitions: Sequence[InputPartition]) -> list[tuple[int, int, int]]:
    found = sorted(each for task in partitions if isinstance(task, ReadTask) for each in task.ranges)
    return [each[1:] for each in found]


class TestSchema:
    def test_the_columns_are_those_of_sparks_own_source(self, topics: Topics) -> None:
        found = source.schema(given(topics, "t", includeHeaders="true"))
        assert found.simpleString() == (
            "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
            "timestampType:int,headers:array<struct<key:string,value:binary>>>"
        )

    def test_fewer_when_asked_for(self, topics: Topics) -> None:
        assert source.schema(given(topics, "t", columns="value,offset")).names == ["value", "offset"]

    def test_strings_when_asked_for(self, topics: Topics) -> None:
        found = source.schema(
            given(
                topics, "t", columns="key,value,topic", **{"value.format": "string", "key.format": "BINARY"}
            )
        )
        assert found.simpleString() == "struct<key:binary,value:string,topic:string>"
        with pytest.raises(OptionError, match=r"^option value\.format: 'json' is none of binary, string$"):
            source.schema(given(topics, "t", **{"value.format": "json"}))

    def test_a_schema_of_the_users_own_is_refused(self, topics: Topics) -> None:
        for make in (source.batch_reader, source.stream_reader):
            with pytest.raises(OptionError, match="option schema: the columns of a topic are fixed"):
                make(given(topics, "t"), StructType().add("x", "string"))

    def test_a_wrong_option_is_found_before_anything_runs(self, topics: Topics) -> None:
        with pytest.raises(OptionError, match="did you mean startingOffsets"):
            source.schema(given(topics, "t", startingOffset="latest"))

    def test_a_stream_has_a_reader_of_its_own_kind(self, topics: Topics) -> None:
        chosen = given(topics, "t")
        assert isinstance(source.stream_reader(chosen, source.schema(chosen)), StreamReader)


class TestPlanning:
    def test_everything_there_is(self, topics: Topics, topic: str) -> None:
        topics.create(topic, 3)
        topics.fill(topic, 10, partition=0)
        topics.fill(topic, 4, partition=2)
        found = reader(topics, topic).partitions()
        assert ranges(found) == [(0, 0, 10), (2, 0, 4)]
        assert len(found) == 1

    def test_between_two_bounds(self, topics: Topics, topic: str) -> None:
        topics.create(topic, 2)
        topics.fill(topic, 20)
        found = reader(
            topics,
            topic,
            startingOffsets=json.dumps({topic: {"0": 3, "1": -2}}),
            endingOffsets=json.dumps({topic: {"0": -1, "1": 6}}),
        ).partitions()
        assert ranges(found) == [(0, 3, 10), (1, 0, 6)]

    def test_split_as_asked(self, topics: Topics, topic: str) -> None:
        topics.create(topic)
        topics.fill(topic, 100)
        assert len(reader(topics, topic, minPartitions="4").partitions()) == 4
        assert len(reader(topics, topic, maxRecordsPerPartition="10").partitions()) == 10

    def test_a_start_past_the_end_is_refused(self, topics: Topics, topic: str) -> None:
        topics.create(topic)
        topics.fill(topic, 5)
        with pytest.raises(
            SparkPartError, match=f"the read of {topic}-0 would start at 9, past its end at 5"
        ):
            reader(topics, topic, startingOffsets=json.dumps({topic: {"0": 9}})).partitions()

    def test_offsets_that_are_gone_or_never_were(self, topics: Topics, topic: str) -> None:
        topics.create(topic)
        topics.fill(topic, 10)
        topics.admin.delete_records({TopicPartition(topic, 0): 4}).check()
        start = {"startingOffsets": json.dumps({topic: {"0": 1}})}
        end = {"endingOffsets": json.dumps({topic: {"0": 99}})}
        with pytest.raises(DataLoss, match=f"offsets 1 to 3 of {topic}-0 are lost: the log begins at 4"):
            reader(topics, topic, **start).partitions()
        with pytest.raises(DataLoss, match=f"offsets 10 to 98 of {topic}-0 are lost: the log ends at 10"):
            reader(topics, topic, **end).partitions()
        assert ranges(reader(topics, topic, **start, **end, failOnDataLoss="false").partitions()) == [
            (0, 4, 10)
        ]

    def test_records_that_come_while_it_is_planned_are_not_taken_for_lost(
        self, topics: Topics, topic: str
    ) -> None:
        class Busy(Lookup):
            """A partition that gets a record before every question for its end."""

            def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
                topics.fill(topic, 1)
                return super().latest(partitions)

        topics.create(topic)
        options = parse_source(given(topics, topic), stream=False)
        with closing(Busy(options)) as lookup:
            (found,) = source.batch_ranges(options, lookup)
        assert (found.start, found.end) == (0, 1)

    def test_a_topic_that_is_deleted_meanwhile_is_named(self, topics: Topics, topic: str) -> None:
        class Vanishing(Lookup):
            """A topic that is gone when its ends are asked for."""

            def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
                return {}

        topics.create(topic)
        topics.fill(topic, 5)
        start = {"startingOffsets": json.dumps({topic: {"0": 2}})}
        for fail in ("true", "false"):
            options = parse_source(given(topics, topic, failOnDataLoss=fail, **start), stream=False)
            with closing(Vanishing(options)) as lookup:
                if fail == "false":
                    assert source.batch_ranges(options, lookup) == []
                    continue
                with pytest.raises(
                    DataLoss, match=f"offsets from 2 on of {topic}-0 are lost: the partition is"
                ):
                    source.batch_ranges(options, lookup)

    def test_a_reader_travels(self, topics: Topics, topic: str) -> None:
        topics.create(topic)
        topics.fill(topic, 3)
        copy = pickle.loads(pickle.dumps(reader(topics, topic, columns="offset")))
        (task,) = copy.partitions()
        assert [row for batch in copy.read(task) for row in batch.column("offset").to_pylist()] == [0, 1, 2]

    def test_a_read_of_nothing_has_no_rows(self, topics: Topics, topic: str) -> None:
        topics.create(topic)
        empty = reader(topics, topic)
        assert empty.partitions() == []
        assert list(empty.read(InputPartition(None))) == []
