"""The writers that Spark calls: on the driver to plan and to commit, in executors to write.

Streaming: exactly once where the brokers have transactions, else at least once; the marker of each task
decides (see `exactly_once`), so `commit` and `abort` decide nothing: Spark calls `abort` also for batches
whose tasks are written, and `commit` for none after a crash.
Batch: the same, under an id that the job makes for itself; its markers are removed when the job is done.
Both: `abort` ends the transactions of tasks that were killed; no later attempt might, and readers wait.
"""

import logging
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from barnabas.client.admin import Admin
from barnabas.client.bulk_produce import BulkProducer
from barnabas.client.config import ADMIN, settings_for
from barnabas.client.errors import KafkaError, TopicExists
from barnabas.spark.errors import OptionError, SparkPartError
from barnabas.spark.exactly_once import TaskName, write_exactly_once
from barnabas.spark.left_open import end_left_open, query_of
from barnabas.spark.sink_options import AT_LEAST_ONCE, EXACTLY_ONCE, SinkOptions, check_columns, parse_sink
from barnabas.spark.versions import DataSourceStreamArrowWriter
from barnabas.spark.workers import settle
from barnabas.spark.writing import write_at_least_once

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

__all__ = ["BatchSink", "StreamSink", "Written", "batch_writer", "stream_writer"]

_log: Final = logging.getLogger("barnabas.spark.sink")
_BATCH_ID: Final = "streaming.sql.batchId"
_QUERY_ID: Final = "sql.streaming.queryId"

_PLAN_TIMEOUT_MS: Final = "10000"


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """What a task tells the driver."""

    partition: int
    rows: int
    was_there: bool
    """Whether an earlier attempt had written the rows."""


class StreamSink(DataSourceStreamArrowWriter):
    """Writes the batches of one query."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: "Iterator[RecordBatch]") -> Written:
        return _write(iterator, self._options, job=None)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        _log.debug("batch %d: %s", batchId, _summary(messages))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        _log.debug("batch %d is not complete: %s; it will be repeated", batchId, _summary(messages))
        _end_left_open(self._options, self._options.sink_id or query_of(self._options), messages)


class BatchSink(DataSourceArrowWriter):
    """Writes the rows of one job."""

    def __init__(self, options: SinkOptions, job: str) -> None:
        self._options = options
        self._job = job

    def write(self, iterator: "Iterator[RecordBatch]") -> Written:
        return _write(iterator, self._options, job=self._job)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _log.debug("%s", _summary(messages))
        if self._options.delivery == EXACTLY_ONCE and self._options.sink_id is None:
            self._forget_markers([each.partition for each in messages if isinstance(each, Written)])

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Tasks that are done stay written, as with every sink that has no undo."""
        _log.debug("the job failed: %s", _summary(messages))
        _end_left_open(self._options, self._options.sink_id or self._job, messages)

    def _forget_markers(self, partitions: list[int]) -> None:
        groups = [TaskName(self._job, self._job, 0, partition).key for partition in partitions]
        try:
            with Admin(settings_for(ADMIN, self._options.client)) as admin:
                admin.delete_groups(groups)
        except KafkaError as error:  # they expire by themselves
            _log.debug("the markers of the job stay: %s", error)


def stream_writer(options: Mapping[str, str], schema: "StructType", overwrite: bool) -> StreamSink:
    """The writer of a query; every output mode that Spark lets through appends, as in its own connector."""
    settle()
    parsed = parse_sink(options)
    check_columns(schema, parsed)
    return StreamSink(prepare(parsed))


def batch_writer(options: Mapping[str, str], schema: "StructType", overwrite: bool) -> BatchSink:
    """The writer of a job.  Raises SparkPartError for the mode overwrite: topics only grow."""
    parsed = parse_sink(options)
    if overwrite:
        raise SparkPartError("a topic cannot be overwritten; use the mode append")
    check_columns(schema, parsed)
    return BatchSink(prepare(parsed), uuid.uuid4().hex)


# --- driver

_prepared: dict[tuple[object, ...], str] = {}


def prepare(options: SinkOptions) -> SinkOptions:
    """The options with the delivery decided, once the cluster is seen to be ready for it.

    The answer is remembered: Spark asks for a writer in every batch.
    """
    key = (frozenset(options.client.items()), options.topic, options.delivery, options.marker_topic)
    delivery = _prepared.get(key)
    if delivery is None:
        delivery = _prepared[key] = _look(options)
    return replace(options, delivery=delivery)


def _look(options: SinkOptions) -> str:
    settings = {**options.client, "max.block.ms": _PLAN_TIMEOUT_MS, "bootstrap.timeout.ms": _PLAN_TIMEOUT_MS}
    with BulkProducer(settings) as producer:
        if options.topic is not None:
            producer.partitions_for(options.topic)
        if options.delivery == AT_LEAST_ONCE:
            return AT_LEAST_ONCE
        if not producer.offers_transactions():
            if options.delivery == EXACTLY_ONCE:
                raise OptionError("delivery", "these brokers have no transactions", f"use {AT_LEAST_ONCE}")
            _log.warning("these brokers have no transactions: rows are delivered at least once")
            return AT_LEAST_ONCE
    _make_marker_topic(options)
    return EXACTLY_ONCE


def _make_marker_topic(options: SinkOptions) -> None:
    try:
        with Admin(settings_for(ADMIN, options.client)) as admin:
            if any(topic.name == options.marker_topic for topic in admin.list_topics()):
                return
            admin.create_topic(options.marker_topic, 1)
    except TopicExists:
        return
    except KafkaError as error:
        raise OptionError(
            "markerTopic",
            f"the topic {options.marker_topic} is missing and could not be made: {error}",
            f"make it with one partition, or set option delivery={AT_LEAST_ONCE}",
        ) from error


def _end_left_open(
    options: SinkOptions, sink_id: str | None, messages: list[WriterCommitMessage | None]
) -> None:
    if options.delivery == EXACTLY_ONCE and sink_id is not None:
        done = {each.partition for each in messages if isinstance(each, Written)}
        end_left_open(options, sink_id, set(range(len(messages))) - done)


def _summary(messages: list[WriterCommitMessage | None]) -> str:
    done = [each for each in messages if isinstance(each, Written)]
    there = sum(each.was_there for each in done)
    rows = sum(each.rows for each in done)
    return f"{rows} rows by {len(done)} of {len(messages)} tasks, {there} of them before"


# --- executors


def _write(iterator: "Iterator[RecordBatch]", options: SinkOptions, *, job: str | None) -> Written:
    settle()
    context = TaskContext.get()
    if context is None:
        raise SparkPartError("a writer runs inside of a task")
    partition = context.partitionId()
    if options.delivery != EXACTLY_ONCE:
        return Written(partition, write_at_least_once(iterator, options), False)
    task = task_name(
        options, job, partition, context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
    )
    rows, was_there = write_exactly_once(iterator, options, task)
    return Written(partition, rows, was_there)


def task_name(
    options: SinkOptions, job: str | None, partition: int, query: str | None, batch: str | None
) -> TaskName:
    """What a task is called: by its query and batch, or by the job that it alone belongs to.

    A job inside of foreachBatch goes by query and batch if the option sinkId tells it from others there.
    """
    if job is not None and (options.sink_id is None or query is None or batch is None):
        if options.sink_id is not None:
            raise OptionError("sinkId", "a batch write needs none", "it is for streams, and for foreachBatch")
        return TaskName(job, job, 0, partition)
    if query is None or batch is None:
        raise SparkPartError("Spark does not say which batch of which query this is")
    return TaskName(options.sink_id or query, query, int(batch), partition)
