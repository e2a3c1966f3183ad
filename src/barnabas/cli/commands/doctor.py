"""`barnabas doctor`: what keeps a client from using a broker, and how to mend it."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from barnabas.cli.connection import Connection, connected, json_option

if TYPE_CHECKING:
    from barnabas.cli.checkup import Check

EXAMPLES = """
\b
Examples:
  barnabas doctor                                     localhost:9092, or $BARNABAS_BOOTSTRAP
  barnabas doctor broker1.example:9092 --write
  barnabas doctor broker1:9092,broker2:9092 --json
"""

_MARKS = {
    "ok": ("✓", "green"),
    "failed": ("✗", "red"),
    "warning": ("!", "yellow"),
    "not checked": ("-", "cyan"),
}


@click.command(epilog=EXAMPLES, short_help="Say what keeps a client from using a broker, and how to mend it.")
@click.argument("address", required=False, metavar="[HOST:PORT]")
@click.option("--write", is_flag=True, help="Also send a record through a scratch topic, and delete it.")
@click.option(
    "--spark/--no-spark", default=True, help="Whether to look at Java and PySpark.  [default: spark]"
)
@json_option
@connected
def command(address: str | None, write: bool, spark: bool, as_json: bool, connection: Connection) -> int:
    """Walk the way of a client: DNS, connect, ApiVersions, metadata, each advertised address, topics.

    Then Java and the data sources of PySpark, where it is installed.

    The first thing that is wrong is named with its fix; the exit code is then 1.
    """
    from dataclasses import replace

    from barnabas.cli.checkup import Outcome
    from barnabas.cli.output import document

    if address is not None:
        connection = replace(connection, bootstrap_server=address)
    found: list[Check] = []
    for check in _checks(connection, write, spark):
        found.append(check)
        if not as_json:
            _print(check)
    wrong = [check for check in found if check.outcome is Outcome.FAILED]
    doubtful = [check for check in found if check.outcome is Outcome.WARNING]
    if as_json:
        document(
            {
                "address": connection.address,
                "healthy": not wrong,
                "first_problem": asdict(wrong[0]) if wrong else None,
                "checks": [asdict(check) for check in found],
            }
        )
    else:
        _sum_up(connection.address, wrong, doubtful)
    return 1 if wrong else 0


def _checks(connection: Connection, write: bool, spark: bool) -> "Iterator[Check]":
    from barnabas.cli.checkup import Outcome, examine
    from barnabas.cli.spark_checkup import examine_spark

    is_sound = True
    for check in examine(connection, write=write):
        is_sound = is_sound and check.outcome is not Outcome.FAILED
        yield check
    if is_sound and spark:
        yield from examine_spark()


def _print(check: "Check") -> None:
    mark, colour = _MARKS[check.outcome.value]
    click.echo(
        f"{click.style(mark, fg=colour)} {check.stage:<12} {check.subject}: {check.detail}"
        + (f" ({check.took_ms:.1f} ms)" if check.took_ms >= 0.05 else "")
    )


def _sum_up(address: str, wrong: "list[Check]", doubtful: "list[Check]") -> None:
    for check in wrong[:1] or doubtful[:1]:
        click.echo()
        click.echo(f"Problem: {check.stage} of {check.subject}: {check.detail}")
        click.echo(f"Fix:     {check.fix}")
    if not wrong and not doubtful:
        click.echo(f"\n{address} is well.")
