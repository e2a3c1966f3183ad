"""`barnabas consume`: records to stdout.  Takes the flags of kafka-console-consumer too.

With a group, an offset is committed when its record was written out: a reader that goes away (`| head`)
loses nothing.
"""

import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from barnabas.cli import completion
from barnabas.cli.connection import FILE, Connection, assignments, connected
from barnabas.cli.output import reader_is_gone
from barnabas.cli.printing import Printing, printed

if TYPE_CHECKING:
    from barnabas.base.types import TopicPartition
    from barnabas.cli.line_writer import Renderer
    from barnabas.cli.positions import Position
    from barnabas.client.consumer import Consumer
    from barnabas.records.record import Record

EXAMPLES = """
\b
Examples:
  barnabas consume orders                             new records, until Ctrl-C
  barnabas consume orders --from-beginning -e         all there are
  barnabas consume orders --from -10m -n 5 -f '%t %p %o %k %s\\n'
  barnabas consume orders --from -1 -e                the last record of each partition
  barnabas consume orders --from 2026-05-01T10:00Z --to 2026-05-01T11:00Z --json
  barnabas consume orders --group billing --from-beginning
  barnabas consume --topic orders --from-beginning --property print.key=true --max-messages 10
\b
Fields of --format:
  %s value   %S its length   %t topic       %o offset       %h headers
  %k key     %K its length   %p partition   %T time in ms   %D time   %e leader epoch
"""

_POLL_RECORDS: Final = 20_000
_COMMIT_EVERY_S: Final = 5.0
_LOOK_EVERY_S: Final = 0.2
# Fetches as large as a pipe can take; what a slow reader does not take is not fetched either.
_DEFAULTS: Final = {"max.partition.fetch.bytes": "4194304", "enable.auto.commit": "false"}


@click.command(epilog=EXAMPLES, short_help="Print records of topics.")
@click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=completion.topics)
@click.option("--topic", "topic_flag", metavar="NAME", help="The topic, as the argument is.")
@click.option("--include", "--whitelist", "pattern", metavar="REGEX", help="Topics with a matching name.")
@click.option("--from", "start", metavar="WHERE", help="beginning, end, an offset, -5 (records before the "
              "end), -10m (ago), a time.  [default: end]")  # fmt: skip
@click.option("--to", "stop", metavar="WHERE", help="Where to stop, as --from; this record is not printed.")
@click.option("--from-beginning", is_flag=True, help="As --from beginning.")
@click.option("-e", "--exit", "ends", is_flag=True, help="Stop at the end as it is at the start.")
@click.option("-p", "--partition", "partitions", multiple=True, type=click.IntRange(0), help="Only this one.")
@click.option("--offset", metavar="WHERE", help="As --from, for one --partition.")
@click.option("-n", "--max-messages", type=click.IntRange(0), help="Stop after so many records.")
@click.option("--timeout-ms", type=click.IntRange(-1), help="Stop when nothing comes for so long.")
@click.option("-g", "--group", help="Read as a member of this group, and commit.")
@printed
@click.option("--isolation-level", type=click.Choice(["read_committed", "read_uncommitted"]),
              help="Whether open and aborted transactions show.  [default: read_uncommitted]")  # fmt: skip
@click.option("--skip-message-on-error", "skip_on_error", is_flag=True,
              help="Go on after a record that cannot be printed.")  # fmt: skip
@click.option("--consumer-property", "consumer_properties", multiple=True, metavar="KEY=VALUE",
              help="A setting of the consumer, as -X.")  # fmt: skip
@click.option("--consumer.config", "consumer_file", type=FILE, help="A file with settings.")  # fmt: skip
@connected
def command(
    topics: tuple[str, ...],
    topic_flag: str | None,
    pattern: str | None,
    start: str | None,
    stop: str | None,
    from_beginning: bool,
    ends: bool,
    partitions: tuple[int, ...],
    offset: str | None,
    max_messages: int | None,
    timeout_ms: int | None,
    group: str | None,
    printing: Printing,
    skip_on_error: bool,
    isolation_level: str | None,
    consumer_properties: tuple[str, ...],
    consumer_file: Path | None,
    connection: Connection,
) -> None:
    """Print the records of topics: new ones, or from where --from says.

    A record is its value and a line end, unless --format, --json or --property says otherwise.
    """
    from barnabas.cli.line_writer import tolerant
    from barnabas.cli.positions import parse_position

    names = [*topics, *([topic_flag] if topic_flag else [])]
    if bool(names) == (pattern is not None):
        raise click.UsageError("Name the topics, or give a pattern with --include.")
    begin = parse_position(_start_text(start, offset, from_beginning))
    end_text = "end" if ends else stop
    end = None if end_text is None else parse_position(end_text)
    render = printing.renderer()
    settings = assignments(consumer_properties, "--consumer-property")
    connection = connection.with_file(consumer_file).with_properties(settings)
    group = group or connection.setting("group.id")
    defaults = dict(_DEFAULTS)
    if isolation_level is not None:
        defaults["isolation.level"] = isolation_level
    if group is not None:
        _check_group_options(begin, end, partitions, start or offset)
        defaults |= {"group.id": group, "auto.offset.reset": _reset_rule(begin)}
    commits = group is not None and connection.setting("enable.auto.commit") != "false"
    connection = connection.with_properties({"enable.auto.commit": "false"})
    with connection.consumer(defaults) as consumer:
        printer = _Printer(consumer, tolerant(render) if skip_on_error else render, max_messages, timeout_ms)
        if group is not None:
            if names:
                _places(connection, consumer, names, None, ())  # a wrong name would be waited for silently
            consumer.subscribe(
                re.compile(pattern) if pattern else names, listener=printer if commits else None
            )
            printer.run(commits=commits)
            return
        places = _places(connection, consumer, names, pattern, partitions)
        printer.place(places, begin, end)
        printer.run()


def _start_text(start: str | None, offset: str | None, from_beginning: bool) -> str:
    stated = [text for text in (start, offset, "beginning" if from_beginning else None) if text is not None]
    if len(stated) > 1:
        raise click.UsageError("Say once where to begin: --from, --offset or --from-beginning.")
    return stated[0] if stated else "end"


def _check_group_options(
    begin: "Position", end: "Position | None", partitions: tuple[int, ...], stated: str | None
) -> None:
    from barnabas.cli.positions import Place

    if partitions or end is not None:
        raise click.UsageError(
            "A group shares partitions out itself: no --partition, --to or --exit with it."
        )
    if stated is not None and begin.place not in (Place.BEGINNING, Place.END):
        raise click.UsageError(
            "A group goes on where it is; `barnabas groups reset-offsets` moves it. "
            "--from is beginning or end here, for where it has never been."
        )


def _reset_rule(begin: "Position") -> str:
    from barnabas.cli.positions import Place

    return "earliest" if begin.place is Place.BEGINNING else "latest"


def _places(
    connection: Connection,
    consumer: "Consumer",
    names: Iterable[str],
    pattern: str | None,
    numbers: tuple[int, ...],
) -> "list[TopicPartition]":
    """The partitions meant.  Raises UnknownTopic, UsageError."""
    from barnabas.base.types import TopicPartition
    from barnabas.client.errors import UnknownTopic

    if pattern is not None:
        try:
            matches = re.compile(pattern).fullmatch
        except re.error as error:
            raise click.UsageError(f"{pattern!r} is no pattern: {error}.") from error
        with connection.admin() as admin:
            names = [topic.name for topic in admin.list_topics() if matches(topic.name)]
        if not names:
            raise UnknownTopic(f"no topic matches {pattern!r}")
    places = []
    for name in dict.fromkeys(names):
        try:
            # A moment: brokers may not know yet what was just made.
            count = len(consumer.partitions_for(name, timeout=0.5))
        except UnknownTopic:
            raise UnknownTopic(f"topic {name!r}: there is none of this name") from None
        missing = [number for number in numbers if number >= count]
        if missing:
            raise click.UsageError(f"{name} has no partition {missing[0]}; it has {count}.")
        places += [TopicPartition(name, number) for number in numbers or range(count)]
    return places


class _Printer:
    """Prints what a consumer gives until an end is reached; also its rebalance listener."""

    def __init__(
        self, consumer: "Consumer", render: "Renderer", limit: int | None, timeout_ms: int | None
    ) -> None:
        self._consumer = consumer
        self._render = render
        self._left = limit
        self._idle_s = None if timeout_ms is None or timeout_ms < 0 else timeout_ms / 1000
        self._stops: dict[TopicPartition, int] = {}
        self._is_bounded = False

    def place(self, places: "list[TopicPartition]", begin: "Position", end: "Position | None") -> None:
        """Reads these partitions from and to where the positions say."""
        from barnabas.cli.positions import offsets_of

        consumer = self._consumer
        starts = offsets_of(consumer, places, begin)
        if end is not None:
            self._is_bounded = True
            stops = offsets_of(consumer, places, end)
            self._stops = {where: stops[where] for where in places if starts[where] < stops[where]}
        consumer.assign(list(self._stops) if self._is_bounded else places)
        for where in self._stops or ([] if self._is_bounded else places):
            consumer.seek(where, starts[where])

    def run(self, *, commits: bool = False) -> None:
        """Raises BrokenPipeError when nobody reads any more; then the last records are not committed."""
        committed_at = heard_at = time.monotonic()
        try:
            while self._left != 0 and not (self._is_bounded and not self._stops):
                records = self._next()
                now = time.monotonic()
                if records:
                    heard_at = now
                elif self._idle_s is not None and now - heard_at >= self._idle_s:
                    break
                if commits and now - committed_at > _COMMIT_EVERY_S:
                    self._consumer.commit_async()
                    committed_at = now
        except KeyboardInterrupt:
            if commits:
                self._consumer.commit()
            raise
        if commits:
            self._consumer.commit()

    def _next(self) -> int:
        """Prints what one poll gives, and says how many records that were."""
        limit = _POLL_RECORDS if self._left is None else min(self._left, _POLL_RECORDS)
        # Looks up in between: a partition may end in what is never handed out (markers, gaps), and the reader
        # of our output may go while nothing comes.
        wait_s = _LOOK_EVERY_S if self._idle_s is None else min(_LOOK_EVERY_S, self._idle_s)
        records = self._consumer.poll(wait_s, limit)
        if self._stops:
            records = self._before_stops(records)
        if records:
            out = sys.stdout.buffer
            out.write(self._render(records))
            out.flush()
            if self._left is not None:
                self._left -= len(records)
        elif reader_is_gone():
            raise BrokenPipeError
        return len(records)

    def _before_stops(self, records: "list[Record]") -> "list[Record]":
        """The records to print; a partition that reached its stop is left."""
        reached = {
            where: stop for where, stop in self._stops.items() if self._consumer.position(where) >= stop
        }
        if not reached:
            return records
        self._consumer.pause(*reached)
        for where in reached:
            del self._stops[where]
        ends = {tuple(where): stop for where, stop in reached.items()}
        return [r for r in records if r.offset < ends.get((r.topic, r.partition), r.offset + 1)]

    def on_revoked(self, partitions: "list[TopicPartition]") -> None:
        """All that was handed out is printed by now, because poll is not called before."""
        self._consumer.commit()
