"""`barnabas pipeline`: declared Spark pipelines, started, watched and kept going."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from barnabas.cli.connection import FILE, Connection, assignments, connected, json_option

if TYPE_CHECKING:
    from barnabas.spark.pipelines.spec import Cluster, Pipeline

__all__ = ["command"]

EXAMPLES = """
\b
Examples:
  barnabas pipeline new land lake.yaml                a commented file to begin with
  barnabas pipeline validate lake.yaml
  barnabas pipeline run lake.yaml --once              what is there now, then end
  barnabas pipeline run lake.yaml minutes.yaml        for ever, in one Spark driver; Ctrl-C ends it
  barnabas pipeline status lake.yaml
"""

ELSEWHERE: Final = {"mirror": "barnabas.cli.pipeline_mirror", "replay": "barnabas.cli.pipeline_replay"}
"""Subcommands with many options of their own -> the modules that hold them as `command`."""

KINDS: Final = ("land", "transform", "mirror", "replay")


class PipelineGroup(click.Group):
    """A group that imports the larger subcommands when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.commands, *(name for name, module in ELSEWHERE.items() if find_spec(module))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in ELSEWHERE and find_spec(ELSEWHERE[cmd_name]):
            found: click.Command = import_module(ELSEWHERE[cmd_name]).command
            return found
        return super().get_command(ctx, cmd_name)


@click.group(cls=PipelineGroup, epilog=EXAMPLES, short_help="Run declared Spark pipelines.")
def command() -> None:
    """Run declared Spark pipelines: topics to files, through SQL to topics, from cluster to cluster."""


files_argument = click.argument("paths", nargs=-1, required=True, type=FILE, metavar="FILE...")
checkpoint_option = click.option(
    "--checkpoint",
    metavar="FOLDER",
    help="Where progress is kept: a folder, or hdfs://, s3a://, …  [default: .barnabas beside FILE]",
)


@command.command(short_help="Run the pipelines of files until Ctrl-C, or --once.")
@files_argument
@click.option("--once", is_flag=True, help="Take what is there now, then end.")
@click.option("--master", metavar="URL", help="Spark master.  [default: local[*,4]]")
@checkpoint_option
@click.option("--conf", "spark_conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark.")
@click.option("--log-file", type=click.Path(dir_okay=False, path_type=Path), help="Where Spark's words go.")
@json_option
@connected
def run(
    paths: tuple[Path, ...],
    once: bool,
    master: str | None,
    checkpoint: str | None,
    spark_conf: tuple[str, ...],
    log_file: Path | None,
    as_json: bool,
    connection: Connection,
) -> int:
    """Run the pipelines of files, all in one Spark driver, until Ctrl-C or SIGTERM, or --once.

    A pipeline that fails starts again, after a wait that doubles up to a minute, and goes on where it stood.
    One that only you can mend ends with a sentence that says how, and the exit code is 1.
    """
    from barnabas.cli.pipeline_run import run_pipelines

    return run_pipelines(
        _load(paths, connection),
        master=master,
        checkpoint=checkpoint,
        once=once,
        as_json=as_json,
        conf=assignments(spark_conf, "--conf"),
        log_file=log_file,
    )


@command.command(short_help="Write a commented file to begin with.")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("path", required=False, type=click.Path(dir_okay=False, path_type=Path), metavar="[FILE]")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def new(kind: str, path: Path | None, force: bool) -> int:
    """Write a commented pipeline of a kind to FILE, or to stdout."""
    from barnabas.spark.pipelines.starters import starter

    text = starter(kind, "FILE.yaml" if path is None else str(path))
    if path is None:
        click.echo(text, nl=False)
        return 0
    if path.exists() and not force:
        click.echo(f"barnabas: {path} is there already; --force replaces it", err=True)
        return 1
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        click.echo(f"barnabas: {path}: {error.strerror}", err=True)
        return 1
    click.echo(f"wrote {path}; next: barnabas pipeline validate {path}")
    return 0


@command.command(short_help="Check files, brokers, topics and schemas without running anything.")
@files_argument
@click.option("--offline", is_flag=True, help="Check the files alone; ask no broker.")
@json_option
@connected
def validate(paths: tuple[Path, ...], offline: bool, as_json: bool, connection: Connection) -> None:
    """Check files, and with the brokers that topics are there; show schemas that were learnt.

    No Spark is started: SQL is checked when the pipeline runs.
    """
    from barnabas.cli.output import document, table
    from barnabas.cli.pipeline_views import described

    found = [described(each, offline=offline) for each in _load(paths, connection)]
    if as_json:
        document(found)
        return
    table(
        ("PIPELINE", "KIND", "READS", "WRITES"),
        [(each["name"], each["kind"], each["reads"], each["writes"]) for each in found],
    )
    for each in found:
        for view, schema in each["schemas"].items():
            click.echo(f"{each['name']}: schema of {view}: {schema}")


@command.command(short_help="Show how far pipelines are.")
@files_argument
@checkpoint_option
@json_option
@connected
def status(paths: tuple[Path, ...], checkpoint: str | None, as_json: bool, connection: Connection) -> None:
    """Show how far the pipelines of files are, from their checkpoints and the offsets they committed."""
    from barnabas.cli.output import document, table
    from barnabas.cli.pipeline_views import status_rows

    rows = [row for each in _load(paths, connection) for row in status_rows(each, checkpoint)]
    if as_json:
        document(rows)
        return
    columns = ("part", "state", "batch", "rows_per_s", "lag_messages", "lag_seconds", "last_error")
    table(
        [column.upper().replace("_", "-") for column in columns],
        [["-" if row[column] is None else row[column] for column in columns] for row in rows],
    )


def _load(paths: tuple[Path, ...], connection: Connection) -> "list[Pipeline]":
    from barnabas.spark.pipelines.files import load

    return load(*paths, cluster=_cluster(connection))


def _cluster(connection: Connection) -> "Cluster":
    """What is meant where a file names no brokers."""
    from barnabas.spark.pipelines.spec import Cluster

    texts = connection.texts()
    # What a command wants of its own clients is not for those that run in Spark.
    commands_own = ("bootstrap.servers", "bootstrap.timeout.ms", "client.id")
    client = {name: value for name, value in texts.items() if name not in commands_own}
    return Cluster(texts["bootstrap.servers"], client)
