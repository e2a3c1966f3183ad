"""`barnabas perf`: how fast producing and consuming is, with the flags and lines of Kafka's perf tests."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from barnabas.cli import completion
from barnabas.cli.actions import ManyValuesCommand, one_of_both
from barnabas.cli.connection import FILE, Connection, assignments, connected, json_option

if TYPE_CHECKING:
    from barnabas.base.types import TopicPartition
    from barnabas.cli.perf_stats import Meter, Window
    from barnabas.client.consumer import Consumer
    from barnabas.client.errors import KafkaError
    from barnabas.client.hot import RecordFuture
    from barnabas.client.producer import Producer

EXAMPLES = """
\b
Examples:
  barnabas perf produce orders -n 1000000 --record-size 100
  barnabas perf produce orders -n 50000 --throughput 1000 --plot latency.svg
  barnabas perf consume orders -n 1000000
  barnabas perf produce --topic orders --num-records 1000000 --record-size 100 --throughput -1 \\
      --producer-props bootstrap.servers=localhost:9092 acks=1 linger.ms=5
"""

_MB: Final = 1024 * 1024
_BLOCK_BYTES: Final = 1 << 20
_POLL_RECORDS: Final = 10_000
_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_JAVA_DATE: Final = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}

plot_option = click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.svg",
    help="Draw times and rates.",
)
topic_argument = click.argument("topic", required=False, shell_complete=completion.topics)
topic_option = click.option("--topic", "topic_flag", metavar="NAME", help="The topic, as the argument is.")
metrics_option = click.option(
    "--print-metrics", is_flag=True, help="Print the client's own numbers at the end."
)


@click.group(epilog=EXAMPLES, short_help="Measure how fast producing and consuming is.")
def command() -> None:
    """Measure how fast producing and consuming is."""


@command.command(
    cls=ManyValuesCommand,
    many_values=["--producer-props"],
    short_help="Measure producing, as kafka-producer-perf-test.",
)
@topic_argument
@topic_option
@click.option("-n", "--num-records", type=click.IntRange(1), required=True, help="How many records to send.")
@click.option("-s", "--record-size", type=click.IntRange(1), help="Bytes of a value.  [default: 100]")
@click.option("--payload-file", type=FILE, help="Values to choose from at random, a line each.")
@click.option("--payload-delimiter", default="\\n", help="What ends a value of the file.  [default: \\n]")
@click.option("--payload-monotonic", is_flag=True, help="Values are 0, 1, 2 …")
@click.option(
    "--throughput", type=float, default=-1, help="Records per second at most; -1: no limit.  [default: -1]"
)
@click.option("--producer-props", "properties", multiple=True, metavar="KEY=VALUE...",
              help="Settings of the producer.")  # fmt: skip
@click.option("--producer.config", "producer_file", type=FILE, help="A file with settings of the producer.")
@click.option(
    "--reporting-interval", type=click.IntRange(1), default=5000, help="Of lines, in ms.  [default: 5000]"
)
@metrics_option
@plot_option
@json_option
@connected
def produce(
    topic: str | None,
    topic_flag: str | None,
    num_records: int,
    record_size: int | None,
    payload_file: Path | None,
    payload_delimiter: str,
    payload_monotonic: bool,
    throughput: float,
    properties: tuple[str, ...],
    producer_file: Path | None,
    reporting_interval: int,
    print_metrics: bool,
    plot: Path | None,
    as_json: bool,
    connection: Connection,
) -> int:
    """Send records and say how fast they were taken and how long each waited for its acknowledgement."""
    from barnabas.cli.line_writer import unescaped
    from barnabas.cli.perf_stats import Meter
    from barnabas.cli.plot import check_plot
    from barnabas.cli.progress import progress

    name = one_of_both(topic, topic_flag, "topic")
    if sum((record_size is not None, payload_file is not None, payload_monotonic)) > 1:
        raise click.UsageError("Say once what to send: --record-size, --payload-file or --payload-monotonic.")
    if plot is not None:
        check_plot(plot)
    if payload_file is not None:
        payloads = _from_file(payload_file, unescaped(payload_delimiter).encode())
    else:
        payloads = _numbers() if payload_monotonic else _random(record_size or 100)
    connection = connection.with_file(producer_file).with_properties(
        assignments(properties, "--producer-props")
    )
    with connection.producer({}) as producer, progress("producing", num_records) as show:
        producer.partitions_for(name)  # what is measured is sending, not the look-up
        meter = Meter(
            num_records, every_s=reporting_interval / 1000, report=None if as_json else _print_window
        )
        run = _Producing(producer, name, meter)
        run.send(num_records, payloads, throughput, show)
        metrics = producer.metrics()
    meter.finish()
    _print_total(meter, as_json, run.failed)
    if print_metrics and not as_json:
        _print_metrics(metrics)
    _plot(plot, f"{meter.records:,} records to {name}", meter, "time to acknowledgement")
    if run.error is not None:
        click.echo(f"barnabas: {run.failed} records failed; the first: {run.error}", err=True)
    return 1 if run.failed else 0


class _Flight:
    """Records of one batch: when each was sent, until the broker answers for all of them at once."""

    __slots__ = ("_counted", "_run", "ended_at", "error", "sent")

    def __init__(self, run: "_Producing") -> None:
        self._run = run
        self._counted = 0
        self.sent: list[tuple[float, int]] = []
        self.ended_at: float | None = None
        self.error: KafkaError | None = None

    def end(self, future: "RecordFuture") -> None:
        """The broker has answered; called on the producer's thread."""
        self.error = future.exception()
        self.ended_at = time.perf_counter()
        self.count()

    def count(self) -> None:
        """Counts what was not counted yet: a record may be noted here only after its batch has ended."""
        with self._run.lock:
            new, ended_at = self.sent[self._counted :], self.ended_at
            self._counted += len(new)
            if new and ended_at is not None:
                times_ms = [max(ended_at - at, 0.0) * 1000 for at, _ in new]
                self._run.count(len(new), sum(size for _, size in new), times_ms, self.error)


class _Producing:
    """Sends records and feeds the meter, once per batch: a callback for each record would cost too much."""

    def __init__(self, producer: "Producer", topic: str, meter: "Meter") -> None:
        self._producer = producer
        self._topic = topic
        self._meter = meter
        self.lock = threading.Lock()
        """Batches end on the producer's thread, late records of them are counted on the caller's."""
        self.failed = 0
        self.error: KafkaError | None = None

    def send(
        self, count: int, payloads: Iterator[bytes], throughput: float, show: Callable[[int], None]
    ) -> None:
        """Returns when all are acknowledged or have failed."""
        send, topic, now = self._producer.send, self._topic, time.perf_counter
        started = now()
        flights: dict[object, _Flight] = {}
        for number in range(count):
            if throughput > 0 and (early_s := started + number / throughput - now()) > 0.001:
                time.sleep(early_s)
            payload = next(payloads)
            sent_at = now()
            future = send(topic, payload)
            flight = flights.get(future.batch)
            if flight is None:
                flights = {batch: kept for batch, kept in flights.items() if kept.ended_at is None}
                flight = flights[future.batch] = _Flight(self)
                future.add_done_callback(flight.end)
            flight.sent.append((sent_at, len(payload)))
            if flight.ended_at is not None:
                flight.count()
            if number % 2048 == 0:
                show(number)
        self._flush()

    def _flush(self) -> None:
        from barnabas.client.errors import DeliveryFailed

        try:
            self._producer.flush()
        except DeliveryFailed as error:
            self.error = self.error or error  # counted batch by batch already

    def count(self, records: int, size_bytes: int, times_ms: list[float], error: "KafkaError | None") -> None:
        if error is None:
            self._meter.add(records, size_bytes, times_ms)
        else:
            self.failed += records
            self.error = self.error or error


def _print_window(window: "Window", seconds: float) -> None:
    click.echo(
        f"{window.records} records sent, {window.records / seconds:.1f} records/sec "
        f"({window.size_bytes / _MB / seconds:.2f} MB/sec), "
        f"{window.total_ms / window.measured:.1f} ms avg latency, {window.max_ms:.1f} ms max latency."
    )


def _print_total(meter: "Meter", as_json: bool, failed: int) -> None:
    from barnabas.cli.output import document

    facts = meter.facts()
    if as_json:
        document({**facts, "failed": failed})
        return
    times = facts["latency_ms"]
    click.echo(
        f"{meter.records} records sent, {meter.records_per_s:.1f} records/sec ({meter.mb_per_s:.2f} MB/sec), "
        f"{times['avg']:.2f} ms avg latency, {times['max']:.2f} ms max latency, {times['p50']:.2f} ms 50th, "
        f"{times['p95']:.2f} ms 95th, {times['p99']:.2f} ms 99th, {times['p99.9']:.2f} ms 99.9th."
    )


def _random(size: int) -> Iterator[bytes]:
    """Values of random letters, cut from one block at changing places."""
    import random

    letters = bytes(_ALPHABET[number % len(_ALPHABET)] for number in range(256))
    # The same bytes in every run, so that runs can be compared.
    block = random.Random(0).randbytes(_BLOCK_BYTES + size).translate(letters)
    at = 0
    while True:
        yield block[at : at + size]
        at = (at + size + 7) % _BLOCK_BYTES


def _numbers() -> Iterator[bytes]:
    number = 0
    while True:
        yield b"%d" % number
        number += 1


def _from_file(path: Path, delimiter: bytes) -> Iterator[bytes]:
    import random

    lines = [line for line in path.read_bytes().split(delimiter) if line]
    if not lines:
        raise click.UsageError(f"{path} is empty.")
    chance = random.Random(0)
    return iter(lambda: chance.choice(lines), None)


@command.command(short_help="Measure consuming, as kafka-consumer-perf-test.")
@topic_argument
@topic_option
@click.option("-n", "--messages", "--num-records", "count", type=click.IntRange(1), required=True,
              help="How many records to read.")  # fmt: skip
@click.option("--group", help="Read as a member of this group.  [default: no group]")
@click.option("--from-latest", is_flag=True, help="Only records that come from now on.")
@click.option(
    "--fetch-size", type=click.IntRange(1), default=1_048_576, help="Bytes per fetch.  [default: 1048576]"
)
@click.option("--timeout", "timeout_ms", type=click.IntRange(1), default=10_000,
              help="Give up when nothing comes for so long.  [default: 10000]")  # fmt: skip
@click.option("--consumer.config", "consumer_file", type=FILE, help="A file with settings of the consumer.")
@click.option("--show-detailed-stats", is_flag=True, help="A line for every --reporting-interval.")
@click.option(
    "--reporting-interval", type=click.IntRange(1), default=5000, help="Of lines, in ms.  [default: 5000]"
)
@click.option("--hide-header", is_flag=True, help="No line with the names of the columns.")
@click.option("--date-format", default="yyyy-MM-dd HH:mm:ss:SSS", help="Of times, as Java writes it.")
@metrics_option
@plot_option
@json_option
@connected
def consume(
    topic: str | None,
    topic_flag: str | None,
    count: int,
    group: str | None,
    from_latest: bool,
    fetch_size: int,
    timeout_ms: int,
    consumer_file: Path | None,
    show_detailed_stats: bool,
    reporting_interval: int,
    hide_header: bool,
    date_format: str,
    print_metrics: bool,
    plot: Path | None,
    as_json: bool,
    connection: Connection,
) -> int:
    """Read records and say how fast they came."""
    from barnabas.cli.perf_stats import Meter
    from barnabas.cli.plot import check_plot
    from barnabas.cli.progress import progress

    name = one_of_both(topic, topic_flag, "topic")
    if plot is not None:
        check_plot(plot)
    settings = {
        "max.partition.fetch.bytes": str(fetch_size),
        "auto.offset.reset": "latest" if from_latest else "earliest",
        **({} if group is None else {"group.id": group}),
    }
    lines = _ConsumeLines(date_format, detailed=show_detailed_stats, is_silent=as_json)
    with connection.with_file(consumer_file).consumer(settings) as consumer:
        joined = _join(consumer, name, group)
        if not hide_header:
            lines.header()
        meter = Meter(count, every_s=reporting_interval / 1000, report=lines.window)
        with progress("consuming", count) as show:
            _consume(consumer, meter, count, timeout_ms / 1000, show)
        metrics = consumer.metrics()
    meter.finish()
    rebalance_ms = round(joined() * 1000)
    lines.total(meter, rebalance_ms)
    if as_json:
        from barnabas.cli.output import document

        document({**meter.facts(), "rebalance_ms": rebalance_ms, "expected": count})
    if print_metrics and not as_json:
        _print_metrics(metrics)
    _plot(plot, f"{meter.records:,} records from {name}", meter, "time of a poll")
    if meter.records < count:
        click.echo(
            f"barnabas: only {meter.records} of {count} records came; then none for {timeout_ms} ms", err=True
        )
    return 1 if meter.records < count else 0


def _join(consumer: "Consumer", topic: str, group: str | None) -> Callable[[], float]:
    """Begins to read; the result tells how many seconds it took until partitions were assigned."""
    from barnabas.base.types import TopicPartition
    from barnabas.client.errors import UnknownTopic

    try:
        parts = consumer.partitions_for(topic, timeout=0.5)
    except UnknownTopic:
        raise UnknownTopic(f"topic {topic!r}: there is none of this name") from None
    if group is None:
        consumer.assign([TopicPartition(topic, part.index) for part in parts])
        return lambda: 0.0
    listener = _Joining()
    consumer.subscribe(topic, listener=listener)
    return lambda: listener.seconds


class _Joining:
    """Measures how long a group lets us wait for partitions."""

    def __init__(self) -> None:
        self._since = time.perf_counter()
        self.seconds = 0.0

    def on_assigned(self, partitions: "list[TopicPartition]") -> None:
        self.seconds += time.perf_counter() - self._since

    def on_revoked(self, partitions: "list[TopicPartition]") -> None:
        self._since = time.perf_counter()


def _consume(
    consumer: "Consumer", meter: "Meter", count: int, timeout_s: float, show: Callable[[int], None]
) -> None:
    now = time.perf_counter
    while (left := count - meter.records) > 0:
        asked_at = now()
        records = consumer.poll(timeout_s, min(left, _POLL_RECORDS))
        if not records:
            return
        size = sum(len(r.value or b"") + len(r.key or b"") for r in records)
        meter.add(len(records), size, [(now() - asked_at) * 1000])
        show(meter.records)


class _ConsumeLines:
    """The lines of Kafka's consumer perf test."""

    def __init__(self, date_format: str, *, detailed: bool, is_silent: bool) -> None:
        self._format = date_format
        self._detailed = detailed
        self._is_silent = is_silent
        self._started_ms = time.time() * 1000
        self._read_bytes = 0
        self._read = 0

    def header(self) -> None:
        first = "time, threadId" if self._detailed else "start.time, end.time"
        self._echo(
            f"{first}, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
            "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
        )

    def window(self, window: "Window", seconds: float) -> None:
        self._read_bytes += window.size_bytes
        self._read += window.records
        if not self._detailed:
            return
        mb_per_s, per_s = window.size_bytes / _MB / seconds, window.records / seconds
        self._echo(
            f"{self._date(time.time() * 1000)}, 0, {self._read_bytes / _MB:.4f}, {mb_per_s:.4f}, "
            f"{self._read}, {per_s:.4f}, 0, {round(seconds * 1000)}, {mb_per_s:.4f}, {per_s:.4f}"
        )

    def total(self, meter: "Meter", rebalance_ms: int) -> None:
        if self._detailed:
            return
        fetch_s = max(meter.seconds - rebalance_ms / 1000, 0.001)
        mb = meter.size_bytes / _MB
        ended_ms = self._started_ms + meter.seconds * 1000
        self._echo(
            f"{self._date(self._started_ms)}, {self._date(ended_ms)}, {mb:.4f}, {meter.mb_per_s:.4f}, "
            f"{meter.records}, {meter.records_per_s:.4f}, {rebalance_ms}, {round(fetch_s * 1000)}, "
            f"{mb / fetch_s:.4f}, {meter.records / fetch_s:.4f}"
        )

    def _date(self, ms: float) -> str:
        from datetime import datetime

        moment = datetime.fromtimestamp(ms / 1000)
        pattern = self._format.replace("%", "%%")
        for java, ours in _JAVA_DATE.items():
            pattern = pattern.replace(java, ours)
        return moment.strftime(pattern.replace("SSS", f"{moment.microsecond // 1000:03d}"))

    def _echo(self, line: str) -> None:
        if not self._is_silent:
            click.echo(line)


def _print_metrics(metrics: dict[str, float]) -> None:
    click.echo()
    for name, value in sorted(metrics.items()):
        click.echo(f"{name:<40} : {value:.3f}")


def _plot(path: Path | None, title: str, meter: "Meter", what: str) -> None:
    if path is None:
        return
    from barnabas.cli.plot import write_plot

    write_plot(path, title, meter, what=what)
    click.echo(f"Drawn in {path}.", err=True)
