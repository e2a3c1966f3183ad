"""`barnabas delete-records`: delete the oldest records of partitions.

The file of kafka-delete-records works too.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli import completion
from barnabas.cli.connection import FILE, Connection, connected, json_option

if TYPE_CHECKING:
    from barnabas.base.types import TopicPartition
    from barnabas.client.admin import Admin

EXAMPLES = """
\b
Examples:
  barnabas delete-records orders -p 0 --before 1200
  barnabas delete-records orders --before -7d         records older than a week
  barnabas delete-records orders --all --dry-run
  barnabas delete-records --offset-json-file offsets.json
"""


@click.command(epilog=EXAMPLES, short_help="Delete the oldest records of partitions.")
@click.argument("topic", required=False, shell_complete=completion.topics)
@click.option(
    "-p", "--partition", "numbers", multiple=True, type=click.IntRange(0), help="Only this partition."
)
@click.option("--before", metavar="WHERE", help="The first record to keep: an offset, -7d (ago), a time.")
@click.option("--all", "everything", is_flag=True, help="All records there are now.")
@click.option(
    "--offset-json-file", "file", type=FILE, help="Partitions with the first offset to keep (-1: none)."
)
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@json_option
@connected
def command(
    topic: str | None,
    numbers: tuple[int, ...],
    before: str | None,
    everything: bool,
    file: Path | None,
    dry_run: bool,
    as_json: bool,
    connection: Connection,
) -> int:
    """Delete the oldest records of partitions, up to an offset or a time.

    The records are gone for every reader at once, and for good.
    """
    from barnabas.cli.offset_files import read_json_offsets

    if (file is None) == (topic is None):
        raise click.UsageError("Name the topic, or a file with --offset-json-file.")
    if file is None and (before is None) != everything:
        raise click.UsageError("Say what to delete: --before or --all.")
    with connection.admin() as admin:
        if file is not None:
            limits = read_json_offsets(file.read_text(encoding="utf-8"))
        else:
            assert topic is not None, "checked above"
            limits = _limits(admin, topic, numbers, before)
        starts, limits = _ranges(admin, limits)
        errors = {}
        if not dry_run:
            results = admin.delete_records(limits)
            errors = {where: str(error) for where, error in results.errors.items()}
            limits = results.succeeded
    _show(starts, limits, dry_run, as_json)
    for text in errors.values():
        click.echo(f"barnabas: {text}", err=True)
    return 1 if errors else 0


def _limits(
    admin: "Admin", topic: str, numbers: tuple[int, ...], before: str | None
) -> "dict[TopicPartition, int]":
    """The first offset to keep in each partition, -1 for none.  Raises UnknownTopic, UsageError."""
    from barnabas.base.types import TopicPartition
    from barnabas.cli.positions import Place, parse_position
    from barnabas.client.errors import UnknownTopic

    # The list and not the description: that waits for a topic which may be just being made.
    there = {found.name: found.partitions for found in admin.list_topics(internal=True)}
    if topic not in there:
        raise UnknownTopic(f"topic {topic!r}: there is none of this name")
    count = there[topic]
    missing = [number for number in numbers if number >= count]
    if missing:
        raise click.UsageError(f"{topic} has no partition {missing[0]}; it has {count}.")
    places = [TopicPartition(topic, number) for number in numbers or range(count)]
    if before is None:
        return dict.fromkeys(places, -1)
    position = parse_position(before)
    match position.place:
        case Place.OFFSET:
            return dict.fromkeys(places, position.amount)
        case Place.TIME:
            found = admin.list_offsets(dict.fromkeys(places, position.amount)).check()
            return {where: at.offset for where, at in found.items()}
        case _:
            raise click.UsageError(f"--before takes an offset or a time, not {before!r}.")


def _ranges(
    admin: "Admin", limits: "dict[TopicPartition, int]"
) -> "tuple[dict[TopicPartition, int], dict[TopicPartition, int]]":
    """Where the logs start, and where they will: -1 is their end, and nothing goes back."""
    from barnabas.client.admin_types import OffsetSpec

    starts = admin.list_offsets(dict.fromkeys(limits, OffsetSpec.EARLIEST)).check()
    ends = admin.list_offsets(dict.fromkeys(limits, OffsetSpec.LATEST)).check()
    first = {where: starts[where].offset for where in limits}
    after = {where: ends[where].offset if limit < 0 else limit for where, limit in limits.items()}
    return first, {where: max(after[where], first[where]) for where in limits}


def _show(
    starts: "dict[TopicPartition, int]", after: "dict[TopicPartition, int]", dry_run: bool, as_json: bool
) -> None:
    from barnabas.cli.output import document, table

    if as_json:
        document(
            [
                {"topic": w.topic, "partition": w.partition, "low_watermark": low, "was": starts[w]}
                for w, low in after.items()
            ]
        )
        return
    rows = [(w.topic, w.partition, starts[w], low, low - starts[w]) for w, low in after.items()]
    table(("TOPIC", "PARTITION", "START", "LOW-WATERMARK", "DELETED"), rows)
    if dry_run:
        click.echo("This is the plan; nothing was deleted.", err=True)
