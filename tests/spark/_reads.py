"""Reads of one topic through Spark, and what a stream of it hands over, batch by batch."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.spark._kit import Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class Reads:
    """Readers of one topic, and what a stream of it hands over."""

    def __init__(self, spark: "SparkSession", topics: Topics, topic: str, checkpoint: Path) -> None:
        self.spark, self.topics, self.topic = spark, topics, topic
        self.checkpoint = checkpoint
        self.batches: dict[int, list[str]] = {}

    def options(self, **more: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.topics.bootstrap, "subscribe": self.topic, **more}

    def batch(self, **options: str) -> "DataFrame":
        return self.spark.read.format("barnabas").options(**self.options(**options)).load()

    def stream(self, *, query: str | None = None, once: bool = False, **options: str) -> None:
        """Run a query over all there is now, on one checkpoint, and keep the values of every batch.

        `once` stands for the trigger of that name, which takes one batch; else it is as many as it takes.
        """
        with self.running(query=query, trigger="once" if once else "availableNow", **options) as running:
            running.awaitTermination()

    @contextlib.contextmanager
    def running(
        self, *, query: str | None = None, trigger: str | None = None, **options: str
    ) -> "Iterator[StreamingQuery]":
        """The query while it runs: with a trigger by its name, or by its interval, or without any."""

        def keep(rows: "DataFrame", number: int) -> None:
            self.batches[number] = [row.v for row in rows.selectExpr("cast(value as string) v").collect()]

        frame = self.spark.readStream.format("barnabas").options(**self.options(**options)).load()
        writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(self.checkpoint))
        writer = writer if query is None else writer.queryName(query)
        match trigger:
            case "availableNow":
                writer = writer.trigger(availableNow=True)
            case "once":
                writer = writer.trigger(once=True)
            case str(interval):
                writer = writer.trigger(processingTime=interval)
        running = writer.start()
        try:
            yield running
        finally:
            running.stop()

    def values(self) -> list[str]:
        return sorted(value for batch in self.batches.values() for value in batch)


def numbered(first: int, last: int) -> list[str]:
    """The values that `Topics.fill` gives these records, in the order of texts."""
    return sorted(f"v{number}" for number in range(first, last))
