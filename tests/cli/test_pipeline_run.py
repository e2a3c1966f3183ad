"""Progress is a line for people, a document for programs, and Spark's words have a file."""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import click
import pytest

from barnabas.cli import pipeline_run
from barnabas.cli.pipeline_run import log_path, progress_line, run_pipelines
from barnabas.spark.pipelines.progress import Progress
from barnabas.spark.pipelines.spec import Pipeline
from barnabas.spark.pipelines.supervisor import Outcome, Supervisor

LAKE = Pipeline("lake", "land", None, origin="/jobs/lake.yaml")
BATCH = Progress(
    "lake",
    "lake",
    "running",
    batch_id=3,
    rows_in=1000,
    rows_total=12_000,
    rows_per_s_in=1500.4,
    batch_ms=120,
    lag_messages=5_000,
    lag_seconds=1.25,
    eta_seconds=3.6,
)


def test_a_batch_is_a_line() -> None:
    assert progress_line(BATCH) == (
        "lake  running  batch 3  rows 12,000  rows/s 1,500  batch-ms 120  lag 5,000  lag-s 1.2  eta-s 4"
    )


def test_what_is_not_known_is_a_dash() -> None:
    assert progress_line(Progress("lake", "lake", "starting")) == "lake  starting"
    assert progress_line(Progress("lake", "lake", "running", batch_id=0)).endswith("lag -  lag-s -  eta-s -")


def test_an_error_is_a_sentence() -> None:
    waiting = Progress("lake", "lake", "waiting", last_error="the broker is away")
    assert progress_line(waiting) == "barnabas: lake: the broker is away; it starts again soon"


def test_the_log_lies_beside_the_progress() -> None:
    assert log_path([LAKE], None) == Path("/jobs/.barnabas/lake/spark.log")
    assert log_path([LAKE], "/progress") == Path("/progress/spark.log")
    assert log_path([LAKE], "s3a://bucket/progress") == Path("spark.log")


class Runs:
    """What the supervisor does instead of running Spark."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tell: Any, outcome: Outcome) -> None:
        def run(supervisor: Supervisor, stop: threading.Event, on_progress: Any) -> list[Outcome]:
            tell(supervisor, stop, on_progress)
            return [outcome]

        monkeypatch.setattr(Supervisor, "run", run)


def test_lines_are_told_once_and_rows_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def tell(supervisor: Any, stop: threading.Event, on_progress: Any) -> None:
        on_progress(BATCH)
        on_progress(BATCH)
        supervisor._write("lake", {"id": 1})
        on_progress(Progress("lake", "lake", "waiting", last_error="away"))

    Runs(monkeypatch, tell, Outcome("lake", "done", 5))
    assert run_pipelines([LAKE], checkpoint=str(tmp_path)) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [progress_line(BATCH), '{"id": 1}']
    assert shown.err == "barnabas: lake: away; it starts again soon\n"


def test_json_lines_are_documents(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    import json

    def tell(supervisor: Any, stop: threading.Event, on_progress: Any) -> None:
        on_progress(BATCH)
        supervisor._write("lake", {"id": "ü"})

    Runs(monkeypatch, tell, Outcome("lake", "failed", 5, "no"))
    assert run_pipelines([LAKE], checkpoint=str(tmp_path), as_json=True) == 1
    shown = capsys.readouterr()
    first, second = [json.loads(line) for line in shown.out.splitlines()]
    assert first == BATCH.as_json()
    assert second == {"pipeline": "lake", "row": {"id": "ü"}}
    assert shown.err.splitlines() == [
        "barnabas: lake: no",
        f"barnabas: the log of Spark is {tmp_path}/spark.log",
    ]


def test_a_reader_that_goes_away_stops_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def tell(supervisor: Any, stop: threading.Event, on_progress: Any) -> None:
        on_progress(BATCH)
        assert stop.is_set()
        on_progress(BATCH)  # the word that it stopped

    def unread(*args: Any, **more: Any) -> None:
        raise BrokenPipeError

    Runs(monkeypatch, tell, Outcome("lake", "stopped", 12_000))
    monkeypatch.setattr(click, "echo", unread)
    with pytest.raises(BrokenPipeError):
        run_pipelines([LAKE], checkpoint=str(tmp_path), as_json=True)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_stops_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    def tell(supervisor: Any, stop: threading.Event, on_progress: Any) -> None:
        os.kill(os.getpid(), number)
        assert stop.wait(10)

    Runs(monkeypatch, tell, Outcome("lake", "stopped", 0))
    before = signal.getsignal(number)
    assert run_pipelines([LAKE], checkpoint=str(tmp_path)) == code
    assert signal.getsignal(number) is before


def test_the_table_names_every_part() -> None:
    from rich.console import Console

    console = Console(width=120, record=True, file=open(os.devnull, "w"))  # noqa: SIM115 -- closed with the test
    console.print(pipeline_run._drawn([BATCH, Progress("b", "b", "failed", last_error="no such topic")]))
    text = console.export_text()
    console.file.close()
    assert "12,000" in text
    assert "no such topic" in text
