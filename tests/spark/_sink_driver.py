"""A query that copies one topic to another, as a process that tests kill.

    python -m tests.spark._sink_driver BOOTSTRAP FROM TO CHECKPOINT ROWS_PER_BATCH [MASTER [conf=value …]]

Prints "ready" before the query starts and "done" when it has copied what was there.
"""

import sys

from barnabas.spark import session


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
        .load()
        .select("key", "value")
    )
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
