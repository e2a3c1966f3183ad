"""`barnabas produce`: lines of stdin or files become records.  Takes the flags of kafka-console-producer too.

Failures end the command as soon as they are known, with the records before them written.
"""

import sys
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from barnabas.cli import completion
from barnabas.cli.connection import FILE, Connection, assignments, connected

if TYPE_CHECKING:
    from barnabas.cli.line_reader import Parser
    from barnabas.client.hot import RecordFuture
    from barnabas.client.producer import Producer

EXAMPLES = """
\b
Examples:
  echo hello | barnabas produce orders
  barnabas produce orders events.log more.log
  barnabas produce orders -K : < pairs.txt            a:1 has the key a and the value 1
  barnabas produce orders -H source=import -z zstd < big.txt
  barnabas consume orders --from-beginning -e --json | barnabas produce copy --json
  barnabas produce --topic orders --property parse.key=true --property key.separator=,
"""

# Batches for pipes: as large as brokers take well, filled for a few milliseconds.
DEFAULTS: Final = {"batch.size": "262144", "linger.ms": "5"}
_KAFKA_FLAGS: Final = {
    "compression": "compression.type",
    "acks": "acks",
    "batch_size": "batch.size",
    "linger": "linger.ms",
    "retries": "retries",
    "request_timeout": "request.timeout.ms",
    "max_block": "max.block.ms",
    "max_memory": "buffer.memory",
    "retry_backoff": "retry.backoff.ms",
}
_STOP_S: Final = 5.0
_FUTURES_KEPT: Final = 64


@click.command(epilog=EXAMPLES, short_help="Send lines of stdin or files as records.")
@click.argument("topic", required=False, shell_complete=completion.topics)
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--topic", "topic_flag", metavar="NAME", help="The topic, as the argument is.")
@click.option(
    "-K", "--key-separator", metavar="TEXT", help="What ends the key in a line; no keys without it."
)
@click.option("-D", "--delimiter", default="\\n", metavar="TEXT", help="What ends a line.  [default: \\n]")
@click.option("-k", "--key", help="The key of every record.")
@click.option(
    "-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of each record."
)
@click.option("-p", "--partition", type=click.IntRange(0), help="The partition of every record.")
@click.option("--null", "null_marker", metavar="TEXT", help="A key or value that equals this is null.")
@click.option("--json", "as_json", is_flag=True, help="Lines are JSON, as of `barnabas consume --json`.")
@click.option("--keep-partitions", is_flag=True, help="With --json: into the partitions that lines name.")
@click.option("-z", "--compression-codec", "compression", is_flag=False, flag_value="gzip",
              help="none, gzip, snappy, lz4 or zstd.")  # fmt: skip
@click.option("--acks", "--request-required-acks", "acks", metavar="0|1|all", help="Who must have a record.")
@click.option("--sync", is_flag=True, help="Wait for each record before the next.")
@click.option("--property", "--reader-property", "reader", multiple=True, metavar="KEY=VALUE",
              help="Of the input: parse.key, key.separator, parse.headers, headers.delimiter, "
                   "headers.separator, headers.key.separator, null.marker, ignore.error.")  # fmt: skip
@click.option("--producer-property", "producer_properties", multiple=True, metavar="KEY=VALUE",
              help="A setting of the producer, as -X.")  # fmt: skip
@click.option("--producer.config", "producer_file", type=FILE, help="A file with settings.")  # fmt: skip
@click.option(
    "--batch-size", "--max-partition-memory-bytes", "batch_size", type=click.IntRange(0), hidden=True
)
@click.option("--timeout", "linger", type=click.IntRange(0), hidden=True)
@click.option("--message-send-max-retries", "retries", type=click.IntRange(0), hidden=True)
@click.option("--request-timeout-ms", "request_timeout", type=click.IntRange(1), hidden=True)
@click.option("--max-block-ms", "max_block", type=click.IntRange(0), hidden=True)
@click.option("--max-memory-bytes", "max_memory", type=click.IntRange(0), hidden=True)
@click.option("--retry-backoff-ms", "retry_backoff", type=click.IntRange(0), hidden=True)
@connected
def command(
    topic: str | None,
    files: tuple[Path, ...],
    topic_flag: str | None,
    key_separator: str | None,
    delimiter: str,
    key: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    null_marker: str | None,
    as_json: bool,
    keep_partitions: bool,
    sync: bool,
    reader: tuple[str, ...],
    producer_properties: tuple[str, ...],
    producer_file: Path | None,
    connection: Connection,
    **kafka_flags: str | int | None,
) -> None:
    """Send lines of stdin or files as records, each line one.

    Without --sync records are sent in batches; the command ends when all of them are acknowledged.
    """
    from barnabas.cli.line_writer import unescaped

    if topic_flag is not None and topic is not None:
        files = (Path(topic), *files)  # with --topic, arguments are files
    name = topic_flag or topic
    if not name:
        raise click.UsageError("Name the topic.")
    stated = {_KAFKA_FLAGS[flag]: str(value) for flag, value in kafka_flags.items() if value is not None}
    stated |= assignments(producer_properties, "--producer-property")
    fixed = [(header, value.encode()) for header, value in assignments(headers, "--header").items()]
    parse = _parser(as_json, keep_partitions, key_separator, null_marker, assignments(reader, "--property"))
    job = _Job(name, fixed, None if key is None else key.encode(), partition, sync)
    connection = connection.with_file(producer_file).with_properties(stated)
    with _sources(files) as sources, _ready(connection, name) as producer:
        for source in sources:
            job.run(producer, source, parse, unescaped(delimiter).encode())


def _parser(
    as_json: bool,
    keeps_partitions: bool,
    key_separator: str | None,
    null_marker: str | None,
    properties: dict[str, str],
) -> "Parser | None":
    """How lines are read; None when each is a value and nothing else."""
    from barnabas.cli.line_reader import LineFormat, json_parser, line_parser
    from barnabas.cli.line_writer import unescaped

    if as_json:
        if properties or key_separator is not None or null_marker is not None:
            raise click.UsageError("With --json a line says itself what is key and what is value.")
        return json_parser(keeps_partitions=keeps_partitions)
    if key_separator is not None:
        properties = {**properties, "parse.key": "true", "key.separator": unescaped(key_separator)}
    if null_marker is not None:
        properties = {**properties, "null.marker": null_marker}
    form = LineFormat.of_properties(properties)
    return None if form == LineFormat(ignores_errors=form.ignores_errors) else line_parser(form)


class _Job:
    """What every record has, and the hand-over of lines to the producer."""

    def __init__(
        self,
        topic: str,
        headers: list[tuple[str, bytes]],
        key: bytes | None,
        partition: int | None,
        sync: bool,
    ) -> None:
        self._topic = topic
        self._headers = headers
        self._key = key
        self._partition = partition
        self._sync = sync
        self._pending: deque[RecordFuture] = deque()

    def run(self, producer: "Producer", source: BinaryIO, parse: "Parser | None", delimiter: bytes) -> None:
        from barnabas.cli.line_reader import lines_of

        fixed = (parse, self._key, self._partition)
        is_plain = not (self._headers or self._sync) and all(each is None for each in fixed)
        asks = source.isatty() and sys.stderr.isatty()
        if asks:
            click.echo("> ", nl=False, err=True)
        for lines in lines_of(source, delimiter):
            self._check(
                self._send_values(producer, lines) if is_plain else self._send(producer, lines, parse)
            )
            if asks:
                click.echo("> ", nl=False, err=True)

    def _send_values(self, producer: "Producer", lines: list[bytes]) -> "RecordFuture":
        send, topic = producer.send, self._topic
        for line in lines:
            future = send(topic, line)
        return future

    def _send(
        self, producer: "Producer", lines: list[bytes], parse: "Parser | None"
    ) -> "RecordFuture | None":
        from barnabas.cli.line_reader import Input

        future: RecordFuture | None = None
        for value, key, headers, partition, timestamp_ms in parse(lines) if parse else map(Input, lines):
            future = producer.send(
                self._topic,
                value,
                self._key if key is None else key,
                headers=[*self._headers, *(headers or ())],
                partition=self._partition if partition is None else partition,
                timestamp_ms=timestamp_ms,
            )
            if self._sync:
                future.result()
        return future

    def _check(self, future: "RecordFuture | None") -> None:
        """Raises the error of an earlier record, so that an endless pipe ends when its records fail."""
        if future is not None:
            self._pending.append(future)
        while self._pending and (self._pending[0].done() or len(self._pending) > _FUTURES_KEPT):
            oldest = self._pending.popleft()
            if oldest.done() and (error := oldest.exception()) is not None:
                raise error


@contextmanager
def _sources(files: tuple[Path, ...]) -> Iterator[Iterator[BinaryIO]]:
    """The inputs, opened one after the other; `-` is stdin, as is no file at all."""

    def opened() -> Generator[BinaryIO, None, None]:
        for path in files or (Path("-"),):
            if str(path) == "-":
                yield sys.stdin.buffer
                continue
            with path.open("rb") as file:
                yield file

    # Looked at before a broker is asked: a missing file is the user's typing, and nothing is sent then.
    for path in files:
        if str(path) != "-" and not path.is_file():
            raise click.UsageError(f"{path} is no file that can be read.")
    with closing(opened()) as sources:
        yield sources


@contextmanager
def _ready(connection: Connection, topic: str) -> "Iterator[Producer]":
    """A producer that ends well: all sent at the end, a few seconds for the rest after Ctrl-C."""
    producer = connection.producer(DEFAULTS)
    try:
        _check_topic(connection, topic)
        yield producer
    except BaseException:
        from barnabas.client.errors import KafkaError

        try:
            producer.close(_STOP_S)
        except KafkaError as lost:
            click.echo(f"barnabas: {lost}", err=True)
        raise
    producer.close()


def _check_topic(connection: Connection, topic: str) -> None:
    """Says at once that a topic is missing; the producer would wait a minute for somebody to make it."""
    from barnabas.client.admin_types import ConfigResource
    from barnabas.client.errors import KafkaError, UnknownTopic

    with connection.admin() as admin:
        try:
            if any(found.name == topic for found in admin.list_topics(internal=True)):
                return
            resource = ConfigResource.broker(admin.describe_cluster().brokers[0].id)
            found = admin.describe_configs([resource], names=["auto.create.topics.enable"])[resource]
        except (KafkaError, IndexError):
            return  # it cannot be told; the producer will see
    if any(entry.value == "false" for entry in found.values()):
        raise UnknownTopic(
            f"topic {topic!r}: there is none of this name; `barnabas topics create {topic}` makes it"
        )
