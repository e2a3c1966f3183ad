"""Our sink, but slow, so that kills find transactions open; it also tells what became of every batch.

    .format("slow-barnabas").option("folder", FOLDER).option("pauseMs", "20")

Every ten rows take `pauseMs` more, in later attempts `againPauseMs` if that is given; with `evenOnly` this
holds for the tasks with an even number: a case for speculation.  In the folder, `batches.jsonl` has a line
per batch that was committed; `attempt-<id>` is there for every attempt that was not the first.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from barnabas.spark.sink import StreamSink, Written, stream_writer
from pyspark_barnabas import DefaultSource

if TYPE_CHECKING:
    from pyarrow import RecordBatch

OURS = ("folder", "pausems", "againpausems", "evenonly")
STEP_ROWS = 10


class SlowSource(DefaultSource):
    """Register it by `spark.dataSource.register`."""

    @classmethod
    def name(cls) -> str:
        return "slow-barnabas"

    def streamWriter(self, schema: StructType, overwrite: bool) -> "SlowSink":
        given = {name: value for name, value in self.options.items() if name.lower() not in OURS}
        own = {name.lower(): value for name, value in self.options.items()}
        return SlowSink(stream_writer(given, schema, overwrite), own)


class SlowSink(DataSourceStreamArrowWriter):
    def __init__(self, sink: StreamSink, own: dict[str, str]) -> None:
        self._sink = sink
        self._folder = own["folder"]
        self._pause_ms = int(own.get("pausems", "0"))
        self._again_pause_ms = int(own.get("againpausems", self._pause_ms))
        self._even_only = own.get("evenonly") == "true"

    def write(self, iterator: "Iterator[RecordBatch]") -> Written:
        context = TaskContext.get()
        assert context is not None, "a task"
        pause_ms = self._pause_ms
        if context.attemptNumber() > 0:
            Path(self._folder, f"attempt-{context.taskAttemptId()}").touch()
            pause_ms = self._again_pause_ms
        if self._even_only and context.partitionId() % 2:
            pause_ms = 0

        def slowed() -> "Iterator[RecordBatch]":
            for batch in iterator:
                for start in range(0, batch.num_rows, STEP_ROWS):
                    time.sleep(pause_ms / 1000)
                    yield batch.slice(start, STEP_ROWS)

        return self._sink.write(slowed())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._sink.commit(messages, batchId)
        done = [each for each in messages if isinstance(each, Written)]
        line: dict[str, Any] = {
            "batch": batchId,
            "tasks": len(messages),
            "rows": sum(each.rows for each in done),
            "there": sum(each.was_there for each in done),
        }
        with Path(self._folder, "batches.jsonl").open("a") as told:
            told.write(json.dumps(line) + "\n")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._sink.abort(messages, batchId)


def batches_of(folder: Path) -> list[dict[str, int]]:
    """What `commit` told, batch by batch."""
    path = folder / "batches.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
