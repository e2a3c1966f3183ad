"""The broker beside Apache Kafka: same client, same bytes, same topic settings, same run.

    python -m bench.macro.broker [--quick] [--rounds N] [--only TEXT] [--barnabas-only] [--folder /dev/shm]

Every row is measured for both brokers one after the other, several rounds, and the median is printed, so that
a busy moment of the machine falls on both.  Both are warmed up before the first row (JIT, page cache), and a
first round of each row is thrown away.
`ratio` is Barnabas over Kafka; `aim` is what is asked of that ratio, or of the value where a unit stands.
CPU is that of the broker process.  The driver shares the machine with the brokers.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bench import _clients, _raw
from bench._brokers import (
    Server,
    cpu_seconds,
    create_topic,
    delete_topics,
    make,
    resident_bytes,
    running,
)

Metrics = dict[str, float]

SMALL = (100, 550)  # bytes of a value, records of a batch: about 64 KB
LARGE = (1024, 860)  # about 900 KB
PREFILL_BYTES = 300_000_000
MEGABYTE = 1 << 20


@dataclass(slots=True)
class Run:
    """One broker in a comparison, and what its rows need."""

    name: str
    server: Server
    seconds: float
    records: int
    topics: int = 0
    live: list[str] = field(default_factory=list)
    read_topic: str = ""
    read_end: int = 0

    @property
    def at(self) -> str:
        return self.server.bootstrap_servers

    def fresh_topic(self, partitions: int = 1) -> str:
        """The name of a new topic.  All names of one comparison are equally long."""
        self.topics += 1
        topic = f"t{self.topics:04d}"
        create_topic(self.server, topic, partitions)
        self.live.append(topic)
        _raw.await_leaders(self.at, topic, partitions)
        return topic

    def drop_topics(self) -> None:
        """Give back the room of what was written, so that the next row finds an empty disk queue sooner."""
        delete_topics(self.server, [topic for topic in self.live if topic != self.read_topic])
        self.live.clear()

    def cpu(self) -> float:
        return cpu_seconds(self.server.pid)


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    measure: Callable[[Run], Metrics]
    aims: dict[str, str] = field(default_factory=dict)


def _produce(run: Run, shape: tuple[int, int], acks: int, in_flight: int, partitions: int = 1) -> Metrics:
    topic = run.fresh_topic(partitions)
    records = _raw.batch(*shape)
    requests = [_raw.produce_request(topic, number, acks, records) for number in range(partitions)]
    before = run.cpu()
    rate = _raw.produce(run.at, topic, requests, in_flight=in_flight, seconds=run.seconds)
    spent = run.cpu() - before
    if shape[1] == 1:
        return {"requests/s": rate.requests_per_s, "CPU µs each": spent / rate.requests * 1e6}
    return {"MB/s": rate.megabytes_per_s, "CPU-s/GB": spent / rate.bytes * 1e9}


def produce_small_batches(run: Run) -> Metrics:
    return _produce(run, SMALL, 1, 5)


def produce_small_batches_all(run: Run) -> Metrics:
    return _produce(run, SMALL, -1, 5)


def produce_small_batches_12(run: Run) -> Metrics:
    return _produce(run, SMALL, -1, 5, partitions=12)


def produce_large_batches(run: Run) -> Metrics:
    return _produce(run, LARGE, 1, 5)


def produce_single_records(run: Run) -> Metrics:
    return _produce(run, (100, 1), 1, 32)


def produce_one_at_a_time(run: Run) -> Metrics:
    topic = run.fresh_topic()
    one = _raw.produce_request(topic, 0, 1, _raw.batch(100, 1))
    return _latency(_raw.produce_latencies(run.at, topic, one, seconds=run.seconds), "µs")


def _latency(taken: list[float], unit: str) -> Metrics:
    return {
        f"p50 {unit}": _raw.percentile(taken, 0.50),
        f"p99 {unit}": _raw.percentile(taken, 0.99),
        f"p99.9 {unit}": _raw.percentile(taken, 0.999),
    }


def _prefill(run: Run) -> None:
    """A topic to read from, the same for all rows and rounds."""
    if run.read_topic:
        return
    run.read_topic = run.fresh_topic()
    records = _raw.batch(*SMALL)
    one = _raw.produce_request(run.read_topic, 0, 1, records)
    fill(run.at, run.read_topic, one, PREFILL_BYTES // len(records))
    run.read_end = _raw.log_end(run.at, run.read_topic)


def _fetch(run: Run, max_bytes: int, in_flight: int = 1) -> Metrics:
    _prefill(run)
    before = run.cpu()
    if in_flight == 1:
        rate = _raw.fetch(run.at, run.read_topic, run.read_end, max_bytes=max_bytes, seconds=run.seconds)
    else:
        # Offset 0 is the record that `fresh_topic` wrote; batches of equal length follow.
        offsets = list(range(1, run.read_end, SMALL[1]))
        rate = _raw.fetch_pipelined(
            run.at, run.read_topic, offsets, max_bytes=max_bytes, in_flight=in_flight, seconds=run.seconds
        )
    return {"MB/s": rate.megabytes_per_s, "CPU-s/GB": (run.cpu() - before) / rate.bytes * 1e9}


def fill(bootstrap_servers: str, topic: str, request: bytes, count: int) -> None:
    """Send a request `count` times, five at a time."""
    with _raw.connect(bootstrap_servers) as connection:
        sent = answered = 0
        while answered < count:
            while sent < count and sent - answered < 5:
                connection.socket.sendall(request)
                sent += 1
            for frame in connection.frames():
                _raw.check_produced(frame, len(topic))
                answered += 1


def fetch_large(run: Run) -> Metrics:
    return _fetch(run, MEGABYTE)


def fetch_small(run: Run) -> Metrics:
    return _fetch(run, 64 * 1024)


def fetch_small_pipelined(run: Run) -> Metrics:
    return _fetch(run, 64 * 1024, in_flight=5)


def end_to_end(run: Run) -> Metrics:
    topic = run.fresh_topic()
    return _latency(_raw.end_to_end(run.at, topic, per_second=1000, seconds=max(run.seconds, 2)), "ms")


def _kcat(run: Run, record_bytes: int) -> Metrics:
    topic = run.fresh_topic()
    count = run.records * 100 // record_bytes
    lines = _clients.lines_file(record_bytes, count)
    try:
        produced = _clients.kcat_produce(run.at, topic, lines)
    finally:
        lines.unlink()
    consumed = _clients.kcat_consume(run.at, topic, count)
    return {"produced k/s": count / produced / 1e3, "consumed k/s": count / consumed / 1e3}


def kcat_small(run: Run) -> Metrics:
    return _kcat(run, 100)


def kcat_large(run: Run) -> Metrics:
    return _kcat(run, 1024)


def _confluent(run: Run, record_bytes: int) -> Metrics:
    topic = run.fresh_topic()
    count = run.records * 100 // record_bytes // 2
    produced = _clients.confluent_produce(run.at, topic, b"x" * record_bytes, count)
    consumed = _clients.confluent_consume(run.at, topic, count)
    return {"produced k/s": count / produced / 1e3, "consumed k/s": count / consumed / 1e3}


def confluent_small(run: Run) -> Metrics:
    return _confluent(run, 100)


def confluent_large(run: Run) -> Metrics:
    return _confluent(run, 1024)


def start_up(run: Run) -> Metrics:
    """A second server of the kind, from nothing to its first acknowledged record."""
    server = make(run.name)
    try:
        start = time.perf_counter()
        server.start()
        topic = "first"
        request = _raw.produce_request(topic, 0, 1, _raw.batch(100, 1))
        while True:
            try:
                _raw.make_topic(server.bootstrap_servers, topic)
                fill(server.bootstrap_servers, topic, request, 1)
                break
            except (RuntimeError, OSError):
                # Not ready to lead yet; a client would ask again as soon.
                if time.perf_counter() > start + 60:
                    raise
        taken = time.perf_counter() - start
        time.sleep(1)
        return {"first record, s": taken, "idle MB": resident_bytes(server.pid) / 1e6}
    finally:
        server.close()


def memory(run: Run) -> Metrics:
    return {"resident MB": resident_bytes(run.server.pid) / 1e6}


ROWS = (
    Row(
        "raw produce, 64-KB batches of 100-B records, acks=1",
        produce_small_batches,
        {"MB/s": "≥ 4", "CPU-s/GB": "≤ 0.2"},
    ),
    Row("the same, acks=all", produce_small_batches_all, {"MB/s": "≥ 4"}),
    Row("the same, acks=all, 12 partitions", produce_small_batches_12, {"MB/s": "≥ 4"}),
    Row(
        "raw produce, 900-KB batches of 1-KB records",
        produce_large_batches,
        {"MB/s": "≥ 4", "CPU-s/GB": "≤ 0.2"},
    ),
    Row("1-record requests, 32 in flight", produce_single_records, {"requests/s": "≥ 4"}),
    Row(
        "1-record produce, one at a time",
        produce_one_at_a_time,
        {"p50 µs": "≤ 0.6", "p99 µs": "≤ 0.5", "p99.9 µs": "≤ 0.33"},
    ),
    Row("raw fetch, 1 MB a request", fetch_large, {"MB/s": "≥ 1.3", "CPU-s/GB": "≤ 1"}),
    Row("raw fetch, 64 KB a request", fetch_small, {"MB/s": "≥ 4"}),
    Row("the same, 5 in flight", fetch_small_pipelined),
    Row(
        "end to end at 1,000 records/s",
        end_to_end,
        {"p50 ms": "≤ 0.6", "p99 ms": "≤ 0.33", "p99.9 ms": "≤ 0.33"},
    ),
    Row("librdkafka in C (kcat), 100 B", kcat_small, {}),
    Row("librdkafka in C (kcat), 1 KB", kcat_large, {"produced k/s": "client", "consumed k/s": "client"}),
    Row("confluent-kafka, 100 B", confluent_small, {}),
    Row("confluent-kafka, 1 KB", confluent_large, {}),
    Row("process start", start_up, {"first record, s": "< 0.4 s", "idle MB": "≤ 60 MB"}),
    Row("after all of the above", memory, {"resident MB": "≤ 150 MB"}),
)


def warm_up(runs: list[Run], seconds: float) -> None:
    """Let the JIT see every kind of request for a while: cold, Kafka is several times slower than it is."""
    kinds = (produce_small_batches, produce_large_batches, produce_single_records, fetch_small, fetch_large)
    for run in runs:
        measured, run.seconds = run.seconds, seconds / len(kinds)
        for kind in kinds:
            kind(run)
            run.drop_topics()
        run.seconds = measured


def measure(runs: list[Run], rows: list[Row], rounds: int) -> dict[tuple[str, str], list[Metrics]]:
    """Rounds of every row for every broker; (row, broker) → what each round gave."""
    found: dict[tuple[str, str], list[Metrics]] = {}
    for row in rows:
        for number in range(rounds + 1):
            for run in runs:
                metrics = row.measure(run)
                run.drop_topics()
                if number > 0:
                    found.setdefault((row.name, run.name), []).append(metrics)
    return found


def table(found: dict[tuple[str, str], list[Metrics]], rows: list[Row], names: list[str]) -> Iterator[str]:
    """The lines of a markdown table: one a metric, medians, and the ratio of the last broker to the first."""
    yield f"| row | metric | {' | '.join(names)} | ratio | aim |"
    yield "|---|---|" + "---:|" * (len(names) + 2)
    for row in rows:
        for metric in found[row.name, names[0]][0]:
            medians = [statistics.median(each[metric] for each in found[row.name, name]) for name in names]
            ratio = f"{medians[-1] / medians[0]:.2f}" if len(medians) > 1 and medians[0] else ""
            shown = " | ".join(figure(value) for value in medians)
            yield f"| {row.name} | {metric} | {shown} | {ratio} | {row.aims.get(metric, '')} |"


def figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The broker beside Apache Kafka.")
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds of each row")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one measurement")
    parser.add_argument("--warm-up", type=float, default=20.0, help="seconds of load before the first row")
    parser.add_argument("--quick", action="store_true", help="one round of half a second each")
    parser.add_argument(
        "--only", default="", help="only rows whose name contains this, or one of several parted by |"
    )
    parser.add_argument("--folder", help="where both keep their data; with /dev/shm no disk is in play")
    parser.add_argument("--barnabas-only", action="store_true", help="without Apache Kafka")
    chosen = parser.parse_args(arguments)
    rounds, seconds, records, warm_seconds = chosen.rounds, chosen.seconds, 1_000_000, chosen.warm_up
    if chosen.quick:
        rounds, seconds, records, warm_seconds = 1, 0.5, 200_000, 5.0
    if chosen.folder is not None:
        tempfile.tempdir = chosen.folder
    rows = [row for row in ROWS if any(part in row.name for part in chosen.only.split("|"))]
    names = ["barnabas"] if chosen.barnabas_only else ["kafka", "barnabas"]
    with running(names) as servers:
        runs = [Run(name, servers[name], seconds, records) for name in names]
        warm_up(runs, warm_seconds)
        found = measure(runs, rows, rounds)
    print("\n".join(table(found, rows, names)))


if __name__ == "__main__":
    main()
