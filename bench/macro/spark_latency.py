"""How long a micro-batch takes, topic to topic: our source and sink beside Spark's own connector.

    python -m bench.macro.spark_latency [--batches N] [--rounds N] [--broker barnabas|kafka] [--only TEXT]

100 records are written, and the next 100 once the query has worked them off; trigger 0 s, local[2], one
session for all queries, which take turns.  Times are Spark's own, in ms: p50, p99 and least of the whole
trigger, and the median of its phases.  A round begins with a new query, and its first third does not count;
nor does the first round.

Java's consumer fetches ahead, and Spark's connector then asks for offsets on the same connection.  Brokers
answer in order, so Apache Kafka lets it wait for fetch.max.wait.ms in every batch that nothing follows at
once.  Barnabas does not; the row with that setting shows what the connector takes by itself, on any broker.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from barnabas.client.bulk_produce import BulkProducer
from barnabas.records.builder import build_batch
from bench import _brokers, _spark
from tests import _kafka, _spark_connector

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PHASES = ("latestOffset", "walCommit", "queryPlanning", "addBatch", "commitOffsets")
WHOLE = "triggerExecution"
RECORDS = [(-1, b"key", b"x" * 100, ())] * 100
# All batches of a round, and the triggers between them that found nothing.
SETTINGS = {"spark.sql.streaming.numRecentProgressUpdates": "10000"}

Durations = dict[str, int]


class Query(NamedTuple):
    """A row of the table."""

    name: str
    connector: str
    reading: Mapping[str, str]
    writing: Mapping[str, str]


QUERIES = (
    Query("kafka", "kafka", {}, {}),
    Query("kafka, fetch.max.wait.ms=1", "kafka", {"kafka.fetch.max.wait.ms": "1"}, {}),
    Query("barnabas, at-least-once", "barnabas", {}, {"delivery": "at-least-once"}),
    Query("barnabas, exactly-once", "barnabas", {}, {"delivery": "exactly-once"}),
)


def run(spark: "SparkSession", bootstrap: str, query: Query, number: int, batches: int) -> list[Durations]:
    """Works off so many batches in a query of its own; how long those took that count."""
    source, target = f"from-{number}", f"to-{number}"
    for topic in (source, target):
        _brokers.create_topic_at(bootstrap, topic, _spark.PARTITIONS)
    cluster = {"kafka.bootstrap.servers": bootstrap}
    reader = spark.readStream.format(query.connector).options(**cluster, **query.reading)
    rows = reader.option("subscribe", source).option("startingOffsets", "earliest").load()
    writer = rows.select("key", "value").writeStream.format(query.connector)
    writer = writer.options(**cluster, **query.writing).option("topic", target)
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-bench-") as checkpoint,
        BulkProducer({"bootstrap.servers": bootstrap}) as producer,
    ):
        running = writer.option("checkpointLocation", checkpoint).trigger(processingTime="0 seconds").start()
        try:
            for _ in range(batches):
                producer.send(source, 0, build_batch(RECORDS))
                producer.flush()
                running.processAllAvailable()
            taken = [each["durationMs"] for each in running.recentProgress if each["numInputRows"]]
        finally:
            running.stop()
    return taken[len(taken) // 3 :]


def row(name: str, taken: list[Durations]) -> str:
    whole = sorted(each[WHOLE] for each in taken)
    cells = [
        name,
        f"{statistics.median(whole):.0f}",
        str(whole[len(whole) * 99 // 100]),
        str(whole[0]),
        *(f"{statistics.median(each.get(phase, 0) for each in taken):.0f}" for phase in PHASES),
    ]
    return f"| {' | '.join(cells)} |"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--broker", choices=("barnabas", "kafka"), default="barnabas")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--conf", action="append", default=[], help="a setting of the session, NAME=VALUE")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    queries = [each for each in QUERIES if given.only in each.name]
    reason = _spark_connector.why_missing() or (_kafka.why_missing() if given.broker == "kafka" else None)
    if reason is not None:
        print(f"skipped: {reason}", file=sys.stderr)
        return 0
    from barnabas.spark.sessions import session

    settings = {**_spark.settings(), **SETTINGS, **dict(each.split("=", 1) for each in given.conf)}
    taken: dict[str, list[Durations]] = {query.name: [] for query in queries}
    with _brokers.running([given.broker]) as servers:
        bootstrap = servers[given.broker].bootstrap_servers
        spark = session("barnabas-bench", _spark.MASTER, **settings)
        for number in range((given.rounds + 1) * len(queries)):
            query = queries[number % len(queries)]
            found = run(spark, bootstrap, query, number, given.batches)
            if number >= len(queries):
                taken[query.name] += found
        spark.stop()
    print(f"| micro-batch, ms | p50 | p99 | min | {' | '.join(PHASES)} |")
    print("|---|" + "---:|" * (3 + len(PHASES)))
    for name, durations in taken.items():
        print(row(name, durations))
    return 0


if __name__ == "__main__":
    sys.exit(main())
