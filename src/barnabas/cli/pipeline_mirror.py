"""`barnabas pipeline mirror`: a mirror from flags, MirrorMaker's among them, without a pipeline file."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import FILE, Connection, json_option

if TYPE_CHECKING:
    from barnabas.spark.pipelines.mirror_settings import MirrorPlan
    from barnabas.spark.pipelines.mirror_task import Copied

__all__ = ["command"]

EXAMPLES = """
\b
Examples:
  barnabas pipeline mirror --from east:9092 --to west:9092 --topics 'orders.*'
  barnabas pipeline mirror --from east:9092 --to west:9092 --topics '.*' --once
  barnabas pipeline mirror --consumer.config east.properties --producer.config west.properties \\
      --num.streams 4 --whitelist 'orders|payments'
"""


@click.command(epilog=EXAMPLES, short_help="Copy topics of one cluster to another, exactly once.")
@click.option("--from", "source", metavar="HOST:PORT,...", help="The source cluster.")
@click.option("--to", "target", metavar="HOST:PORT,...", help="The target cluster.")
@click.option(
    "--topics",
    "--include",
    "--whitelist",
    "topics",
    multiple=True,
    required=True,
    metavar="REGEX,...",
    help="Which topics: the whole name must match.",
)
@click.option(
    "--exclude", "--blacklist", "exclude", multiple=True, metavar="REGEX,...", help="But not these."
)
@click.option("--groups", multiple=True, metavar="REGEX,...", help="Which groups follow.  [default: all]")
@click.option("--exclude-groups", multiple=True, metavar="REGEX,...", help="But not these.")
@click.option("--prefix", default="", metavar="TEXT", help="Put before the names of topics at the target.")
@click.option(
    "--offsets",
    type=click.Choice(("auto", "kept", "translated")),
    default="auto",
    show_default=True,
    help="Keep the offsets of the source, or give new ones and translate those of groups.",
)
@click.option(
    "--start",
    type=click.Choice(("earliest", "latest")),
    default="earliest",
    show_default=True,
    help="Where a partition begins of which nothing was copied yet.",
)
@click.option("--once", is_flag=True, help="Copy what is there now, then end.")
@click.option("--skip-lost", is_flag=True, help="Go on when the source deleted what was to be copied.")
@click.option("--replication-factor", type=click.IntRange(1), help="Of topics that are made.")
@click.option(
    "--sync-interval", default=10.0, show_default=True, metavar="S", help="Look at topics and groups."
)
@click.option("--consumer.config", "consumer_config", type=FILE, help="A properties file for the source.")
@click.option("--producer.config", "producer_config", type=FILE, help="A properties file for the target.")
@click.option("--num.streams", "--tasks", "tasks", type=click.IntRange(1), help="Copy so many at once.")
@click.option("--name", default="mirror", show_default=True, metavar="NAME", help="Of the pipeline.")
@click.option(
    "--group", metavar="GROUP", help="Holds the state.  [default: mirror:<id of the source cluster>]"
)
@click.option("--here", is_flag=True, help="In this process, without Spark.")
@click.option("--master", metavar="URL", help="Spark master.  [default: local[*,4]]")
@click.option("--checkpoint", metavar="FOLDER", help="Of Spark.  [default: .barnabas]")
@click.option("--abort.on.send.failure", "ignored_abort", hidden=True, metavar="BOOL", help="As MirrorMaker.")
@click.option("--offset.commit.interval.ms", "ignored_interval", hidden=True, metavar="MS")
@click.option("--new.consumer", "ignored_new", is_flag=True, hidden=True)
@json_option
def command(
    once: bool,
    name: str,
    here: bool,
    master: str | None,
    checkpoint: str | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Copy topics from one cluster to another: records exactly once, settings, new partitions, groups.

    Runs until Ctrl-C and goes on where it stood: what was copied is known to the target cluster.
    Into Barnabas, topics that are new there keep their offsets; they can be written to by others once
    barnabas.offsets.kept is set to false for them.
    """
    from barnabas.spark.pipelines.spec import Pipeline

    plan = _plan(given)
    if here:
        return _run_here(plan, once, as_json)
    from barnabas.cli.pipeline_run import run_pipelines

    pipeline = Pipeline(name, "mirror", plan, origin=str(Path.cwd() / "mirror"))
    return run_pipelines([pipeline], master=master, checkpoint=checkpoint, once=once, as_json=as_json)


def _plan(given: dict[str, Any]) -> "MirrorPlan":
    from barnabas.spark.pipelines.mirror_settings import MirrorPlan, names_of

    source = _cluster(given["source"], given["consumer_config"], "--from", "--consumer.config")
    target = _cluster(given["target"], given["producer_config"], "--to", "--producer.config")
    if source["bootstrap.servers"] == target["bootstrap.servers"] and not given["prefix"]:
        raise click.UsageError("Both clusters are the same one: give a --prefix for the copies.")
    return MirrorPlan(
        source,
        target,
        names_of(given["topics"], given["exclude"]),
        group=given["group"] or "",
        groups=names_of(given["groups"] or (".*",), given["exclude_groups"]),
        prefix=given["prefix"],
        offsets=given["offsets"],
        start=given["start"],
        replication_factor=given["replication_factor"] or -1,
        tasks=given["tasks"] or 0,
        skip_lost=given["skip_lost"],
        sync_interval_ms=int(given["sync_interval"] * 1000),
    )


def _cluster(address: str | None, file: Path | None, flag: str, file_flag: str) -> dict[str, str]:
    """The settings of one cluster; what no client knows is reported and left out."""
    from barnabas.spark.pipelines.mirror_settings import known_settings

    found = Connection(address, file).texts()
    if address is None and (file is None or "bootstrap.servers" not in found):
        raise click.UsageError(f"Missing option {flag} (or {file_flag} with bootstrap.servers).")
    settings, unknown = known_settings(found)
    for each in unknown:
        click.echo(f"barnabas: {file}: {each} means nothing here and is ignored", err=True)
    for own in ("client.id", "bootstrap.timeout.ms", "group.id"):  # of this command, or of MirrorMaker
        settings.pop(own, None)
    return settings


def _run_here(plan: "MirrorPlan", once: bool, as_json: bool) -> int:
    from barnabas.cli.output import document
    from barnabas.spark.pipelines.mirror import run_here

    def tell(copied: "list[Copied]") -> None:
        for each in copied:
            if as_json:
                document({field: getattr(each, field) for field in each.__slots__})
            elif each.records:
                click.echo(
                    f"{each.topic}-{each.partition}: {each.records} records, {each.size_bytes} bytes, "
                    f"up to offset {each.end}"
                )

    run_here(plan, once=once, stop=threading.Event(), on_copied=tell)
    return 0
