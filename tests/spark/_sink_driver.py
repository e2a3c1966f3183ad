"""A query that copies one topic to another slowly, as a process that tests kill.

    python -m tests.spark._sink_driver BOOTSTRAP FROM TO FOLDER MASTER [name=value …]

Names that begin with "spark." are settings of the session, others are options of the sink (`_slow_sink`).
Values are filled up with dots, so that a task has more than one batch for each partition.
Runs until the file `stop` is in the folder.  Prints "ready" before the query starts, "done" at its end.
"""

import sys
from pathlib import Path

from barnabas.spark import session
from tests.spark._slow_sink import SlowSource

VALUE_BYTES = 200
# A task is a second's work in many small steps: most kills find its transaction open.
SESSION = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.task.maxFailures": "8",
}
SINK = {"kafka.batch.size": "1024", "pauseMs": "80"}
ROWS_PER_BATCH = "300"
LOOK_S = 1


def main(bootstrap: str, source: str, target: str, folder: str, master: str, *more: str) -> None:
    given = dict(each.split("=", 1) for each in more)
    settings = {name: value for name, value in given.items() if name.startswith("spark.")}
    options = {name: value for name, value in given.items() if name not in settings}
    spark = session("sink-driver", master, folder, **{**SESSION, **settings})
    spark.dataSource.register(SlowSource)
    print("ready", flush=True)
    common = {"kafka.bootstrap.servers": bootstrap}
    rows = (
        spark.readStream.format("barnabas")
        .options(
            **common,
            subscribe=source,
            startingOffsets="earliest",
            maxOffsetsPerTrigger=ROWS_PER_BATCH,
            minRecordsPerTask="0",  # or so few rows were one task
        )
        .load()
        .selectExpr("key", f"rpad(cast(value as string), {VALUE_BYTES}, '.') value")
    )
    query = (
        rows.writeStream.format("slow-barnabas")
        .options(**{**common, **SINK, **options}, topic=target, folder=folder)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .start()
    )
    stop = Path(folder, "stop")
    while not query.awaitTermination(LOOK_S) and not stop.exists():
        pass
    query.stop()
    print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
