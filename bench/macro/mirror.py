"""A mirror between two brokers, beside the bare copy of as many bytes through sockets.

    python -m bench.macro.mirror [--megabytes N] [--rounds N] [--only TEXT] [--through WHAT]...

WHAT is loop (the default), spark or mirrormaker.

Two Barnabas brokers as processes of their own, and the copier: all on the same cores, as is the floor: a
process that sends, this one that receives and sends on, a process that receives.  No broker can be copied
faster than that.  `kept` keeps offsets, `translated` is exactly once in transactions.  Data of both brokers
is in the page cache; the first round warms up; medians are printed.

Through the loop, the copier is this process.  Through Spark it is a pipeline in local[2], the session warm:
`MB/s` is then from the start of the query to its end, checkpoint and all, and `in batches` leaves out what
comes before the batches and behind them.  MirrorMaker 2 starts anew for each round, and is timed from its
first records on.
"""

import argparse
import multiprocessing
import os
import socket
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from barnabas.client.admin import Admin
from barnabas.client.bulk_produce import BulkProducer
from barnabas.records.builder import build_batch
from barnabas.spark.pipelines.build import Run
from barnabas.spark.pipelines.driver import close_session, open_session
from barnabas.spark.pipelines.mirror import MirrorJob, start
from barnabas.spark.pipelines.mirror_settings import MirrorPlan, names_of
from barnabas.spark.pipelines.mirror_task import MirrorLinks, Work, copy
from barnabas.spark.pipelines.spec import Pipeline
from bench import _mirror_maker
from bench._brokers import Server, cpu_seconds, running
from bench._spark import cpu_of_tree

PARTITIONS = 4
MASTER = "local[2,4]"
MB = 1e6
SHAPES = {
    "16-KB batches of 100-B records": (150, 100),
    "64-KB batches of 1-KB records": (64, 1_000),
    "900-KB batches of 1-KB records": (880, 1_000),
}


def fill(server: Server, topic: str, records: int, value_bytes: int, megabytes: int) -> int:
    """Whole batches round the partitions; how many bytes."""
    rows = [(1_700_000_000_000, None, os.urandom(value_bytes), ())] * records
    batch = bytes(build_batch(rows))
    settings = {"bootstrap.servers": server.bootstrap_servers, "max.request.size": str(8 << 20)}
    with Admin({"bootstrap.servers": server.bootstrap_servers}) as admin:
        admin.create_topic(topic, PARTITIONS, 1)
    count = int(megabytes * MB / len(batch) / PARTITIONS) * PARTITIONS
    with BulkProducer(settings) as producer:
        for number in range(count):
            producer.send(topic, number % PARTITIONS, batch)
        producer.flush()
    return count * len(batch)


def mirrored(source: Server, target: Server, topic: str, records: int, *, kept: bool) -> tuple[float, float]:
    """Seconds, and CPU seconds of the copier, for one whole copy into a new topic."""
    into = f"{topic}-{time.monotonic_ns()}"
    plan = MirrorPlan(
        {"bootstrap.servers": source.bootstrap_servers},
        {"bootstrap.servers": target.bootstrap_servers},
        names_of([topic]),
        group=f"mirror:{into}",
    )
    with Admin(plan.target) as admin:
        configs = {"barnabas.offsets.kept": "true"} if kept else {}
        admin.create_topic(into, PARTITIONS, 1, configs=configs)
        with MirrorLinks(plan) as links:
            works = [Work(topic, number, records, into, kept) for number in range(PARTITIONS)]
            began, cpu = time.perf_counter(), time.process_time()
            done = copy(works, links)
            took = time.perf_counter() - began, time.process_time() - cpu
        assert sum(each.records for each in done) == records * PARTITIONS, done
        admin.delete_topics([into]).check()
    return took


class Timing(NamedTuple):
    """Of one whole copy: seconds, CPU seconds of the copier, and seconds in batches where there are any."""

    took_s: float
    cpu_s: float
    batches_s: float | None = None


class Loop:
    """The copying loop in this process."""

    ways = ("kept", "translated")

    def copy(self, source: Server, target: Server, topic: str, records: int, way: str) -> Timing:
        return Timing(*mirrored(source, target, topic, records, kept=way == "kept"))

    def close(self) -> None:
        """Nothing is left."""


class ThroughSpark:
    """The pipeline, in a session that stays warm; how long its batches took is told too."""

    ways = ("kept", "translated")

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._spark = open_session("mirror", MASTER, None, {}, folder / "spark.log")

    def copy(self, source: Server, target: Server, topic: str, records: int, way: str) -> Timing:
        name = f"copy{time.monotonic_ns()}"
        plan = MirrorPlan(
            {"bootstrap.servers": source.bootstrap_servers},
            {"bootstrap.servers": target.bootstrap_servers},
            names_of([topic]),
            group=f"mirror:{name}",
            prefix=f"{name}.",
            offsets="kept" if way == "kept" else "translated",
        )
        run = Run(self._spark.newSession(), f"{self._folder}/{name}", once=True)
        brokers = cpu_seconds(source.pid) + cpu_seconds(target.pid)
        began, cpu = time.perf_counter(), cpu_of_tree(os.getpid()) - brokers
        (job,) = start(Pipeline(name, "mirror", plan), run)
        assert isinstance(job, MirrorJob)
        job.query.awaitTermination()
        took = time.perf_counter() - began
        brokers = cpu_seconds(source.pid) + cpu_seconds(target.pid)
        spent = cpu_of_tree(os.getpid()) - brokers - cpu
        reports = job.reports()
        assert sum(each.rows_in for each in reports) == records * PARTITIONS, reports
        with Admin(plan.target) as admin:
            admin.delete_topics([plan.target_topic(topic)]).check()
        return Timing(took, spent, sum(each.batch_ms for each in reports if each.rows_in) / 1000)

    def close(self) -> None:
        close_session(self._spark)


class MirrorMaker:
    """Kafka's own."""

    ways = ("at least once",)

    def copy(self, source: Server, target: Server, topic: str, records: int, way: str) -> Timing:
        share, took, cpu = _mirror_maker.mirror(source, target, topic, PARTITIONS, records)
        return Timing(took / share, cpu / share)

    def close(self) -> None:
        """Nothing is left."""


Copier = Loop | ThroughSpark | MirrorMaker


def opened(through: str, folder: Path) -> Copier:
    match through:
        case "spark":
            return ThroughSpark(folder)
        case "mirrormaker":
            if (reason := _mirror_maker.why_missing()) is not None:
                sys.exit(reason)
            return MirrorMaker()
        case _:
            return Loop()


def _send(port: int, size: int) -> None:
    data = memoryview(bytes(1 << 20))
    with socket.create_connection(("127.0.0.1", port)) as connection:
        left = size
        while left:
            left -= connection.send(data[: min(left, len(data))])


def _receive(port: int, size: int) -> None:
    buffer = bytearray(1 << 20)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        left = size
        while left:
            left -= connection.recv_into(buffer)


@contextmanager
def _partner(work: object, size: int) -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        process = multiprocessing.get_context("spawn").Process(target=work, args=(port, size))  # type: ignore[arg-type]  # a function
        process.start()
        connection, _ = listening.accept()
        with connection:
            yield connection
        process.join()


def floor(size: int) -> float:
    """Seconds for as many bytes through two sockets."""
    buffer = memoryview(bytearray(1 << 20))
    with ExitStack() as stack:
        sink = stack.enter_context(_partner(_receive, size))
        source = stack.enter_context(_partner(_send, size))
        began = time.perf_counter()
        left = size
        while left:
            got = source.recv_into(buffer)
            sink.sendall(buffer[:got])
            left -= got
        return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--through", choices=("loop", "spark", "mirrormaker"), action="append")
    parser.add_argument("--only", default="", help="rows whose batches and way contain this")
    options = parser.parse_args()
    bare = statistics.median(floor(int(options.megabytes * MB)) for _ in range(options.rounds))
    bare_rate = options.megabytes / bare
    print(f"bare copy through sockets: {bare_rate:,.0f} MB/s\n")
    print("| batches | through | way | MB/s | in batches | of the bare copy | CPU-s/GB copier | brokers |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="barnabas-bench-")))
        source = stack.enter_context(running(["barnabas"]))["barnabas"]
        target = stack.enter_context(running(["barnabas"]))["barnabas"]
        copiers = {name: opened(name, folder) for name in options.through or ["loop"]}
        for copier in copiers.values():
            stack.callback(copier.close)
        for shape, (records, value_bytes) in SHAPES.items():
            rows = [
                (name, way)
                for name, copier in copiers.items()
                for way in copier.ways
                if options.only in f"{shape}, {way}"
            ]
            topic = "t" + shape.split("-")[0]
            size = fill(source, topic, records, value_bytes, options.megabytes) if rows else 0
            for name, way in rows:
                timings = measured(copiers[name], source, target, topic, size, options.rounds, way)
                print(f"| {shape} | {name} | {way} | {_cells(timings, bare_rate)} |", flush=True)
            if rows:
                with Admin({"bootstrap.servers": source.bootstrap_servers}) as admin:
                    admin.delete_topics([topic]).check()


class Rates(NamedTuple):
    """MB/s, and CPU seconds a GB."""

    whole: float
    batches: float | None
    copier: float
    brokers: float


def _cells(rates: Rates, bare_rate: float) -> str:
    batches = "" if rates.batches is None else f"{rates.batches:,.0f}"
    share = rates.whole / bare_rate
    return f"{rates.whole:,.0f} | {batches} | {share:.2f} | {rates.copier:.2f} | {rates.brokers:.2f}"


def measured(
    copier: Copier, source: Server, target: Server, topic: str, size: int, rounds: int, way: str
) -> Rates:
    """Medians without the first round."""
    with Admin({"bootstrap.servers": source.bootstrap_servers}) as admin:
        records = _end(admin, topic)
    timings, brokers = [], []
    for _ in range(rounds + 1):
        before = cpu_seconds(source.pid) + cpu_seconds(target.pid)
        timings.append(copier.copy(source, target, topic, records, way))
        brokers.append(cpu_seconds(source.pid) + cpu_seconds(target.pid) - before)
    in_batches = [each.batches_s for each in timings[1:] if each.batches_s is not None]
    return Rates(
        size / MB / statistics.median(each.took_s for each in timings[1:]),
        size / MB / statistics.median(in_batches) if in_batches else None,
        statistics.median(each.cpu_s for each in timings[1:]) * 1e9 / size,
        statistics.median(brokers[1:]) * 1e9 / size,
    )


def _end(admin: Admin, topic: str) -> int:
    from barnabas.base.types import TopicPartition
    from barnabas.client.admin_types import OffsetSpec

    tp = TopicPartition(topic, 0)
    return admin.list_offsets({tp: OffsetSpec.LATEST})[tp].offset


if __name__ == "__main__":
    main()
