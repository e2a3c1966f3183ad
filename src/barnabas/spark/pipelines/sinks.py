"""How a result reaches a sink: one streaming query each."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from barnabas.spark.pipelines.build import Run
from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.jobs import QueryJob
from barnabas.spark.pipelines.landing import Landing
from barnabas.spark.pipelines.landing_files import Files, files_for
from barnabas.spark.pipelines.landing_spark import SparkTables
from barnabas.spark.pipelines.sources import METADATA
from barnabas.spark.pipelines.spec import ConsoleSink, FileSink, Sink, TopicSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["start_sink", "with_partitions"]

_RECORD = ("key", "value", "headers", "topic", "partition")


Take = Callable[["DataFrame", int], None]


class Guarded:
    """A function for foreachBatch whose errors stay in this process, and travel to Spark as one line.

    Spark turns a stack of Python into a text of its own, and fails at long ones.
    """

    def __init__(self, take: Take) -> None:
        self._take = take
        self.faults: list[BaseException] = []

    def __call__(self, rows: "DataFrame", batch: int) -> None:
        try:
            self._take(rows, batch)
        except Exception as error:
            self.faults.append(error)
            short = f"{type(error).__name__}: {_first_line(error)}"
        else:
            return
        raise PipelineError(short)


def _first_line(error: Exception) -> str:
    try:
        return str(error).partition("\n")[0][:300]
    except Exception:  # py4j asks the JVM for the text, and the JVM may be gone
        return "the JVM of Spark does not answer"


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
) -> QueryJob:
    """Starts the query that carries `rows` to a sink."""
    guarded: Guarded | None = None
    trigger: dict[str, Any] = dict(run.trigger(interval_ms))
    if isinstance(sink, TopicSink):
        records = record_rows(rows, sink)
        options = {**sink.cluster.options(), "topic": sink.topic, **sink.options}
        if output == "append":
            writer = records.writeStream.format("barnabas").options(**options)
        else:
            # Spark lets sinks written in Python append only; a batch inside of the query may do as it likes.
            guarded = Guarded(_appending(options, run, name, checkpoint))
            writer = records.writeStream.foreachBatch(guarded)
    elif isinstance(sink, FileSink):
        guarded = Guarded(_landing(sink, run, name, checkpoint))
        writer = with_partitions(rows, sink).writeStream.foreachBatch(guarded)
    else:
        guarded = Guarded(_printing(sink, run, pipeline))
        writer = rows.writeStream.foreachBatch(guarded)
    query = (
        writer.queryName(name)
        .outputMode(output)
        .option("checkpointLocation", checkpoint)
        .trigger(**trigger)
        .start()
    )
    return QueryJob(name, query, guarded.faults if guarded is not None else ())


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


def _appending(options: Mapping[str, str], run: Run, name: str, checkpoint: str) -> Take:
    """Batches to a topic; their sinkId, query and number make them exactly once.

    Another run of a pipeline of this name, with its own checkpoint, is another sink.
    """
    sink_id: str | None = None

    def take(rows: "DataFrame", batch: int) -> None:
        nonlocal sink_id
        if sink_id is None:
            sink_id = f"{name}/{_query_id(files_for(run.spark, checkpoint), checkpoint)}"
        writer = rows.write.format("barnabas").options(**{"sinkId": sink_id, **options})
        writer.mode("append").save()

    return take


def _landing(sink: FileSink, run: Run, name: str, checkpoint: str) -> Take:
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


def _printing(sink: ConsoleSink, run: Run, pipeline: str) -> Take:
    from pyspark.sql import functions as F

    def take(rows: "DataFrame", batch: int) -> None:
        if run.write is not None:
            shown = rows.limit(sink.rows).select(F.to_json(F.struct("*")).alias("row"))
            for found in shown.collect():
                run.write(pipeline, json.loads(found["row"]))

    return take
