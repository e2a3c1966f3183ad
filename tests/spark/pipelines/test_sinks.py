"""Rows as the sinks take them, and errors of batches that stay whole."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.sinks import Guarded, record_rows, with_partitions
from barnabas.spark.pipelines.spec import Cluster, FileSink, TopicSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = TopicSink("out", Cluster("b:1"))


class TestGuarded:
    def test_an_error_is_kept_whole_and_travels_as_one_line(self) -> None:
        cause = ValueError("first\nsecond")

        def fail(rows: object, batch: int) -> None:
            raise cause

        guarded = Guarded(fail)
        rows: Any = None
        with pytest.raises(PipelineError, match=r"^ValueError: first$") as raised:
            guarded(rows, 0)
        assert guarded.faults == [cause]
        assert raised.value.__context__ is None

    def test_a_batch_that_works_leaves_nothing(self) -> None:
        seen: list[int] = []
        guarded = Guarded(lambda rows, batch: seen.append(batch))
        rows: Any = None
        guarded(rows, 7)
        assert (seen, guarded.faults) == ([7], [])


@pytest.mark.slow
@pytest.mark.timeout(300)
class TestRows:
    def test_a_row_becomes_json_without_the_columns_of_the_record(self, spark: "SparkSession") -> None:
        rows = spark.createDataFrame([(1, "x", 5)], "id INT, `a b` STRING, _offset BIGINT")
        found = record_rows(rows, TOPIC).first()
        assert found is not None
        assert found.asDict() == {"value": '{"id":1,"a b":"x"}'}
        keyed = record_rows(rows, TopicSink("out", Cluster("b:1"), "id + 1")).first()
        assert keyed is not None
        assert keyed["key"] == "2"

    def test_records_pass_as_they_are(self, spark: "SparkSession") -> None:
        rows = spark.createDataFrame([("k", "v", 3)], "key STRING, value STRING, offset BIGINT")
        found = record_rows(rows, TOPIC).first()
        assert found is not None
        assert found.asDict() == {"key": "k", "value": "v"}

    def test_date_and_hour_come_from_the_time_of_the_record(self, spark: "SparkSession") -> None:
        at = datetime(2026, 5, 1, 23, 30, tzinfo=UTC)
        rows = spark.createDataFrame([(1, at)], "id INT, _timestamp TIMESTAMP")
        sink = FileSink("/x", partition_by=("date", "hour", "id"), metadata=False)
        found = with_partitions(rows, sink).first()
        assert found is not None
        assert found.asDict() == {"id": 1, "date": at.date(), "hour": 23}
        with pytest.raises(
            PipelineError, match=r"^partition_by: the rows have no column region; they have id"
        ):
            with_partitions(rows, FileSink("/x", partition_by=("region",)))
