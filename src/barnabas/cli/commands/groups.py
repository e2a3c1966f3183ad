"""`barnabas groups`: list, describe, move and delete consumer groups.

The flags of kafka-consumer-groups work too.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli import completion
from barnabas.cli.actions import ActionGroup, names_of
from barnabas.cli.connection import Connection, connected, json_option

if TYPE_CHECKING:
    from barnabas.base.types import TopicPartition
    from barnabas.client.admin import Admin
    from barnabas.client.admin_types import OffsetChange, OffsetReset
    from barnabas.client.results import Results

EXAMPLES = """
\b
Examples:
  barnabas groups list
  barnabas groups describe billing                  lag in messages and in seconds
  barnabas groups describe billing --members --verbose
  barnabas groups reset-offsets billing --topic orders --to-datetime 2026-05-01T00:00:00.000
  barnabas groups reset-offsets billing --by-duration PT2H --execute
  barnabas groups delete billing
  barnabas groups --bootstrap-server localhost:9092 --describe --all-groups
"""

_ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")

group_arguments = click.argument("groups", nargs=-1, metavar="[GROUP]...", shell_complete=completion.groups)
group_flag = click.option(
    "--group", "by_flag", multiple=True, metavar="NAME", help="A group, as an argument."
)
all_groups_flag = click.option("--all-groups", "everyone", is_flag=True, help="All groups.")
timeout_option = click.option(
    "--timeout", "timeout_ms", type=click.IntRange(1), help="Longest time in ms.  [default: 60000]"
)


@click.group(
    cls=ActionGroup,
    actions={f"--{name}": name for name in _ACTIONS},
    epilog=EXAMPLES,
    short_help="List, describe, move and delete consumer groups.",
)
def command() -> None:
    """List, describe, move and delete consumer groups.

    An action is a word (`groups list`) or, as for kafka-consumer-groups, a flag (`groups --list`).
    """


@command.command("list", short_help="List groups.")
@click.option("--state", is_flag=False, flag_value="", help="Show states, or only groups in these, by comma.")
@click.option("--type", "kind", is_flag=False, flag_value="", help="Show types, or only groups of these.")
@timeout_option
@json_option
@connected
def list_(
    state: str | None, kind: str | None, timeout_ms: int | None, as_json: bool, connection: Connection
) -> None:
    """List groups, a name a line."""
    from barnabas.cli.output import document, is_terminal, table

    with connection.admin() as admin:
        found = admin.list_groups(states=_words(state), types=_words(kind), timeout_ms=timeout_ms)
    if as_json:
        document(
            [
                {"group": g.id, "type": g.type, "protocol_type": g.protocol_type, "state": g.state}
                for g in found
            ]
        )
    elif is_terminal() or state is not None or kind is not None:
        table(("GROUP", "TYPE", "STATE"), [(g.id, g.type, g.state) for g in found])
    else:
        for group in found:
            click.echo(group.id)


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]


@command.command(short_help="Show how far groups are, who their members are, or their states.")
@group_arguments
@group_flag
@all_groups_flag
@click.option("--offsets", "view", flag_value="offsets", default="offsets", help="Offsets and lag (default).")
@click.option("--members", "view", flag_value="members", help="Members and what they read.")
@click.option("--state", "view", flag_value="state", help="State, coordinator, number of members.")
@click.option("--verbose", is_flag=True, help="With --members: the partitions of each.")
@click.option("--no-seconds", is_flag=True, help="Do not read records to tell the lag in seconds.")
@timeout_option
@json_option
@connected
def describe(
    groups: tuple[str, ...],
    by_flag: tuple[str, ...],
    everyone: bool,
    view: str,
    verbose: bool,
    no_seconds: bool,
    timeout_ms: int | None,
    as_json: bool,
    connection: Connection,
) -> int:
    """Show how far groups are, in messages and seconds; or their members, or their states."""
    from barnabas.cli.group_views import group_json, lag_json, print_group
    from barnabas.cli.output import document

    with connection.admin() as admin:
        names = _named(admin, groups, by_flag, everyone)
        if view == "offsets":
            lags = admin.group_lags(names, seconds=not no_seconds, timeout_ms=timeout_ms)
            errors = lags.errors
            shown = [lag_json(lag) for lag in lags.succeeded.values()]
        else:
            found = admin.describe_groups(names, timeout_ms=timeout_ms)
            errors = found.errors
            shown = [group_json(group) for group in found.succeeded.values()]
    if as_json:
        document(shown)
    for group in () if as_json else shown:
        print_group(group, view, verbose)
    for error in errors.values():
        click.echo(f"barnabas: {error}", err=True)
    return 1 if errors else 0


@command.command(short_help="Delete groups with their offsets.")
@group_arguments
@group_flag
@all_groups_flag
@timeout_option
@json_option
@connected
def delete(
    groups: tuple[str, ...],
    by_flag: tuple[str, ...],
    everyone: bool,
    timeout_ms: int | None,
    as_json: bool,
    connection: Connection,
) -> int:
    """Delete groups with their offsets; a group with members cannot be deleted."""
    from barnabas.cli.output import report

    with connection.admin() as admin:
        names = _named(admin, groups, by_flag, everyone)
        results = admin.delete_groups(names, timeout_ms=timeout_ms)
    return report(results, done="Deleted group {}.", as_json=as_json)


@command.command("delete-offsets", short_help="Forget what a group has committed for topics.")
@group_arguments
@group_flag
@click.option("--topic", "topics", multiple=True, required=True, metavar="NAME[:0,1]", help="Of this topic.")
@timeout_option
@json_option
@connected
def delete_offsets(
    groups: tuple[str, ...],
    by_flag: tuple[str, ...],
    topics: tuple[str, ...],
    timeout_ms: int | None,
    as_json: bool,
    connection: Connection,
) -> int:
    """Forget what a group has committed for topics that it does not read now."""
    from barnabas.cli.output import report
    from barnabas.client.errors import UnknownTopic

    (group,) = _one(names_of(groups, by_flag, "group"))
    with connection.admin() as admin:
        names, places = _topics_and_places(topics)
        there = {found.name: found.partitions for found in admin.list_topics(internal=True)} if names else {}
        for name in names:
            if name not in there:
                raise UnknownTopic(f"topic {name!r}: there is none of this name")
            places += [_place(name, number) for number in range(there[name])]
        results = admin.delete_group_offsets(group, places, timeout_ms=timeout_ms)
    return report(results, done=f"Group {group} has no offset for {{}} any more.", as_json=as_json)


@command.command("reset-offsets", short_help="Move groups; shows the plan, and does it with --execute.")
@group_arguments
@group_flag
@all_groups_flag
@click.option("--topic", "topics", multiple=True, metavar="NAME[:0,1]", help="Only this topic or partitions.")
@click.option("--all-topics", is_flag=True, help="All topics that the group has offsets in (default).")
@click.option("--to-earliest", is_flag=True, help="To the first record there is.")
@click.option("--to-latest", is_flag=True, help="Past the last record.")
@click.option("--to-current", is_flag=True, help="Where the group is.")
@click.option("--to-offset", type=int, help="To this offset.")
@click.option("--shift-by", type=int, metavar="N", help="N records forward, or back if negative.")
@click.option("--to-datetime", metavar="TIME", help="To the first record at or after 2026-05-01T10:00:00.000 "
              "(UTC unless it has a zone).")  # fmt: skip
@click.option("--by-duration", metavar="DURATION", help="To the first record since so long: PT2H, 10m, 3d.")
@click.option("--from-file", type=click.File("r"), help="To the offsets of a file, as --export prints it.")
@click.option("--execute", is_flag=True, help="Do it; without this only the plan is shown.")
@click.option("--dry-run", is_flag=True, help="Only show the plan (default).")
@click.option("--export", is_flag=True, help="Print the plan as CSV: topic, partition, offset.")
@timeout_option
@json_option
@connected
def reset_offsets(
    groups: tuple[str, ...],
    by_flag: tuple[str, ...],
    everyone: bool,
    topics: tuple[str, ...],
    all_topics: bool,
    from_file: Any,
    execute: bool,
    dry_run: bool,
    export: bool,
    timeout_ms: int | None,
    as_json: bool,
    connection: Connection,
    **ways: Any,
) -> int:
    """Move groups without members; shows the plan, and does it with --execute.

    Offsets outside of the log become its start or end.
    """
    if execute and dry_run:
        raise click.UsageError("Either --execute or --dry-run.")
    if topics and all_topics:
        raise click.UsageError("Either --topic or --all-topics.")
    reset = None if from_file is not None and not _stated(ways) else _reset(ways)
    if reset is not None and from_file is not None:
        raise click.UsageError("Say once where to move to: --from-file stands alone.")
    names, places = _topics_and_places(topics)
    plans: dict[str, Results[TopicPartition, OffsetChange]] = {}
    with connection.admin() as admin:
        for group in _named(admin, groups, by_flag, everyone):
            if reset is None:
                plans[group] = _from_file(admin, group, from_file, execute, timeout_ms)
            else:
                plans[group] = admin.reset_group_offsets(
                    group, reset, topics=names, partitions=places, dry_run=not execute, timeout_ms=timeout_ms
                )
    _print_plan(plans, export=export, as_json=as_json)
    errors = [error for plan in plans.values() for error in plan.errors.values()]
    for error in errors:
        click.echo(f"barnabas: {error}", err=True)
    for group, plan in plans.items():
        if not len(plan):
            click.echo(f"barnabas: group {group!r} has no offsets; name topics with --topic", err=True)
    if not (execute or dry_run or export or as_json):
        click.echo("This is the plan and nothing was changed; --execute does it.", err=True)
    return 1 if errors or not all(map(len, plans.values())) else 0


def _stated(ways: dict[str, Any]) -> list[str]:
    return [name for name, value in ways.items() if value is not None and value is not False]


def _reset(ways: dict[str, Any]) -> "OffsetReset":
    """The one way that was chosen.  Raises UsageError."""
    from barnabas.cli.times import parse_duration, parse_moment
    from barnabas.client.admin_types import OffsetReset

    stated = _stated(ways)
    if len(stated) != 1:
        flags = ", ".join("--" + name.replace("_", "-") for name in ways)
        raise click.UsageError(f"Say where to move to, with one of {flags}.")
    value = ways[stated[0]]
    match stated[0]:
        case "to_earliest":
            return OffsetReset.earliest()
        case "to_latest":
            return OffsetReset.latest()
        case "to_current":
            return OffsetReset.current()
        case "to_offset":
            return OffsetReset.to_offset(value)
        case "shift_by":
            return OffsetReset.shift_by(value)
        case "to_datetime":
            return OffsetReset.to_datetime(parse_moment(value))
        case _:
            return OffsetReset.by_duration(parse_duration(value))


def _from_file(
    admin: "Admin", group: str, file: Any, execute: bool, timeout_ms: int | None
) -> "Results[TopicPartition, OffsetChange]":
    """The plan of a file of topic,partition,offset; done if asked for."""
    from barnabas.cli.offset_files import read_offsets
    from barnabas.client.admin_types import OffsetChange, OffsetSpec
    from barnabas.client.errors import KafkaError
    from barnabas.client.results import Results

    file.seek(0)
    wanted = read_offsets(file, group)
    committed = admin.list_group_offsets(group, timeout_ms=timeout_ms).succeeded
    starts = admin.list_offsets(dict.fromkeys(wanted, OffsetSpec.EARLIEST), timeout_ms=timeout_ms)
    ends = admin.list_offsets(dict.fromkeys(wanted, OffsetSpec.LATEST), timeout_ms=timeout_ms)
    plan: dict[TopicPartition, OffsetChange | KafkaError] = {}
    for where, offset in wanted.items():
        try:
            start, end = starts[where].offset, ends[where].offset
        except KafkaError as error:
            plan[where] = error
            continue
        stands = committed.get(where)
        after = min(max(offset, start), end)
        note = "" if after == offset else f"{offset} is outside of the log"
        plan[where] = OffsetChange(where, None if stands is None else stands.offset, after, start, end, note)
    changes = {where: change.after for where, change in plan.items() if isinstance(change, OffsetChange)}
    if execute and changes:
        written = admin.alter_group_offsets(group, changes, timeout_ms=timeout_ms)
        plan |= written.errors
    return Results(plan)


def _print_plan(
    plans: "dict[str, Results[TopicPartition, OffsetChange]]", *, export: bool, as_json: bool
) -> None:
    from barnabas.cli.offset_files import write_offsets
    from barnabas.cli.output import document, table

    changes = [(group, change) for group, plan in plans.items() for change in plan.succeeded.values()]
    if as_json:
        document(
            [
                {
                    "group": group,
                    "topic": change.partition.topic,
                    "partition": change.partition.partition,
                    "current_offset": change.before,
                    "new_offset": change.after,
                    "note": change.note or None,
                }
                for group, change in changes
            ]
        )
    elif export:
        for line in write_offsets(changes, with_group=len(plans) > 1):
            click.echo(line)
    elif changes:
        rows = [
            (
                group,
                change.partition.topic,
                change.partition.partition,
                change.after,
                change.before,
                change.note,
            )
            for group, change in changes
        ]
        table(("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET", "CURRENT-OFFSET", "NOTE"), rows)


def _named(admin: "Admin", given: Sequence[str], by_flag: Sequence[str], everyone: bool) -> list[str]:
    if everyone:
        if given or by_flag:
            raise click.UsageError("Either --all-groups or names.")
        return [group.id for group in admin.list_groups()]
    return names_of(given, by_flag, "group")


def _one(names: list[str]) -> list[str]:
    if len(names) != 1:
        raise click.UsageError("Name one group.")
    return names


def _topics_and_places(texts: Iterable[str]) -> "tuple[list[str], list[TopicPartition]]":
    """Whole topics, and single partitions of NAME:0,1.  Raises UsageError."""
    topics: list[str] = []
    places: list[TopicPartition] = []
    for text in texts:
        name, colon, numbers = text.rpartition(":")
        if not colon:
            topics.append(text)
            continue
        try:
            places += [_place(name, int(number)) for number in numbers.split(",")]
        except ValueError as error:
            raise click.UsageError(f"--topic takes NAME or NAME:0,1, not {text!r}.") from error
    return topics, places


def _place(topic: str, number: int) -> "TopicPartition":
    from barnabas.base.types import TopicPartition

    return TopicPartition(topic, number)
