"""Runs pipelines for a command: signals stop them, progress is shown, errors are one sentence each.

On a terminal a table is kept up to date; in a pipe every batch is a line; with --json every line is a
document: a progress, or {"pipeline", "row"} for rows of a console sink.  Spark's own words go to a log file.
"""

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

if TYPE_CHECKING:
    from barnabas.spark.pipelines.progress import Progress
    from barnabas.spark.pipelines.spec import Pipeline

__all__ = ["log_path", "progress_line", "run_pipelines"]

LOG_NAME = "spark.log"


class Screen(Protocol):
    """Where progress is shown."""

    def take(self, progress: "Progress") -> None: ...

    def row(self, pipeline: str, row: Mapping[str, object]) -> None: ...


def run_pipelines(
    pipelines: "Sequence[Pipeline]",
    *,
    master: str | None = None,
    checkpoint: str | None = None,
    once: bool = False,
    as_json: bool = False,
    conf: Mapping[str, str] | None = None,
    log_file: Path | None = None,
) -> int:
    """Runs pipelines until they are done, failed or a signal comes; gives the exit code."""
    from barnabas.spark.pipelines.supervisor import Supervisor

    log_file = log_file or log_path(pipelines, checkpoint)
    stop = threading.Event()
    with _signals(stop) as received, _screen(as_json) as shown:
        screen = _WhileRead(shown, stop)
        supervisor = Supervisor(
            pipelines,
            checkpoint=checkpoint,
            master=master,
            once=once,
            conf=conf,
            log_file=log_file,
            write=screen.row,
        )
        outcomes = supervisor.run(stop, screen.take)
    if screen.is_unread:
        raise BrokenPipeError
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    for outcome in failed:
        click.echo(f"barnabas: {outcome.pipeline}: {outcome.error}", err=True)
    if failed:
        click.echo(f"barnabas: the log of Spark is {log_file}", err=True)
        return 1
    return 130 if signal.SIGINT in received else 0


def log_path(pipelines: "Sequence[Pipeline]", checkpoint: str | None) -> Path:
    """Where Spark's words go: beside the progress of the first pipeline."""
    from barnabas.spark.pipelines.files import default_checkpoint
    from barnabas.spark.pipelines.status import local_folder

    folder = local_folder(checkpoint or default_checkpoint(pipelines[0].origin))
    return Path(LOG_NAME) if folder is None else folder / LOG_NAME


@contextmanager
def _signals(stop: threading.Event) -> Iterator[list[int]]:
    """The first Ctrl-C or SIGTERM sets `stop`; a second Ctrl-C is not waited for."""
    received: list[int] = []

    def handle(number: int, frame: object) -> None:
        received.append(number)
        stop.set()
        if received.count(signal.SIGINT) > 1:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _WhileRead:
    """A screen until nobody reads it any more (`| head`); that stops the run, as a signal would."""

    def __init__(self, screen: Screen, stop: threading.Event) -> None:
        self._screen = screen
        self._stop = stop
        self.is_unread = False

    def take(self, progress: "Progress") -> None:
        self._show(lambda: self._screen.take(progress))

    def row(self, pipeline: str, row: Mapping[str, object]) -> None:
        self._show(lambda: self._screen.row(pipeline, row))

    def _show(self, show: Callable[[], None]) -> None:
        if self.is_unread:
            return
        try:
            show()
        except BrokenPipeError:
            self.is_unread = True
            self._stop.set()


@contextmanager
def _screen(as_json: bool) -> Iterator[Screen]:
    if as_json:
        yield _JsonLines()
    elif sys.stdout.isatty():
        with _table() as screen:
            yield screen
    else:
        yield _Lines()


class _JsonLines:
    """Documents, one on a line."""

    def take(self, progress: "Progress") -> None:
        self._print(progress.as_json())

    def row(self, pipeline: str, row: Mapping[str, object]) -> None:
        self._print({"pipeline": pipeline, "row": row})

    def _print(self, document: Mapping[str, Any]) -> None:
        click.echo(json.dumps(document, ensure_ascii=False))


class _Lines:
    """A line for each batch that had rows, and for each change of state."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[str, int | None]] = {}

    def take(self, progress: "Progress") -> None:
        now = (progress.state, progress.batch_id)
        state_changed = self._last.get(progress.part, ("", None))[0] != progress.state
        if state_changed or (now != self._last.get(progress.part) and progress.rows_in):
            is_error = progress.state == "waiting"
            click.echo(progress_line(progress), err=is_error)
        self._last[progress.part] = now

    def row(self, pipeline: str, row: Mapping[str, object]) -> None:
        click.echo(json.dumps(row, ensure_ascii=False))


def progress_line(progress: "Progress") -> str:
    """One line about one part of a pipeline."""
    if progress.state == "waiting":
        return f"barnabas: {progress.part}: {progress.last_error}; it starts again soon"
    words = [progress.part, progress.state]
    if progress.batch_id is not None:
        words += [
            f"batch {progress.batch_id}",
            *(f"{name} {text}" for name, text in _figures(progress).items()),
        ]
    return "  ".join(words)


def _figures(progress: "Progress") -> dict[str, str]:
    """What the figures of a progress are called, and how they are written."""
    return {
        "rows": f"{progress.rows_total:,}",
        "rows/s": f"{progress.rows_per_s_in:,.0f}",
        "batch-ms": f"{progress.batch_ms:,}",
        "lag": "-" if progress.lag_messages is None else f"{progress.lag_messages:,}",
        "lag-s": "-" if progress.lag_seconds is None else f"{progress.lag_seconds:.1f}",
        "eta-s": "-" if progress.eta_seconds is None else f"{progress.eta_seconds:.0f}",
    }


@contextmanager
def _table() -> Iterator[Screen]:
    """A table on the terminal, drawn again as it changes; rows pass above it."""
    from rich.console import Console
    from rich.live import Live

    from barnabas.spark.pipelines.progress import record

    console = Console(highlight=False)
    parts: dict[str, Progress] = {}
    with Live(console=console, refresh_per_second=4, transient=False) as live:

        class Table:
            def take(self, progress: "Progress") -> None:
                record(parts, progress)
                live.update(_drawn(list(parts.values())))

            def row(self, pipeline: str, row: Mapping[str, object]) -> None:
                console.print(json.dumps(row, ensure_ascii=False), markup=False, soft_wrap=True)

        yield Table()


def _drawn(parts: "Sequence[Progress]") -> Any:
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    columns = ("rows", "rows/s", "batch-ms", "lag", "lag-s", "eta-s")
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    drawn.add_column("PIPELINE", no_wrap=True)
    drawn.add_column("STATE")
    for name in columns:
        drawn.add_column(name.upper(), justify="right")
    for each in parts:
        figures = _figures(each)
        drawn.add_row(
            Text(each.part),
            Text(each.state, style=_STYLES.get(each.state, "")),
            *(Text(figures[name]) for name in columns),
        )
    errors = dict.fromkeys(f"{each.pipeline}: {each.last_error}" for each in parts if each.last_error)
    return Group(drawn, *(Text(error, style="yellow") for error in errors))


_STYLES: Mapping[str, str] = {"running": "green", "waiting": "yellow", "failed": "red", "done": "green"}
