"""`barnabas topics`: make, list, describe, change and delete topics.  Takes the flags of kafka-topics too."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli import completion
from barnabas.cli.actions import ActionGroup, names_of
from barnabas.cli.connection import Connection, assignments, connected, json_option

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.metadata import PartitionInfo, TopicInfo

EXAMPLES = """
\b
Examples:
  barnabas topics create orders -p 6 -c retention.ms=86400000
  barnabas topics list
  barnabas topics describe orders --json
  barnabas topics alter orders -p 12
  barnabas topics delete orders
  barnabas topics --bootstrap-server localhost:9092 --create --topic orders --partitions 6
"""

topic_arguments = click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=completion.topics)
topic_flag = click.option(
    "--topic", "by_flag", multiple=True, metavar="NAME", help="A topic, as an argument is."
)


@click.group(
    cls=ActionGroup,
    actions={f"--{name}": name for name in ("create", "list", "describe", "alter", "delete")},
    epilog=EXAMPLES,
    short_help="Make, list, describe, change and delete topics.",
)
def command() -> None:
    """Make, list, describe, change and delete topics.

    An action is a word (`topics list`) or, as for kafka-topics, a flag (`topics --list`).
    """


@command.command(short_help="Make topics.")
@topic_arguments
@topic_flag
@click.option("-p", "--partitions", type=click.IntRange(1), help="How many.  [default: the cluster's]")
@click.option(
    "-r", "--replication-factor", type=click.IntRange(1), help="Copies of each.  [default: the cluster's]"
)
@click.option("-c", "--config", "configs", multiple=True, metavar="KEY=VALUE", help="A setting of the topic.")
@click.option(
    "--replica-assignment",
    metavar="B1:B2,...",
    help="Brokers of each partition: partitions by comma, replicas by colon, the leader first.",
)
@click.option("--if-not-exists", is_flag=True, help="A topic that exists is no error.")
@click.option("--dry-run", is_flag=True, help="Only let the cluster check it.")
@json_option
@connected
def create(
    topics: tuple[str, ...],
    by_flag: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[str, ...],
    replica_assignment: str | None,
    if_not_exists: bool,
    dry_run: bool,
    as_json: bool,
    connection: Connection,
) -> int:
    """Make topics."""
    from barnabas.base.types import uuid_text
    from barnabas.cli.output import document
    from barnabas.client.admin_types import NewTopic
    from barnabas.client.errors import TopicExists

    if replica_assignment is not None and (partitions is not None or replication_factor is not None):
        raise click.UsageError("--replica-assignment says all; leave --partitions, --replication-factor out.")
    wanted = [
        NewTopic(
            name,
            partitions or -1,
            replication_factor or -1,
            assignments(configs, "--config"),
            _assignment(replica_assignment),
        )
        for name in names_of(topics, by_flag, "topic")
    ]
    with connection.admin() as admin:
        results = admin.create_topics(wanted, validate_only=dry_run)
    errors = [
        error for error in results.errors.values() if not (if_not_exists and isinstance(error, TopicExists))
    ]
    made = results.succeeded.values()
    if as_json:
        document(
            [
                {
                    "name": topic.name,
                    "id": uuid_text(topic.id),
                    "partitions": topic.partitions,
                    "replication_factor": topic.replication_factor,
                }
                for topic in made
            ]
        )
    for topic in () if as_json else made:
        click.echo(f"{'Could create' if dry_run else 'Created'} topic {topic}.")
    for error in errors:
        click.echo(f"barnabas: {error}", err=True)
    return 1 if errors else 0


def _assignment(text: str | None) -> list[list[int]] | None:
    if text is None:
        return None
    try:
        return [[int(broker) for broker in replicas.split(":")] for replicas in text.split(",")]
    except ValueError as error:
        raise click.UsageError(f"--replica-assignment takes 1:2,2:3, not {text!r}.") from error


@command.command("list", short_help="List topics.")
@topic_arguments
@topic_flag
@click.option(
    "--internal/--exclude-internal", default=True, help="The cluster's own topics too.  [default: internal]"
)
@json_option
@connected
def list_(
    topics: tuple[str, ...],
    by_flag: tuple[str, ...],
    internal: bool,
    as_json: bool,
    connection: Connection,
) -> None:
    """List topics, a name a line; all, or those named or matched by a pattern."""
    from barnabas.base.types import uuid_text
    from barnabas.cli.output import document, is_terminal, table

    with connection.admin() as admin:
        found = admin.list_topics(internal=internal)
    if names := [*topics, *by_flag]:
        wanted = set(_matching(names, [topic.name for topic in found]))
        found = [topic for topic in found if topic.name in wanted]
    if as_json:
        document(
            [
                {
                    "name": topic.name,
                    "id": uuid_text(topic.id),
                    "partitions": topic.partitions,
                    "internal": topic.is_internal,
                }
                for topic in found
            ]
        )
    elif is_terminal():
        table(("TOPIC", "PARTITIONS", "INTERNAL"), [(t.name, t.partitions, t.is_internal) for t in found])
    else:
        for topic in found:
            click.echo(topic.name)


@command.command(short_help="Describe topics: partitions, leaders, replicas, settings.")
@topic_arguments
@topic_flag
@click.option("--exclude-internal", is_flag=True, help="Leave the cluster's own topics out.")
@click.option(
    "--under-replicated-partitions", "under_replicated", is_flag=True, help="Only where a replica is behind."
)
@click.option("--unavailable-partitions", "unavailable", is_flag=True, help="Only partitions without leader.")
@click.option("--topics-with-overrides", "overridden", is_flag=True, help="Only topics with own settings.")
@json_option
@connected
def describe(
    topics: tuple[str, ...],
    by_flag: tuple[str, ...],
    exclude_internal: bool,
    under_replicated: bool,
    unavailable: bool,
    overridden: bool,
    as_json: bool,
    connection: Connection,
) -> None:
    """Describe topics: partitions, leaders, replicas, settings; all, or those named."""
    from barnabas.cli.output import document

    with connection.admin() as admin:
        names = _chosen(admin, [*topics, *by_flag], internal=not exclude_internal)
        infos = list(admin.describe_topics(names).check().values())
        configs = _own_settings(admin, names)
    shown = []
    for info in infos:
        parts = [
            part
            for part in info.partitions
            if not (under_replicated and len(part.isr) >= len(part.replicas))
            and not (unavailable and part.has_leader)
        ]
        if (parts or not (under_replicated or unavailable)) and not (overridden and not configs[info.name]):
            shown.append((info, parts))
    if as_json:
        document([_as_json(info, parts, configs[info.name]) for info, parts in shown])
        return
    for info, parts in shown:
        _print_topic(info, [] if overridden else parts, configs[info.name])


def _as_json(info: "TopicInfo", parts: "Iterable[PartitionInfo]", configs: dict[str, str]) -> dict[str, Any]:
    from barnabas.base.types import uuid_text

    return {
        "name": info.name,
        "id": uuid_text(info.id),
        "internal": info.is_internal,
        "replication_factor": len(info.partitions[0].replicas) if info.partitions else 0,
        "configs": configs,
        "partitions": [
            {
                "partition": part.index,
                "leader": part.leader if part.has_leader else None,
                "leader_epoch": part.leader_epoch,
                "replicas": list(part.replicas),
                "isr": list(part.isr),
                "offline": list(part.offline),
            }
            for part in parts
        ],
    }


def _print_topic(info: "TopicInfo", parts: "list[PartitionInfo]", configs: dict[str, str]) -> None:
    from barnabas.base.types import uuid_text
    from barnabas.cli.output import is_terminal, table

    factor = len(info.partitions[0].replicas) if info.partitions else 0
    settings = ",".join(f"{name}={value}" for name, value in configs.items())
    if is_terminal():
        title = f"{info.name}: {len(info.partitions)} partitions, replication factor {factor}"
        columns = ("PARTITION", "LEADER", "REPLICAS", "ISR", "OFFLINE")
        rows = [(p.index, p.leader if p.has_leader else "none", p.replicas, p.isr, p.offline) for p in parts]
        table(columns, rows, title=f"{title}\n{settings}" if settings else title)
        return
    click.echo(
        f"Topic: {info.name}\tTopicId: {uuid_text(info.id)}\tPartitionCount: {len(info.partitions)}\t"
        f"ReplicationFactor: {factor}\tConfigs: {settings}"
    )
    for part in parts:
        leader = part.leader if part.has_leader else "none"
        click.echo(
            f"\tTopic: {info.name}\tPartition: {part.index}\tLeader: {leader}"
            f"\tReplicas: {','.join(map(str, part.replicas))}\tIsr: {','.join(map(str, part.isr))}"
        )


def _own_settings(admin: "Admin", names: list[str]) -> dict[str, dict[str, str]]:
    """What each topic overrides; none for a topic whose settings may not be read."""
    from barnabas.client.admin_types import ConfigResource, ConfigSource

    found = admin.describe_configs([ConfigResource.topic(name) for name in names]).succeeded
    return {
        name: {
            entry.name: entry.value or ""
            for entry in found.get(ConfigResource.topic(name), {}).values()
            if entry.source is ConfigSource.DYNAMIC_TOPIC
        }
        for name in names
    }


@command.command(short_help="Raise the number of partitions.")
@topic_arguments
@topic_flag
@click.option("-p", "--partitions", type=click.IntRange(1), required=True, help="The new total.")
@click.option("--if-exists", is_flag=True, help="A topic that does not exist is no error.")
@click.option("--dry-run", is_flag=True, help="Only let the cluster check it.")
@json_option
@connected
def alter(
    topics: tuple[str, ...],
    by_flag: tuple[str, ...],
    partitions: int,
    if_exists: bool,
    dry_run: bool,
    as_json: bool,
    connection: Connection,
) -> int:
    """Raise the number of partitions; it cannot be lowered.  Settings: see `barnabas configs`."""
    from barnabas.cli.output import report

    with connection.admin() as admin:
        names = _chosen(admin, names_of(topics, by_flag, "topic"), missing_ok=if_exists)
        results = admin.create_partitions(dict.fromkeys(names, partitions), validate_only=dry_run)
    done = "Could raise topic {} to" if dry_run else "Topic {} has"
    return report(results, done=f"{done} {partitions} partitions.", as_json=as_json)


@command.command(short_help="Delete topics with all their records.")
@topic_arguments
@topic_flag
@click.option("--if-exists", is_flag=True, help="A topic that does not exist is no error.")
@json_option
@connected
def delete(
    topics: tuple[str, ...], by_flag: tuple[str, ...], if_exists: bool, as_json: bool, connection: Connection
) -> int:
    """Delete topics with all their records."""
    from barnabas.cli.output import report

    with connection.admin() as admin:
        names = _chosen(admin, names_of(topics, by_flag, "topic"), missing_ok=if_exists)
        results = admin.delete_topics(names)
    return report(results, done="Deleted topic {}.", as_json=as_json)


def _chosen(
    admin: "Admin", wanted: list[str], *, internal: bool = True, missing_ok: bool = False
) -> list[str]:
    """The topics meant: all when none is named.  Raises UnknownTopic."""
    from barnabas.client.errors import UnknownTopic

    there = [topic.name for topic in admin.list_topics(internal=internal)]
    if not wanted:
        return there
    chosen = _matching(wanted, there)
    for name in wanted:
        if not missing_ok and not _matching([name], there):
            raise UnknownTopic(f"topic {name!r}: there is none of this name")
    return chosen


def _matching(wanted: Iterable[str], there: list[str]) -> list[str]:
    """The topics that are named, or matched as a whole by a name read as a pattern (a comma is an or)."""
    found: dict[str, None] = {}
    for name in wanted:
        if name in there:
            found[name] = None
            continue
        try:
            pattern = re.compile(name.replace(",", "|"))
        except re.error as error:
            raise click.UsageError(f"{name!r} is neither a topic nor a pattern: {error}.") from error
        found |= dict.fromkeys(topic for topic in there if pattern.fullmatch(topic))
    return list(found)
