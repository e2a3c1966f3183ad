"""A Spark driver with Spark's own Kafka connector: does a list of jobs and prints what came of each.

    python -m tests.spark._jvm_driver SPARK_SETTINGS < jobs.json

Both connectors serve in one session: "kafka" is Spark's, "barnabas" is ours.  A process of its own, because a
session takes jars only when it starts.  The last line of stdout has the results, in the order of the jobs.
"""

import json
import sys
import tempfile
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from barnabas.spark.sessions import session

Job = dict[str, Any]

# Everything as text and numbers, nulls kept, so that rows can be compared as JSON.
EXACT = [
    "hex(key) AS key",
    "hex(value) AS value",
    "topic",
    "partition",
    "offset",
    "unix_micros(timestamp) AS timestamp",
    "timestampType",
]
HEADERS = "to_json(headers) AS headers"


def exact(rows: DataFrame) -> DataFrame:
    return rows.selectExpr(*EXACT, *([HEADERS] if "headers" in rows.columns else []))


def listed(rows: DataFrame) -> list[dict[str, Any]]:
    found = [row.asDict() for row in exact(rows).collect()]
    return sorted(found, key=lambda row: (row["topic"], row["partition"], row["offset"]))


class Jobs:
    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def read(self, job: Job) -> dict[str, Any]:
        """A batch read: rows, schema, number of tasks."""
        rows = self._spark.read.format(job["format"]).options(**job["options"]).load()
        found = {"rows": listed(rows), "schema": rows.schema.jsonValue()}
        return {**found, "tasks": rows.rdd.getNumPartitions()} if job["tasks"] else found

    def stream(self, job: Job) -> dict[str, Any]:
        """A stream that ends with what is there: rows, and how many each batch had."""
        rows = self._spark.readStream.format(job["format"]).options(**job["options"]).load()
        name = f"stream_{job['format']}_{job['name']}"
        with tempfile.TemporaryDirectory(prefix="barnabas-jvm-") as checkpoint:
            writer = exact(rows).writeStream.format("memory").queryName(name)
            query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            query.awaitTermination()
            batches = [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]
        found = [row.asDict() for row in self._spark.table(name).collect()]
        found.sort(key=lambda row: (row["topic"], row["partition"], row["offset"]))
        return {"rows": found, "batches": batches}

    def write(self, job: Job) -> None:
        """Rows that SQL makes, by a batch job."""
        rows = self._spark.sql(job["sql"])
        rows.write.format(job["format"]).options(**job["options"]).mode("append").save()

    def copy(self, job: Job) -> None:
        """A stream from topic to topic that ends with what is there."""
        rows = self._spark.readStream.format(job["format"]).options(**job["source"]).load()
        with tempfile.TemporaryDirectory(prefix="barnabas-jvm-") as checkpoint:
            writer = (
                rows.selectExpr(*job["columns"]).writeStream.format(job["sink"]).options(**job["options"])
            )
            query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            query.awaitTermination()

    def run(self, job: Job) -> Any:
        try:
            return getattr(self, job["do"])(job)
        except PySparkException as error:
            return {"error": str(error)[:2000]}


def main() -> None:
    spark = session("barnabas-jvm-connector", "local[2,4]", **json.loads(sys.argv[1]))
    jobs = Jobs(spark)
    results = [jobs.run(job) for job in json.load(sys.stdin)]
    spark.stop()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
