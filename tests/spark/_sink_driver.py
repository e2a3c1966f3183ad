"""A query that copies one topic to another, as a process that tests kill.

    python -m tests.spark._sink_driver BOOTSTRAP FROM TO CHECKPOINT ROWS_PER_BATCH [MASTER [conf=value …]]

With SLOW_ORIGINALS set, the first attempt of every second task takes longer than the batch would without it.
Prints "ready" before the query starts and "done" when it has copied what was there.
"""

import os
import sys
from typing import TYPE_CHECKING

from barnabas.spark import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def slowed(rows: "DataFrame", folder: str) -> "DataFrame":
    """The same rows, but slow in the first attempt of tasks with an even number: a case for speculation.

    Later attempts leave a file in the folder.
    """
    from pyspark.sql.functions import col, udf

    def wait(text: str) -> str:
        import pathlib
        import time

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() > 0:
            pathlib.Path(folder, f"again-{context.taskAttemptId()}").touch()
        elif context.partitionId() % 2 == 0:
            time.sleep(0.1)
        return text

    return rows.select("key", udf(wait, "string", useArrow=False)(col("value").cast("string")).alias("value"))


def main(bootstrap: str, source: str, target: str, checkpoint: str, per_batch: str, *more: str) -> None:
    settings = {
        "spark.driver.memory": "512m",
        "spark.sql.shuffle.partitions": "3",
        "spark.task.maxFailures": "8",
        **dict(each.split("=", 1) for each in more[1:]),
    }
    spark = session("sink-driver", more[0] if more else "local[2,8]", checkpoint, **settings)
    print("ready", flush=True)
    common = {"kafka.bootstrap.servers": bootstrap}
    rows = (
        spark.readStream.format("barnabas")
        .options(**common, subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger=per_batch)
        .option("minRecordsPerTask", "0")  # or so few rows were one task
        .load()
        .select("key", "value")
    )
    if os.environ.get("SLOW_ORIGINALS"):
        rows = slowed(rows, checkpoint)
    query = (
        rows.writeStream.format("barnabas")
        .options(**common, topic=target)
        .option("checkpointLocation", f"{checkpoint}/query")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
