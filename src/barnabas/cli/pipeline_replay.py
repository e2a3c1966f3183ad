"""`barnabas pipeline replay`: records of a topic, or of a Parquet landing, into a topic again."""

import secrets
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import Connection, connected, json_option

if TYPE_CHECKING:
    from barnabas.spark.pipelines.mirror_task import Copied
    from barnabas.spark.pipelines.replay_plan import ReplayPlan
    from barnabas.spark.pipelines.replay_topic import Estimate

__all__ = ["command"]

EXAMPLES = """
\b
Examples:
  barnabas pipeline replay --topic orders --into orders-test --from -2h --dry-run
  barnabas pipeline replay --topic orders --into orders-test --from -2h --rate 5000/s
  barnabas pipeline replay --topic orders --into orders-test --rate x10      ten times as fast as recorded
  barnabas pipeline replay --parquet lake/orders --into orders
  barnabas pipeline replay --topic orders --into orders-test --id r-1f2e     go on with one that was stopped
"""


@click.command(epilog=EXAMPLES, short_help="Write records of the past into a topic again.")
@click.option("--topic", default="", metavar="TOPIC", help="The source; or which topic of a landing.")
@click.option("--parquet", "path", default="", metavar="FOLDER", help="A landing as the source.")
@click.option("--into", required=True, metavar="TOPIC", help="Where the records go.")
@click.option(
    "--from", "begin", default="earliest", show_default=True, metavar="WHERE", help="A time, an offset, -2h."
)
@click.option(
    "--to",
    "end",
    default="latest",
    show_default=True,
    metavar="WHERE",
    help="Before which to stop: the same.",
)
@click.option("--partition", "partitions", type=click.IntRange(0), multiple=True, help="Only this one.")
@click.option(
    "--rate",
    default="max",
    show_default=True,
    metavar="RATE",
    help="5000/s, 10mb/s, x2 (twice as fast as recorded) or max.",
)
@click.option("--to-server", metavar="HOST:PORT,...", help="The target cluster.  [default: the source]")
@click.option("--id", "id_", metavar="ID", help="Names the replay; what was done under it is not done again.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and how long it would take.")
@json_option
@connected
def command(
    dry_run: bool, as_json: bool, id_: str | None, rate: str, connection: Connection, **given: Any
) -> int:
    """Write records of the past into a topic again, each once: a range of a topic, or a Parquet landing.

    Records keep key, value, headers, time and partition.  A replay that was stopped, or killed, goes on with
    the same --id.
    """
    from barnabas.cli.output import document
    from barnabas.spark.pipelines.replay import described, estimate

    plan = _plan(given, id_ or f"r-{secrets.token_hex(3)}", rate, connection)
    if dry_run:
        found = estimate(plan)
        if as_json:
            document(described(plan, found))
        else:
            _show(plan, found)
        return 0
    return _run(plan, as_json, announce=id_ is None)


def _plan(given: dict[str, Any], id_: str, rate: str, connection: Connection) -> "ReplayPlan":
    from barnabas.base.clock import SystemClock
    from barnabas.spark.pipelines.mirror_settings import known_settings
    from barnabas.spark.pipelines.replay_plan import ReplayPlan, parse_edge, parse_rate

    if not given["topic"] and not given["path"]:
        raise click.UsageError("Give --topic or --parquet: what is to be replayed?")
    source = known_settings(connection.texts())[0]
    source.pop("client.id", None)
    target = dict(source)
    if given["to_server"]:
        target["bootstrap.servers"] = given["to_server"]
    now_ms = SystemClock().now_ms()
    return ReplayPlan(
        source,
        target,
        given["into"],
        id_,
        topic=given["topic"],
        path=given["path"],
        begin=parse_edge(given["begin"], now_ms=now_ms),
        end=parse_edge(given["end"], now_ms=now_ms),
        partitions=given["partitions"],
        rate=parse_rate(rate),
    )


def _show(plan: "ReplayPlan", found: "Estimate") -> None:
    from barnabas.cli.output import table

    table(
        ("PARTITION", "FROM", "TO", "OFFSETS"),
        [(number, extent.start, extent.end, extent.size) for number, extent in found.partitions.items()],
    )
    most = "" if found.is_exact else "at most "
    length = "" if found.seconds is None else f", in about {found.seconds:,.1f} s"
    click.echo(
        f"would write {most}{found.records:,} records, about {found.size_bytes:,} bytes, "
        f"to {plan.into}, {plan.rate}{length}"
    )


def _run(plan: "ReplayPlan", as_json: bool, *, announce: bool) -> int:
    from barnabas.cli.output import document
    from barnabas.spark.pipelines.replay import run_replay

    stop = threading.Event()
    received: list[int] = []
    total = 0
    began = time.monotonic()

    def end(number: int, frame: object) -> None:
        received.append(number)
        stop.set()

    def tell(copied: "list[Copied]") -> None:
        nonlocal total
        total += sum(each.records for each in copied)
        if as_json:
            document({"id": plan.id, "records": total, "seconds": round(time.monotonic() - began, 3)})

    if announce and not as_json:
        click.echo(f"replay {plan.id}; to go on after an end: --id {plan.id}", err=True)
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        run_replay(plan, stop, tell)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if not as_json:
        took_s = time.monotonic() - began
        state = "stopped" if received else "done"
        click.echo(f"{state}: {total:,} records to {plan.into} in {took_s:,.1f} s")
    return 130 if signal.SIGINT in received else 0
