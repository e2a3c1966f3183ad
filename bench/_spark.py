"""Two Spark drivers side by side, one for each connector, that do what they are told.

    python -m bench._spark barnabas|kafka SETTINGS     a driver: one JSON command a line in, one answer out

Both sessions have the same settings, the jars of Spark's own connector among them.  A driver stays warm
between commands, so that rounds can alternate between the two while the machine's load falls on both.
CPU is that of the driver, its JVM and all its Python workers.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.client.bulk_produce import BulkProducer
from barnabas.records.builder import build_batch
from bench import _brokers
from tests import _spark_connector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SIDES = ("kafka", "barnabas")
PARTITIONS = 4
MASTER = "local[2,4]"
BATCH_BYTES = 64_000
ANSWER = "answer "


def settings() -> dict[str, str]:
    """The settings of both sessions."""
    return {**_spark_connector.settings(), "spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "2"}


def arguments(doc: str | None) -> argparse.Namespace:
    """What both benchmarks take; `names` are the connectors.  Ends the program where one is not to be had."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0] if doc else None)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--barnabas-only", action="store_true")
    given = parser.parse_args()
    given.names = ("barnabas",) if given.barnabas_only else SIDES
    if not given.barnabas_only and (reason := _spark_connector.why_missing()) is not None:
        print(f"skipped: {reason}", file=sys.stderr)
        sys.exit(0)
    return given


# --- the topics


def fill(bootstrap_servers: str, topic: str, value_bytes: int, count: int) -> None:
    """Writes `count` records with 10-byte keys in batches as a busy producer makes them."""
    alphabet = b"abcdefghijklmnopqrstuvwxyz0123456789" * (value_bytes // 36 + 1)
    per_batch = max(1, BATCH_BYTES // (value_bytes + 20))
    now = int(time.time() * 1000)
    rows = [(now, b"%010d" % number, alphabet[:value_bytes], ()) for number in range(per_batch)]
    whole = bytes(build_batch(rows))
    rest = bytes(build_batch(rows[: count % per_batch])) if count % per_batch else b""
    with BulkProducer({"bootstrap.servers": bootstrap_servers}) as producer:
        for number in range(count // per_batch):
            producer.send(topic, number % PARTITIONS, bytearray(whole))
        if rest:
            producer.send(topic, 0, bytearray(rest))
        producer.flush()


# --- the driver's side


class Driver:
    """Does the commands of one connector in one session."""

    def __init__(self, side: str, spark: "SparkSession", bootstrap_servers: str) -> None:
        self._side = side
        self._spark = spark
        self._bootstrap = bootstrap_servers

    def _source(self, topic: str, columns: str) -> "DataFrame":
        reader = self._spark.read.format(self._side).option("kafka.bootstrap.servers", self._bootstrap)
        reader = reader.option("subscribe", topic)
        if columns and self._side == "barnabas":
            reader = reader.option("columns", columns)
        rows = reader.load()
        return rows.select(*columns.split(",")) if columns else rows

    def count(self, topic: str) -> int:
        return self._source(topic, "").count()

    def read(self, topic: str, columns: str = "") -> None:
        """All records of a topic, to nowhere."""
        self._source(topic, columns).write.format("noop").mode("overwrite").save()

    def copy(self, topic: str, target: str, options: Mapping[str, str]) -> None:
        """All records of a topic into another, by a batch job."""
        writer = self._source(topic, "key,value").write.format(self._side)
        writer = writer.option("kafka.bootstrap.servers", self._bootstrap).option("topic", target)
        writer.options(**options).mode("append").save()

    def stream_copy(self, topic: str, target: str, options: Mapping[str, str]) -> None:
        """All records of a topic into another, by a streaming query that ends with them."""
        with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as checkpoint:
            query = self._stream(topic, target, checkpoint, options).trigger(availableNow=True).start()
            query.awaitTermination()

    def _stream(self, topic: str, target: str, checkpoint: str, options: Mapping[str, str]) -> Any:
        reader = self._spark.readStream.format(self._side).option("kafka.bootstrap.servers", self._bootstrap)
        reader = reader.option("subscribe", topic)
        rows = reader.option("startingOffsets", "earliest").load().select("key", "value")
        writer = rows.writeStream.format(self._side).option("kafka.bootstrap.servers", self._bootstrap)
        return writer.option("topic", target).option("checkpointLocation", checkpoint).options(**options)


def serve(side: str, given: Mapping[str, Any]) -> None:
    from barnabas.spark.sessions import session

    spark = session("barnabas-bench", MASTER, **given["spark"])
    driver = Driver(side, spark, given["bootstrap"])
    print(ANSWER + json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        call = getattr(driver, command.pop("do"))
        cpu, start = cpu_of_tree(os.getpid()), time.perf_counter()
        result = call(**command)
        seconds = time.perf_counter() - start
        found = {"seconds": seconds, "cpu": cpu_of_tree(os.getpid()) - cpu, "result": result}
        print(ANSWER + json.dumps(found), flush=True)
    spark.stop()


def cpu_of_tree(root: int) -> float:
    """User and system seconds of a process and all below it, those that ended meanwhile included."""
    fields: dict[int, list[str]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields[int(stat.parent.name)] = stat.read_text().rpartition(")")[2].split()
    total, left = 0.0, [root]
    while left:
        pid = left.pop()
        if pid in fields:
            total += sum(int(ticks) for ticks in fields[pid][11:15])
            left += [child for child, found in fields.items() if int(found[1]) == pid]
    return total / os.sysconf("SC_CLK_TCK")


# --- the benchmark's side


class Side:
    """A driver in a process of its own."""

    def __init__(self, side: str, bootstrap_servers: str) -> None:
        given = json.dumps({"bootstrap": bootstrap_servers, "spark": settings()})
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench._spark", side, given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def do(self, what: str, **arguments: Any) -> dict[str, Any]:
        """Seconds, CPU seconds and the result of a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": what, **arguments}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(ANSWER):
                found: dict[str, Any] = json.loads(line.removeprefix(ANSWER))
                return found
        raise RuntimeError("the driver ended; its error is above")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)


@contextlib.contextmanager
def sides(bootstrap_servers: str, names: tuple[str, ...] = SIDES) -> Iterator[dict[str, Side]]:
    with contextlib.ExitStack() as stack:
        started: dict[str, Side] = {}
        for name in names:
            started[name] = Side(name, bootstrap_servers)
            stack.callback(started[name].close)
        yield started


def measured_row(name: str, taken: Mapping[str, list[dict[str, Any]]], count: int) -> str:
    """A line of a table from the rounds of each side, the first of which does not count.

    Its cells: the rates, ours over theirs, the CPU of both, theirs over ours.
    """
    rates: dict[str, float] = {}
    cpu: dict[str, float] = {}
    for side, rounds in taken.items():
        rates[side] = count / statistics.median(each["seconds"] for each in rounds[1:])
        cpu[side] = statistics.median(each["cpu"] for each in rounds[1:]) / count * 1e6
    both = "kafka" in rates
    cells = [name, *(f"{rate / 1000:,.0f}" for rate in rates.values())]
    cells.append(f"{rates['barnabas'] / rates['kafka']:.2f}" if both else "")
    cells.append(" / ".join(f"{seconds:.2f}" for seconds in cpu.values()))
    cells.append(f"{cpu['kafka'] / cpu['barnabas']:.2f}" if both else "")
    return f"| {' | '.join(cells)} |"


@contextlib.contextmanager
def broker() -> Iterator[str]:
    """The address of a Barnabas broker, in a process of its own."""
    with _brokers.running(["barnabas"]) as servers:
        yield servers["barnabas"].bootstrap_servers


if __name__ == "__main__":
    serve(sys.argv[1], json.loads(sys.argv[2]))
