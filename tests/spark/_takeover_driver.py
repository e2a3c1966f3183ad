"""A query that changes from Spark's own connector to ours on one checkpoint; run by test_takeover.

    python -m tests.spark._takeover_driver BOOTSTRAP TOPIC CHECKPOINT FORMAT

A process of its own, because a session takes jars only when it starts.  Prints the rows of each batch.
"""

import json
import sys

from pyspark.sql import DataFrame

from barnabas.spark import session
from tests import _spark_connector


def main(bootstrap: str, topic: str, checkpoint: str, connector: str) -> None:
    spark = session("takeover", "local[1,2]", **_spark_connector.settings())
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    found: dict[int, int] = {}

    def count(rows: DataFrame, number: int) -> None:
        found[number] = rows.count()

    writer = spark.readStream.format(connector).options(**options).load().writeStream.foreachBatch(count)
    writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
