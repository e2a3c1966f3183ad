"""`barnabas configs`: show and change settings of topics, brokers and groups.

The flags of kafka-configs work too.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.actions import ActionGroup
from barnabas.cli.connection import FILE, Connection, assignments, connected, json_option

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.admin_configs import Change
    from barnabas.client.admin_types import ConfigEntry, ConfigResource

EXAMPLES = """
\b
Examples:
  barnabas configs get topic orders
  barnabas configs get topic orders retention.ms --all --docs
  barnabas configs set topic orders retention.ms=86400000 cleanup.policy=compact
  barnabas configs set broker default log.retention.ms=3600000
  barnabas configs delete topic orders retention.ms
  barnabas configs --alter --entity-type topics --entity-name orders --add-config retention.ms=1000
"""

_KINDS = {
    "topic": "TOPIC", "topics": "TOPIC", "broker": "BROKER", "brokers": "BROKER",
    "broker-logger": "BROKER_LOGGER", "broker-loggers": "BROKER_LOGGER", "group": "GROUP", "groups": "GROUP",
    "client-metrics": "CLIENT_METRICS",
}  # fmt: skip

kind_argument = click.argument("kind", required=False, metavar="[topic|broker|group]")
name_argument = click.argument("name", required=False, metavar="[NAME]")


def entity_options(function: Any) -> Any:
    """Kafka's flags for what the settings belong to."""
    for option in (
        click.option(
            "--entity-type", "entity_type", metavar="topics|brokers|groups", help="As the argument."
        ),
        click.option("--entity-name", "entity_name", metavar="NAME", help="As the argument."),
        click.option("--entity-default", is_flag=True, help="The default of all brokers."),
        click.option("--topic", "topic", metavar="NAME", hidden=True),
        click.option("--broker", "broker", metavar="ID", hidden=True),
        click.option("--broker-defaults", is_flag=True, hidden=True),
    ):
        function = option(function)
    return function


@click.group(
    cls=ActionGroup,
    actions={"--describe": "get", "--alter": "alter"},
    epilog=EXAMPLES,
    short_help="Show and change settings of topics and brokers.",
)
def command() -> None:
    """Show and change settings of topics, brokers and groups.

    NAME is a topic, the number of a broker, `default` for all brokers, or a group.
    """


@command.command(short_help="Show settings.")
@kind_argument
@name_argument
@click.argument("settings_wanted", nargs=-1, metavar="[SETTING]...")
@entity_options
@click.option("-a", "--all", "everything", is_flag=True, help="Defaults too, not only what was set.")
@click.option("--docs", is_flag=True, help="With what each setting means.")
@json_option
@connected
def get(
    kind: str | None,
    name: str | None,
    settings_wanted: tuple[str, ...],
    everything: bool,
    docs: bool,
    as_json: bool,
    connection: Connection,
    **entity: Any,
) -> None:
    """Show settings: those that were set, all with --all, or those named."""
    from barnabas.cli.output import document, table

    with connection.admin() as admin:
        resources = _resources(admin, kind, name, entity)
        found = admin.describe_configs(resources, names=settings_wanted or None, documentation=docs).check()
    shown = {
        resource: [
            entry
            for _, entry in sorted(found[resource].items())
            if everything or settings_wanted or _is_own(resource, entry)
        ]
        for resource in resources
    }
    if as_json:
        document(
            [
                {
                    "type": resource.type.name.lower(),
                    "name": resource.name,
                    "configs": [_entry_json(e) for e in entries],
                }
                for resource, entries in shown.items()
            ]
        )
        return
    columns = ("SETTING", "VALUE", "SOURCE", *(("MEANING",) if docs else ()))
    for resource, entries in shown.items():
        if len(shown) > 1:
            click.echo(f"{resource}:")
        if not entries:
            click.echo(f"{resource} has no settings of its own; --all shows the defaults.", err=True)
            continue
        table(
            columns,
            [
                (
                    e.name,
                    "[hidden]" if e.is_sensitive else e.value,
                    e.source.name.lower().replace("_", "-"),
                    *((e.documentation,) if docs else ()),
                )
                for e in entries
            ],
        )


def _is_own(resource: "ConfigResource", entry: "ConfigEntry") -> bool:
    """Whether somebody set it for this resource; for a broker also in its file."""
    from barnabas.client.admin_types import ConfigSource, ResourceType

    if resource.type is ResourceType.TOPIC:
        return entry.source is ConfigSource.DYNAMIC_TOPIC
    return not entry.is_default


def _entry_json(entry: "ConfigEntry") -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source.name,
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
        "synonyms": [{"name": s.name, "value": s.value, "source": s.source.name} for s in entry.synonyms],
        **({"documentation": entry.documentation} if entry.documentation else {}),
    }


@command.command("set", short_help="Set settings.")
@kind_argument
@name_argument
@click.argument("values", nargs=-1, required=True, metavar="SETTING=VALUE...")
@click.option("--dry-run", is_flag=True, help="Only let the cluster check it.")
@json_option
@connected
def set_(
    kind: str | None,
    name: str | None,
    values: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
    connection: Connection,
) -> int:
    """Set settings; the others stay as they are."""
    changes: dict[str, Change] = {**assignments(values, "configs set")}
    return _change(connection, kind, name, {}, changes, dry_run, as_json)


@command.command(short_help="Put settings back to their defaults.")
@kind_argument
@name_argument
@click.argument("settings_named", nargs=-1, required=True, metavar="SETTING...")
@click.option("--dry-run", is_flag=True, help="Only let the cluster check it.")
@json_option
@connected
def delete(
    kind: str | None,
    name: str | None,
    settings_named: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
    connection: Connection,
) -> int:
    """Put settings back to their defaults."""
    return _change(connection, kind, name, {}, dict.fromkeys(settings_named), dry_run, as_json)


@command.command(short_help="Change settings, with the flags of kafka-configs.")
@entity_options
@click.option("--add-config", metavar="K=V,K=[V,V]", help="Settings to set.")
@click.option("--add-config-file", type=FILE, help="A properties file with settings to set.")
@click.option("--delete-config", metavar="K,K", help="Settings to put back to their defaults.")
@click.option("--dry-run", is_flag=True, help="Only let the cluster check it.")
@json_option
@connected
def alter(
    add_config: str | None,
    add_config_file: Path | None,
    delete_config: str | None,
    dry_run: bool,
    as_json: bool,
    connection: Connection,
    **entity: Any,
) -> int:
    """Change settings, with the flags of kafka-configs."""
    changes: dict[str, Change] = dict.fromkeys(
        part.strip() for part in (delete_config or "").split(",") if part.strip()
    )
    if add_config_file is not None:
        from barnabas.base.config import parse_properties

        changes |= parse_properties(add_config_file.read_text(encoding="utf-8").splitlines())
    changes |= split_configs(add_config or "")
    if not changes:
        raise click.UsageError("Say what to change: --add-config, --add-config-file or --delete-config.")
    return _change(connection, None, None, entity, changes, dry_run, as_json)


def split_configs(text: str) -> dict[str, str]:
    """k=v,k=[v,v] as a mapping; brackets keep commas.  Raises UsageError."""
    import re

    parts = [part for part in re.split(r",(?![^\[\]]*\])", text) if part.strip()]
    return {
        name: value.strip().removeprefix("[").removesuffix("]") if value.strip().startswith("[") else value
        for name, value in assignments(parts, "--add-config").items()
    }


def _change(
    connection: Connection,
    kind: str | None,
    name: str | None,
    entity: dict[str, Any],
    changes: "dict[str, Change]",
    dry_run: bool,
    as_json: bool,
) -> int:
    from barnabas.cli.output import report

    with connection.admin() as admin:
        resources = _resources(admin, kind, name, entity, one=True)
        results = admin.alter_configs(dict.fromkeys(resources, changes), validate_only=dry_run)
    done = "The settings of {} could be changed so." if dry_run else "Changed the settings of {}."
    return report(results, done=done, as_json=as_json)


def _resources(
    admin: "Admin", kind: str | None, name: str | None, entity: dict[str, Any], *, one: bool = False
) -> "list[ConfigResource]":
    """What is meant: one thing, or all of a kind when it has no name.  Raises UsageError."""
    from barnabas.client.admin_types import ConfigResource, ResourceType

    if entity.get("topic"):
        kind, name = "topic", entity["topic"]
    elif entity.get("broker") or entity.get("broker_defaults"):
        kind, name = "broker", entity.get("broker") or "default"
    kind = kind or entity.get("entity_type")
    name = name or entity.get("entity_name") or ("default" if entity.get("entity_default") else None)
    if kind is None:
        raise click.UsageError("Say whose settings: topic NAME, broker ID, broker default or group NAME.")
    if kind.lower() not in _KINDS:
        raise click.UsageError(f"{kind!r} has no settings here; there are topic, broker and group.")
    type_ = ResourceType[_KINDS[kind.lower()]]
    if name is not None:
        is_default = name == "default" and type_ is ResourceType.BROKER
        return [ConfigResource(type_, "" if is_default else name)]
    if one:
        raise click.UsageError(f"Name the {kind}.")
    if type_ is ResourceType.TOPIC:
        return [ConfigResource.topic(topic.name) for topic in admin.list_topics(internal=True)]
    if type_ is ResourceType.BROKER:
        return [ConfigResource.broker(broker.id) for broker in admin.describe_cluster().brokers]
    raise click.UsageError(f"Name the {kind}.")
