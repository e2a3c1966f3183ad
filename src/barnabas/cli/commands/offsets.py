"""`barnabas offsets`: first, last and other offsets of topics; the flags of kafka-get-offsets work too."""

import re
from typing import TYPE_CHECKING

import click

from barnabas.cli import completion
from barnabas.cli.actions import ActionGroup
from barnabas.cli.connection import Connection, connected, json_option

if TYPE_CHECKING:
    from barnabas.base.types import TopicPartition
    from barnabas.client.admin import Admin
    from barnabas.client.admin_offsets import When
    from barnabas.client.errors import KafkaError

EXAMPLES = """
\b
Examples:
  barnabas offsets get orders                         start, end and number of records
  barnabas offsets get orders --time -1h              the first offsets of the last hour
  barnabas offsets get orders --time earliest -p 0
  barnabas offsets --bootstrap-server localhost:9092 --topic orders --time -1
"""

_ROLES = {
    "-1": "LATEST",
    "latest": "LATEST",
    "-2": "EARLIEST",
    "earliest": "EARLIEST",
    "-3": "MAX_TIMESTAMP",
    "max-timestamp": "MAX_TIMESTAMP",
    "-4": "EARLIEST_LOCAL",
    "earliest-local": "EARLIEST_LOCAL",
    "-5": "LATEST_TIERED",
    "latest-tiered": "LATEST_TIERED",
}
_RANGE = re.compile(r"(\d*)(-?)(\d*)")


@click.group(
    cls=ActionGroup,
    default="get",
    epilog=EXAMPLES,
    short_help="Show first, last and other offsets of topics.",
)
def command() -> None:
    """Show first, last and other offsets of topics."""


@command.command(short_help="Show offsets.")
@click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=completion.topics)
@click.option("--topic", "topic_flag", metavar="REGEX", help="Topics, as the argument is.")
@click.option("-p", "--partitions", "--partition", "numbers", metavar="0,1", help="Only these partitions.")
@click.option(
    "--topic-partitions", "ranges", metavar="T:0-2,U:1", help="Single partitions; 2- and -2 are open."
)
@click.option("--time", "when", metavar="WHEN",
              help="latest, earliest, max-timestamp (or -1, -2, -3), a time, -1h (ago), or ms.")  # fmt: skip
@click.option("--exclude-internal-topics", is_flag=True, help="Leave the cluster's own topics out.")
@json_option
@connected
def get(
    topics: tuple[str, ...],
    topic_flag: str | None,
    numbers: str | None,
    ranges: str | None,
    when: str | None,
    exclude_internal_topics: bool,
    as_json: bool,
    connection: Connection,
) -> int:
    """Show offsets of partitions: start and end, or the one of --time.

    Lines of one offset each are topic:partition:offset in a pipe, as kafka-get-offsets prints them; so are
    those without --time when the topic was not given as an argument.
    """
    from barnabas.cli.output import is_terminal

    if ranges is not None and (topics or topic_flag is not None or numbers is not None):
        raise click.UsageError("--topic-partitions says all; leave topics and --partitions out.")
    if when is None and not (topics or as_json or is_terminal()):
        when = "latest"
    wanted = [*topics, *([topic_flag] if topic_flag else [])]
    with connection.admin() as admin:
        places = _places(admin, wanted, numbers, ranges, exclude_internal_topics)
        errors = (
            _print_spans(admin, places, as_json) if when is None else _print_at(admin, places, when, as_json)
        )
    for error in errors:
        click.echo(f"barnabas: {error}", err=True)
    return 1 if errors else 0


def _print_at(admin: "Admin", places: "list[TopicPartition]", when: str, as_json: bool) -> "list[KafkaError]":
    from barnabas.cli.output import document, is_terminal, table

    found = admin.list_offsets(dict.fromkeys(places, _when(when)))
    rows = [(*where, None if at.offset < 0 else at.offset) for where, at in found.succeeded.items()]
    if as_json:
        document([{"topic": topic, "partition": number, "offset": at} for topic, number, at in rows])
    elif is_terminal():
        table(("TOPIC", "PARTITION", "OFFSET"), rows)
    else:
        for topic, number, at in rows:
            click.echo(f"{topic}:{number}:{'' if at is None else at}")
    return list(found.errors.values())


def _print_spans(admin: "Admin", places: "list[TopicPartition]", as_json: bool) -> "list[KafkaError]":
    from barnabas.cli.output import document, table
    from barnabas.client.admin_types import OffsetSpec

    starts = admin.list_offsets(dict.fromkeys(places, OffsetSpec.EARLIEST))
    ends = admin.list_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
    errors = {**starts.errors, **ends.errors}
    rows = [(*where, starts[where].offset, ends[where].offset) for where in places if where not in errors]
    if as_json:
        document([{"topic": t, "partition": p, "start": start, "end": end} for t, p, start, end in rows])
    else:
        columns = ("TOPIC", "PARTITION", "START", "END", "OFFSETS")
        table(columns, [(t, p, start, end, end - start) for t, p, start, end in rows])
    return list(errors.values())


def _when(text: str) -> "When":
    from barnabas.cli.times import parse_moment
    from barnabas.client.admin_types import OffsetSpec

    if text in _ROLES:
        return OffsetSpec[_ROLES[text]]
    return int(text) if text.isdigit() else parse_moment(text)


def _places(
    admin: "Admin", wanted: list[str], numbers: str | None, ranges: str | None, no_internal: bool
) -> "list[TopicPartition]":
    from barnabas.base.types import TopicPartition
    from barnabas.client.errors import UnknownTopic

    there = {topic.name: topic.partitions for topic in admin.list_topics(internal=not no_internal)}
    if ranges is not None:
        return [
            TopicPartition(name, number)
            for text in ranges.split(",")
            for name in _topics_of(text.partition(":")[0], there)
            for number in _numbers_of(text, there[name])
        ]
    try:
        only = None if numbers is None else {int(number) for number in numbers.split(",")}
    except ValueError as error:
        raise click.UsageError(f"--partitions takes numbers by comma, not {numbers!r}.") from error
    names = [name for text in wanted for name in _topics_of(text, there)] if wanted else list(there)
    places = [
        TopicPartition(name, number)
        for name in dict.fromkeys(names)
        for number in range(there[name])
        if only is None or number in only
    ]
    if not places and wanted:
        raise UnknownTopic(f"{', '.join(wanted)} has no partition {numbers}")
    return places


def _topics_of(text: str, there: dict[str, int]) -> list[str]:
    from barnabas.client.errors import UnknownTopic

    if text in there:
        return [text]
    try:
        found = [name for name in there if re.fullmatch(text, name)]
    except re.error as error:
        raise click.UsageError(f"{text!r} is neither a topic nor a pattern: {error}.") from error
    if not found:
        raise UnknownTopic(f"topic {text!r}: there is none of this name")
    return found


def _numbers_of(text: str, count: int) -> range:
    """The partitions of T:1, T:0-2 (2 is not in it), T:1-, T:-2 or T."""
    _, colon, numbers = text.partition(":")
    found = _RANGE.fullmatch(numbers)
    if not found:
        raise click.UsageError(f"--topic-partitions takes T:1, T:0-2, T:1-, T:-2 or T, not {text!r}.")
    first, dash, last = found.groups()
    if not colon or not numbers:
        return range(count)
    if not dash:
        return range(int(first), min(int(first) + 1, count))
    return range(int(first or 0), min(int(last or count), count))
