"""A mirror between two brokers, beside the bare copy of as many bytes through sockets.

    python -m bench.macro.mirror [--megabytes N] [--rounds N] [--through loop|spark] [--only TEXT]

Two Barnabas brokers as processes of their own, and the copier: all on the same cores, as is the floor: a
process that sends, this one that receives and sends on, a process that receives.  No broker can be copied
faster than that.  `kept` keeps offsets, `translated` is exactly once in transactions.  Data of both brokers
is in the page cache; the first round warms up; medians are printed.

Through the loop, the copier is this process.  Through Spark it is a pipeline in local[2], the session warm:
`MB/s` is then from the start of the query to its end, checkpoint and all, and `in batches` leaves out what
comes before the batches and behind them.
"""

import argparse
import multiprocessing
import os
import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from barnabas.client.admin import Admin
from barnabas.client.bulk_produce import BulkProducer
from barnabas.records.builder import build_batch
from barnabas.spark.pipelines.build import Run
from barnabas.spark.pipelines.driver import close_session, open_session
from barnabas.spark.pipelines.mirror import MirrorJob, start
from barnabas.spark.pipelines.mirror_settings import MirrorPlan, names_of
from barnabas.spark.pipelines.mirror_task import MirrorLinks, Work, copy
from barnabas.spark.pipelines.spec import Pipeline
from bench._brokers import Server, cpu_seconds, running
from bench._spark import cpu_of_tree

PARTITIONS = 4
MASTER = "local[2,4]"
WAYS = ("kept", "translated")
AIM_MB_S = 300
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


class Loop:
    """The copying loop in this process."""

    times = ()

    def copy(self, source: Server, target: Server, topic: str, records: int, kept: bool) -> list[float]:
        """Seconds, and CPU seconds of the copier."""
        return list(mirrored(source, target, topic, records, kept=kept))

    def close(self) -> None:
        """Nothing is left."""


class ThroughSpark:
    """The pipeline, in a session that stays warm; how long its batches took is told too."""

    times = ("in batches",)

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._spark = open_session("mirror", MASTER, None, {}, folder / "spark.log")

    def copy(self, source: Server, target: Server, topic: str, records: int, kept: bool) -> list[float]:
        name = f"copy{time.monotonic_ns()}"
        plan = MirrorPlan(
            {"bootstrap.servers": source.bootstrap_servers},
            {"bootstrap.servers": target.bootstrap_servers},
            names_of([topic]),
            group=f"mirror:{name}",
            prefix=f"{name}.",
            offsets="kept" if kept else "translated",
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
        return [took, spent, sum(each.batch_ms for each in reports if each.rows_in) / 1000]

    def close(self) -> None:
        close_session(self._spark)


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
    parser.add_argument("--through", choices=("loop", "spark"), default="loop")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    bare = statistics.median(floor(int(options.megabytes * MB)) for _ in range(options.rounds))
    bare_rate = options.megabytes / bare
    print(f"bare copy through sockets: {bare_rate:,.0f} MB/s\n")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="barnabas-bench-")))
        source = stack.enter_context(running(["barnabas"]))["barnabas"]
        target = stack.enter_context(running(["barnabas"]))["barnabas"]
        copier = ThroughSpark(folder) if options.through == "spark" else Loop()
        stack.callback(copier.close)
        rates = ["MB/s", *copier.times]
        rest = "of the bare copy | CPU-s/GB copier | brokers | aim MB/s"
        print(f"| batches | way | {' | '.join(rates)} | {rest} |")
        print("|---|---|" + "---:|" * (len(rates) + 4))
        for shape, (records, value_bytes) in SHAPES.items():
            ways = [way for way in WAYS if options.only in f"{shape}, {way}"]
            if not ways:
                continue
            topic = "t" + shape.split("-")[0]
            size = fill(source, topic, records, value_bytes, options.megabytes)
            for way in ways:
                cells = measured(copier, source, target, topic, size, options.rounds, kept=way == "kept")
                *shown, cpu, brokers = cells
                print(
                    f"| {shape} | {way} | {' | '.join(f'{rate:,.0f}' for rate in shown)} "
                    f"| {shown[0] / bare_rate:.2f} | {cpu:.2f} | {brokers:.2f} | {AIM_MB_S} |",
                    flush=True,
                )
            with Admin({"bootstrap.servers": source.bootstrap_servers}) as admin:
                admin.delete_topics([topic]).check()


def measured(
    copier: Loop | ThroughSpark,
    source: Server,
    target: Server,
    topic: str,
    size: int,
    rounds: int,
    *,
    kept: bool,
) -> list[float]:
    """Rates in MB/s, then CPU seconds a GB of copier and brokers: medians without the first round."""
    with Admin({"bootstrap.servers": source.bootstrap_servers}) as admin:
        records = _end(admin, topic)
    rows = []
    for _ in range(rounds + 1):
        before = cpu_seconds(source.pid) + cpu_seconds(target.pid)
        took, cpu, *times = copier.copy(source, target, topic, records, kept)
        brokers = cpu_seconds(source.pid) + cpu_seconds(target.pid) - before
        rows.append([*(size / MB / each for each in (took, *times)), cpu * 1e9 / size, brokers * 1e9 / size])
    return [statistics.median(column) for column in zip(*rows[1:], strict=True)]


def _end(admin: Admin, topic: str) -> int:
    from barnabas.base.types import TopicPartition
    from barnabas.client.admin_types import OffsetSpec

    tp = TopicPartition(topic, 0)
    return admin.list_offsets({tp: OffsetSpec.LATEST})[tp].offset


if __name__ == "__main__":
    main()
