"""`barnabas demo`: the main job end to end, live on the terminal, for about a minute."""

import contextlib
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli.connection import json_option

if TYPE_CHECKING:
    from barnabas.cli.demo.run import JobMaker, Outcome
    from barnabas.cli.demo.show import Show

EXAMPLES = """
\b
Examples:
  barnabas demo                                   about a minute, on localhost:9092 if it is free
  barnabas demo --for 5m --rate 10000
  barnabas demo --no-spark                        the same job as a consumer in Python, without Java
  barnabas demo --keep                            leave the data, the logs and the pipeline file to look at
"""


def _duration(ctx: click.Context, param: click.Parameter, value: str) -> timedelta:
    """A time span as 45s or 5m; a bare number is seconds."""
    from barnabas.cli.times import parse_duration

    span = parse_duration(f"{value}s" if value.isdigit() else value)
    if span <= timedelta():
        raise click.UsageError("--for must be longer than nothing.")
    return span


@click.command(epilog=EXAMPLES, short_help="Show it all at work: orders, a Spark pipeline on them, results.")
@click.option(
    "--for", "duration", callback=_duration, default="45s", metavar="DURATION",
    help="How long orders come once the job works.  [default: 45s]",
)  # fmt: skip
@click.option(
    "--rate", type=click.FloatRange(1, 200_000), default=2000, help="Orders per second.  [default: 2000]"
)
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Of the broker.  [default: 9092 if it is free, else any]"
)
@click.option(
    "--spark/--no-spark", default=None, help="Whether the job runs on Spark.  [default: if Java is there]"
)
@click.option("--keep", is_flag=True, help="Leave data and logs in their folder.")
@click.option(
    "--picture", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.svg",
    help="Keep the screen as a picture.",
)  # fmt: skip
@json_option
def command(
    duration: timedelta,
    rate: float,
    port: int | None,
    spark: bool | None,
    keep: bool,
    picture: Path | None,
    as_json: bool,
) -> int:
    """Start a broker, send it the orders of a shop, run a pipeline on them, and show what goes in and out.

    Everything is local and temporary: when it ends, by itself or by Ctrl-C, no process and no file is left.
    """
    from barnabas.cli.demo.run import Demo, Plan
    from barnabas.cli.demo.summary import print_summary

    show = _show(as_json)
    make_job = _job_maker(spark, show)
    folder = Path(tempfile.mkdtemp(prefix="barnabas-demo-"))
    plan = Plan(duration.total_seconds(), rate, port)
    is_over = False
    try:
        with _signals() as (stopping, received), show:
            outcome = Demo(plan, folder, make_job, show, stopping).run()
        is_over = True
    finally:
        if is_over and not keep:
            shutil.rmtree(folder, ignore_errors=True)
        elif not is_over:
            click.echo(f"barnabas: the logs are in {folder}", err=True)
    if outcome is not None:
        if picture is not None:
            _draw(picture, outcome)
        print_summary(outcome, folder if keep else None, as_json=as_json)
    if received:
        return 128 + received[0]
    return 0 if outcome is not None and outcome.is_exact else 1


def _show(as_json: bool) -> "Show":
    from barnabas.cli.demo.show import Drawn, Lines, Quiet

    if as_json:
        return Quiet()
    return Drawn() if sys.stdout.isatty() else Lines()


def _job_maker(spark: bool | None, show: "Show") -> "JobMaker":
    """Chooses the job; where Spark cannot run, one sentence says why.  Raises DemoFailed if it was wanted."""
    from barnabas.cli.demo.jobs import PythonJob
    from barnabas.cli.demo.run import ORDERS, SALES, DemoFailed
    from barnabas.cli.demo.spark_job import SparkJob, what_is_missing

    missing = None if spark is False else what_is_missing()
    if spark and missing is not None:
        raise DemoFailed(missing)
    if missing is not None:
        show.note(f"{missing}.  The job runs as a consumer in Python instead.")
    if spark is False or missing is not None:
        return lambda address, folder: PythonJob(address, ORDERS, SALES)
    return lambda address, folder: SparkJob(address, folder, ORDERS, SALES)


@contextlib.contextmanager
def _signals() -> Iterator[tuple[threading.Event, list[int]]]:
    """What is set by a signal to end, and the signals that came; a second one finds it ending already."""
    stopping, received = threading.Event(), list[int]()

    def note(number: int, frame: object) -> None:
        received.append(number)
        stopping.set()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, note) for number in numbers]
    try:
        yield stopping, received
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _draw(path: Path, outcome: "Outcome") -> None:
    from rich.text import Text

    from barnabas.cli.demo.screen import screen
    from barnabas.cli.demo.show import write_picture
    from barnabas.cli.demo.summary import summary

    lines = [Text(line) for line in summary(outcome)]
    write_picture(path, "make run", [screen(outcome.highlight), Text(), *lines])
    click.echo(f"Drawn in {path}.", err=True)
