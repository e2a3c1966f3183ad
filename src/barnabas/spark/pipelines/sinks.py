"""How a result reaches a sink: one streaming query each."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.spark.pipelines.build import Run
from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.landing import Landing
from barnabas.spark.pipelines.landing_files import Files, files_for
from barnabas.spark.pipelines.landing_spark import SparkTables
from barnabas.spark.pipelines.sources import METADATA
from barnabas.spark.pipelines.spec import ConsoleSink, FileSink, Sink, TopicSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["start_sink", "with_partitions"]

_RECORD = ("key", "value", "headers", "topic", "partition")


def start_sink(
    rows: "DataFrame",
    sink: Sink,
    run: Run,
    *,
    name: str,
    pipeline: str,
    output: str,
    checkpoint: str,
    interval_ms: int,
) -> "StreamingQuery":
    """Starts the query that carries `rows` to a sink."""
    trigger: dict[str, Any] = dict(run.trigger(interval_ms))
    if isinstance(sink, TopicSink):
        writer = record_rows(rows, sink).writeStream.format("barnabas").options(**sink.cluster.options())
        writer = writer.option("topic", sink.topic).options(**sink.options)
    elif isinstance(sink, FileSink):
        landed = with_partitions(rows, sink)
        writer = landed.writeStream.foreachBatch(_landing(sink, run, name, checkpoint))
    else:
        writer = rows.writeStream.foreachBatch(_printing(sink, run, pipeline))
    return (
        writer.queryName(name)
        .outputMode(output)
        .option("checkpointLocation", checkpoint)
        .trigger(**trigger)
        .start()
    )


def record_rows(rows: "DataFrame", sink: TopicSink) -> "DataFrame":
    """Rows as the topic's sink takes them: a column `value` as it is, otherwise all columns as JSON."""
    from pyspark.sql import functions as F

    columns = rows.columns
    if "value" in columns and set(columns) <= {*_RECORD, "offset", "timestamp", "timestampType"}:
        kept = [name for name in ("key", "value", "headers") if name in columns and name != "key"]
        key = F.expr(sink.key).cast("string") if sink.key else F.col("key") if "key" in columns else None
        return rows.select(*([] if key is None else [key.alias("key")]), *kept)
    shown = [name for name in columns if name not in METADATA] or columns
    value = F.to_json(F.struct(*(F.col(f"`{name}`") for name in shown))).alias("value")
    return (
        rows.select(value)
        if sink.key is None
        else rows.select(F.expr(sink.key).cast("string").alias("key"), value)
    )


def with_partitions(rows: "DataFrame", sink: FileSink) -> "DataFrame":
    """The rows of a file sink: `date` and `hour` made from the record's time where they are wanted."""
    from pyspark.sql import functions as F

    made = {"date": F.to_date, "hour": F.hour}
    moment = next((name for name in ("_timestamp", "timestamp") if name in rows.columns), None)
    for column in sink.partition_by:
        if column in rows.columns:
            continue
        if column not in made or moment is None:
            raise PipelineError(
                f"partition_by: the rows have no column {column}; they have {', '.join(rows.columns)}"
            )
        rows = rows.withColumn(column, made[column](moment))
    return rows if sink.metadata else rows.drop(*METADATA)


def _landing(sink: FileSink, run: Run, name: str, checkpoint: str) -> "Callable[[DataFrame, int], None]":
    landing: Landing | None = None

    def take(rows: "DataFrame", batch: int) -> None:
        nonlocal landing
        if landing is None:
            query = _query_id(files_for(run.spark, checkpoint), checkpoint)
            landing = make_landing(run.spark, files_for(run.spark, sink.path), sink, name, query)
        landing.take(rows, batch)

    return take


def make_landing(spark: "SparkSession", files: Files, sink: FileSink, writer: str, query: str) -> Landing:
    commit = None
    if sink.table == "delta":
        from barnabas.spark.pipelines.landing_delta import DeltaCommit

        commit = DeltaCommit(sink, f"{writer}/{query}").take
    return Landing(
        files,
        SparkTables(
            spark, sink.partition_by, one_file=sink.file_size is not None and sink.table == "parquet"
        ),
        sink.path,
        writer=writer,
        query=query,
        file_size=sink.file_size if sink.table == "parquet" else None,
        staging=sink.staging,
        counted=sink.table == "delta",
        commit=commit,
    )


def _query_id(files: Files, checkpoint: str) -> str:
    """What Spark calls the query of a checkpoint, for as long as that exists."""
    text = files.read(f"{checkpoint}/metadata")
    if text is None:
        raise PipelineError(f"the checkpoint {checkpoint} is gone while its query runs")
    return str(json.loads(text)["id"])


def _printing(sink: ConsoleSink, run: Run, pipeline: str) -> "Callable[[DataFrame, int], None]":
    from pyspark.sql import functions as F

    def take(rows: "DataFrame", batch: int) -> None:
        if run.write is not None:
            shown = rows.limit(sink.rows).select(F.to_json(F.struct("*")).alias("row"))
            for found in shown.collect():
                run.write(pipeline, json.loads(found["row"]))

    return take
