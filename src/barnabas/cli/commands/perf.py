"""`barnabas perf`: how fast producing and consuming is, with the flags and lines of Kafka's perf tests."""

import functools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from barnabas.cli import completion
from barnabas.cli.actions import ManyValuesCommand, one_of_both
from barnabas.cli.connection import FILE, Connection, assignments, connected, json_option

if TYPE_CHECKING:
    from barnabas.base.types import TopicPartition
    from barnabas.cli.perf_stats import Meter
    from barnabas.client.consumer import Consumer

EXAMPLES = """
\b
Examples:
  barnabas perf produce orders -n 1000000 --record-size 100
  barnabas perf produce orders -n 50000 --throughput 1000 --plot latency.svg
  barnabas perf consume orders -n 1000000
  barnabas perf produce orders -n 100000 --transaction-duration-ms 500 --warmup-records 10000
  barnabas perf produce --topic orders --num-records 1000000 --record-size 100 --throughput -1 \\
      --producer-props bootstrap.servers=localhost:9092 acks=1 linger.ms=5
"""

_POLL_RECORDS: Final = 10_000
Function = TypeVar("Function", bound=Callable[..., Any])

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


def payload_options(function: Function) -> Function:
    """Adds the options that say what is sent; the command gets it as `payloads`."""

    @click.option("-s", "--record-size", type=click.IntRange(1), help="Bytes of a value.  [default: 100]")
    @click.option("--payload-file", type=FILE, help="Values to choose from at random, a line each.")
    @click.option("--payload-delimiter", default="\\n", help="What ends a value of the file.  [default: \\n]")
    @click.option("--payload-monotonic", is_flag=True, help="Values are 0, 1, 2 …")
    @functools.wraps(function)
    def command(
        *arguments: Any,
        record_size: int | None,
        payload_file: Path | None,
        payload_delimiter: str,
        payload_monotonic: bool,
        **more: Any,
    ) -> Any:
        from barnabas.cli.line_writer import unescaped
        from barnabas.cli.perf_sending import numbered_payloads, payloads_of, random_payloads

        if sum((record_size is not None, payload_file is not None, payload_monotonic)) > 1:
            raise click.UsageError(
                "Say once what to send: --record-size, --payload-file or --payload-monotonic."
            )
        if payload_file is not None:
            payloads = payloads_of(payload_file, unescaped(payload_delimiter).encode())
        else:
            payloads = numbered_payloads() if payload_monotonic else random_payloads(record_size or 100)
        return function(*arguments, payloads=payloads, **more)

    return command  # type: ignore[return-value]  # the same function, with other keywords


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
@payload_options
@click.option(
    "--throughput", type=float, default=-1, help="Records per second at most; -1: no limit.  [default: -1]"
)
@click.option("--transactional-id", metavar="ID",
              help="Send in transactions.  [default: an own one with the next flag]")  # fmt: skip
@click.option("--transaction-duration-ms", type=click.IntRange(1),
              help="Commit after so long.  [default: 3000 if there is a transactional id]")  # fmt: skip
@click.option("--warmup-records", type=click.IntRange(0), default=0,
              help="Leave the first ones out of a second line of results.  [default: 0]")  # fmt: skip
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
    payloads: Iterator[bytes],
    throughput: float,
    transactional_id: str | None,
    transaction_duration_ms: int | None,
    warmup_records: int,
    properties: tuple[str, ...],
    producer_file: Path | None,
    reporting_interval: int,
    print_metrics: bool,
    plot: Path | None,
    as_json: bool,
    connection: Connection,
) -> int:
    """Send records and say how fast they were taken and how long each waited for its acknowledgement."""
    from barnabas.cli.perf_lines import print_client_metrics, print_total, print_window
    from barnabas.cli.perf_sending import Sending, transactions_of
    from barnabas.cli.perf_stats import Meter
    from barnabas.cli.plot import check_plot
    from barnabas.cli.progress import progress

    name = one_of_both(topic, topic_flag, "topic")
    if plot is not None:
        check_plot(plot)
    connection = connection.with_file(producer_file).with_properties(
        assignments(properties, "--producer-props")
    )
    transactions = transactions_of(connection, transactional_id, transaction_duration_ms)
    with connection.producer(transactions.settings) as producer, progress("producing", num_records) as show:
        producer.partitions_for(name)  # what is measured is sending, not the look-up
        if transactions.duration_s is not None:
            producer.init_transactions()
        meter = Meter(
            num_records, every_s=reporting_interval / 1000, report=None if as_json else print_window
        )
        run = Sending(producer, name, meter, warmup=warmup_records, commit_every_s=transactions.duration_s)
        run.send(num_records, payloads, throughput, show)
        metrics = producer.metrics()
    meter.finish()
    print_total(meter, as_json, run.failed, run.steady)
    if print_metrics and not as_json:
        print_client_metrics(metrics)
    _plot(plot, f"{meter.records:,} records to {name}", meter, "time to acknowledgement")
    if run.error is not None:
        click.echo(f"barnabas: {run.failed} records failed; the first: {run.error}", err=True)
    return 1 if run.failed else 0


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
    from barnabas.cli.perf_lines import ConsumeLines, print_client_metrics
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
    lines = ConsumeLines(date_format, detailed=show_detailed_stats, is_silent=as_json)
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
        print_client_metrics(metrics)
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


def _plot(path: Path | None, title: str, meter: "Meter", what: str) -> None:
    if path is None:
        return
    from barnabas.cli.plot import write_plot

    write_plot(path, title, meter, what=what)
    click.echo(f"Drawn in {path}.", err=True)
