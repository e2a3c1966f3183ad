"""`barnabas produce` and `barnabas consume` in pipes: lines per second, and what the same job costs others.

    python -m bench.macro.cli_pipes [--quick] [--lines N] [--kafka-tools]

A file of 100-byte lines goes through the real executable into a topic with four partitions and out again.
The clock runs from the start of the process to its end, start-up included; CPU is that of the command alone.
With --kafka-tools Kafka's console producer and consumer do the same against the same broker.  One broker,
rounds in turn, the median counts.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench._brokers import create_topic, running
from tests import _kafka

EXECUTABLE = str(Path(sys.executable).with_name("barnabas"))
PARTITIONS = 4
TIMEOUT_S = 300


@dataclass
class Row:
    """One job: its command line for a topic, and what was measured."""

    name: str
    command: Callable[[str], list[str]]
    reads_lines: bool
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)


def rows(servers: str, count: int, with_kafka: bool) -> list[Row]:
    def ours(*arguments: str) -> Callable[[str], list[str]]:
        return lambda topic: [EXECUTABLE, arguments[0], topic, "-b", servers, *arguments[1:]]

    every = ("--from-beginning", "-n", str(count))
    found = [
        Row("produce", ours("produce"), True),
        Row("produce, keys (-K ,)", ours("produce", "-K", ","), True),
        Row("consume", ours("consume", *every), False),
        Row("consume -f '%t %p %o %k %s\\n'", ours("consume", *every, "-f", "%t %p %o %k %s\\n"), False),
        Row("consume --json", ours("consume", *every, "--json"), False),
    ]
    if with_kafka:
        console = ["--bootstrap-server", servers, "--topic"]
        producer = "org.apache.kafka.tools.ConsoleProducer"
        consumer = "org.apache.kafka.tools.consumer.ConsoleConsumer"
        limit = ["--from-beginning", "--max-messages", str(count)]
        found += [
            Row("Kafka's console producer", lambda t: _kafka.java(producer, *console, t), True),
            Row("Kafka's console consumer", lambda t: _kafka.java(consumer, *console, t, *limit), False),
        ]
    return found


def run(command: Sequence[str], source: Path | None, target: Path) -> tuple[float, float]:
    """Seconds and CPU seconds of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    with target.open("wb") as out, (source or Path(os.devnull)).open("rb") as lines:
        subprocess.run(
            command, stdin=lines, stdout=out, stderr=subprocess.PIPE, check=True, timeout=TIMEOUT_S
        )
    taken = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return taken, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Lines per second through produce and consume.")
    parser.add_argument("--quick", action="store_true", help="one round, fewer lines")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--kafka-tools", action="store_true", help="Kafka's console tools beside ours")
    chosen = parser.parse_args(arguments)
    count = min(chosen.lines, 300_000) if chosen.quick else chosen.lines
    with tempfile.TemporaryDirectory() as folder, running(["barnabas"]) as servers:
        server = servers["barnabas"]
        source, target = Path(folder) / "lines.txt", Path(folder) / "out.txt"
        text = "some text that makes the line about a hundred bytes long, as lines of logs often are"
        source.write_text("".join(f"{number:010d},{text}\n" for number in range(count)))
        create_topic(server, "filled", PARTITIONS)
        run([EXECUTABLE, "produce", "filled", "-b", server.bootstrap_servers], source, target)
        jobs = rows(server.bootstrap_servers, count, chosen.kafka_tools)
        for number in range(1 if chosen.quick else 3):
            for row in jobs:
                topic = "filled"
                if row.reads_lines:
                    topic = f"into-{number}-{jobs.index(row)}"
                    create_topic(server, topic, PARTITIONS)
                taken, cpu = run(row.command(topic), source if row.reads_lines else None, target)
                row.seconds.append(taken)
                row.cpu_seconds.append(cpu)
    print(f"{count:,} lines of 100 bytes\n\n| job | lines/s | CPU µs a line |\n|---|---|---|")
    for row in jobs:
        rate = count / statistics.median(row.seconds)
        print(f"| {row.name} | {rate:,.0f} | {statistics.median(row.cpu_seconds) / count * 1e6:.2f} |")


if __name__ == "__main__":
    main()
