"""`barnabas features`: which features the cluster has switched on, and at which levels.

The options of kafka-features work too.
"""

from typing import TYPE_CHECKING

import click

from barnabas.cli.connection import Connection, connected, json_option

if TYPE_CHECKING:
    from barnabas.client.admin_features import FeatureChange

EXAMPLES = """
\b
Examples:
  barnabas features describe
  barnabas features upgrade --feature transaction.version=2
  barnabas features downgrade --feature transaction.version=1 --dry-run
  barnabas features disable --feature transaction.version
"""

feature_option = click.option(
    "--feature", "wanted", multiple=True, required=True, metavar="NAME=LEVEL", help="What it shall be."
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Only say whether it can be done.")
unsafe_option = click.option(
    "--unsafe", is_flag=True, help="Also when what only the higher level keeps is lost."
)


@click.group(epilog=EXAMPLES, short_help="Show and switch the features of the cluster.")
def command() -> None:
    """Show and switch the features of the cluster.

    A feature is something that clients and brokers may only do once all of them can, as transactions of
    version 2 (transaction.version).  Clients learn of a new level when they connect.
    """


@command.command(short_help="Show the features, their levels and what is supported.")
@json_option
@connected
def describe(as_json: bool, connection: Connection) -> None:
    """Show the features, their levels and what is supported."""
    from barnabas.cli.output import document, table

    with connection.admin() as admin:
        found = admin.describe_features()
    if as_json:
        document(
            {
                "epoch": found.epoch,
                "features": [
                    {"name": each.name, "level": each.level, "lowest": each.lowest, "highest": each.highest}
                    for each in found.by_name.values()
                ],
            }
        )
    else:
        table(
            ("FEATURE", "LEVEL", "LOWEST", "HIGHEST", "EPOCH"),
            [
                (each.name, each.level, each.lowest, each.highest, found.epoch)
                for each in found.by_name.values()
            ],
        )


@command.command(short_help="Raise levels.")
@feature_option
@dry_run_option
@json_option
@connected
def upgrade(wanted: tuple[str, ...], dry_run: bool, as_json: bool, connection: Connection) -> None:
    """Raise the levels of features, all named ones or none."""
    from barnabas.client.admin_features import FeatureChange

    _change(connection, _levels(wanted), FeatureChange.UPGRADE, dry_run, as_json)


@command.command(short_help="Lower levels.")
@feature_option
@unsafe_option
@dry_run_option
@json_option
@connected
def downgrade(
    wanted: tuple[str, ...], unsafe: bool, dry_run: bool, as_json: bool, connection: Connection
) -> None:
    """Lower the levels of features, all named ones or none; 0 switches one off."""
    _change(connection, _levels(wanted), _downgrade(unsafe), dry_run, as_json)


@command.command(short_help="Switch features off.")
@click.option("--feature", "names", multiple=True, required=True, metavar="NAME", help="What to switch off.")
@unsafe_option
@dry_run_option
@json_option
@connected
def disable(
    names: tuple[str, ...], unsafe: bool, dry_run: bool, as_json: bool, connection: Connection
) -> None:
    """Switch features off, all named ones or none."""
    _change(connection, dict.fromkeys(names, 0), _downgrade(unsafe), dry_run, as_json)


def _downgrade(unsafe: bool) -> "FeatureChange":
    from barnabas.client.admin_features import FeatureChange

    return FeatureChange.UNSAFE_DOWNGRADE if unsafe else FeatureChange.DOWNGRADE


def _levels(wanted: tuple[str, ...]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for text in wanted:
        name, sign, level = text.partition("=")
        if not name or not sign or not level.isdecimal():
            raise click.BadParameter(f"{text!r} is not NAME=LEVEL.", param_hint="'--feature'")
        if name in levels:
            raise click.BadParameter(f"{name} is named twice.", param_hint="'--feature'")
        levels[name] = int(level)
    return levels


def _change(
    connection: Connection, levels: dict[str, int], change: "FeatureChange", dry_run: bool, as_json: bool
) -> None:
    from barnabas.cli.output import document

    with connection.admin() as admin:
        admin.update_features(levels, change=change, validate_only=dry_run)
    if as_json:
        document({"levels": levels, "dry_run": dry_run})
        return
    done = "could be changed" if dry_run else "is now"
    for name, level in levels.items():
        state = f"at level {level}" if level else "off"
        click.echo(f"{name} {done} {'to ' if dry_run else ''}{state}")
