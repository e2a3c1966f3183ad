"""A session of whatever PySpark this Python has, driven by lines of JSON: a request each, an answer each.

    python -m tests.spark._version_driver [connect]

A request is {"do": name, …}; the answer {"result": …} or {"error": one sentence}.
Only what a user's script would use: nothing is registered.
"""

import json
import os
import sys
from typing import Any

from barnabas.spark import as_kafka, one_sentence, session

MEMORY = {"spark.driver.memory": "600m", "spark.sql.shuffle.partitions": "2"}


class Driver:
    """One session, and what can be done with it."""

    def __init__(self, *, connect: bool) -> None:
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        settings = {**MEMORY, "spark.ui.enabled": "false", "spark.log.level": "ERROR"}
        builder = SparkSession.builder.appName("versions")
        builder = builder.remote("local[2,4]") if connect else builder.master("local[2,4]")
        for name, value in settings.items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()

    def version(self) -> str:
        return self.spark.version

    def own_session(self, checkpoint: str) -> None:
        """The session that this package makes, in place of the plain one."""
        self.spark.stop()
        self.spark = session("versions", "local[2,4]", checkpoint, **MEMORY)

    def conf(self, name: str, value: str | None) -> None:
        if value is None:
            self.spark.conf.unset(name)
        else:
            self.spark.conf.set(name, value)

    def read(self, options: dict[str, str], select: list[str], format: str = "barnabas") -> list[list[Any]]:
        """What the expressions give for each record, in order of the first ones."""
        if format == "kafka":
            as_kafka()
        try:
            frame = self.spark.read.format(format).options(**options).load()
            return sorted([list(row) for row in frame.selectExpr(*select).collect()])
        finally:
            as_kafka(undo=True)

    def write(self, rows: list[list[Any]], schema: str, options: dict[str, str]) -> None:
        frame = self.spark.createDataFrame([tuple(row) for row in rows], schema)
        frame.write.format("barnabas").mode("append").options(**options).save()

    def copy(
        self,
        source: dict[str, str],
        sink: dict[str, str],
        checkpoint: str,
        trigger: str,
        name: str | None = None,
    ) -> list[int]:
        """A query from topic to topic over what is there; the number of rows of each batch that had any."""
        rows = self.spark.readStream.format("barnabas").options(**source).load()
        columns = [each for each in ("key", "value", "headers") if each in rows.columns]
        writer = rows.select(*columns).writeStream.format("barnabas").options(**sink)
        writer = writer.option("checkpointLocation", checkpoint)
        writer = writer if name is None else writer.queryName(name)
        if trigger in ("availableNow", "once"):
            query = writer.trigger(**{trigger: True}).start()
        else:
            query = writer.trigger(processingTime="100 milliseconds").start()
        try:
            if trigger == "continuously":
                query.processAllAvailable()
            else:
                query.awaitTermination()  # "for ever": until it is killed
        finally:
            query.stop()
        return [each.numInputRows for each in query.recentProgress if each.numInputRows]


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed must not be taken for an answer
    driver = Driver(connect="connect" in sys.argv[1:])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": getattr(driver, request.pop("do"))(**request)}
        except Exception as error:
            answer = {"error": one_sentence(error)}
        print(json.dumps(answer), file=answers, flush=True)
    driver.spark.stop()


if __name__ == "__main__":
    main()
