"""The job of the demo on Spark: a pipeline file, run as any other by `barnabas pipeline run`.

Orders go through SQL to two sinks, a topic and Parquet files, each exactly once.  What the pipeline tells of
itself are the JSON lines of the command.
"""

import json
import threading
from pathlib import Path
from typing import Any, Final

from barnabas.base.errors import BarnabasError
from barnabas.cli.demo.child import Child
from barnabas.cli.demo.jobs import JobProgress

__all__ = ["SparkJob", "SparkProgress", "pipeline_file", "what_is_missing"]

_SINKS: Final = 2
_RESTARTS_MAX: Final = 6
_FILE: Final = """\
# The pipeline of `barnabas demo`.  Run it yourself: barnabas pipeline run {name}
name: sales
kind: transform
bootstrap: {address}
source:
  topic: {source}
  format: json
  schema: {schema}
sql: |
  SELECT order_id, region, product, round(quantity * unit_price, 2) AS total
  FROM {source}
trigger: 500ms
sinks:
  - topic: {target}
    key: region
  - parquet: {landing}
"""
_SCHEMA: Final = (
    "order_id string, customer_id int, customer string, region string, product string, category string, "
    "quantity int, unit_price double, ordered_at timestamp"
)


def pipeline_file(name: str, address: str, source: str, target: str, landing: Path) -> str:
    """The text of the pipeline file."""
    return _FILE.format(
        name=name, address=address, source=source, target=target, landing=landing, schema=_SCHEMA
    )


def what_is_missing() -> str | None:
    """One sentence when Spark cannot run here, else None."""
    from importlib.util import find_spec

    from barnabas.cli.java import find_java, how_to_install

    java = find_java()
    if java is None or not java.is_new_enough:
        return how_to_install(java)
    for module in ("pyspark", "pyarrow", "yaml"):
        if find_spec(module) is None:
            return f"the Python package {module} is missing: pip install 'barnabas[spark]'"
    from barnabas.spark.versions import why_no_pipelines

    return why_no_pipelines()


class SparkProgress:
    """What the lines of `pipeline run --json` come to.  `take` and `now` may be called from two threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: dict[str, dict[str, Any]] = {}
        self._batches: dict[str, int] = {}

    def take(self, line: str) -> None:
        """One line; what is no progress of a part is passed over."""
        try:
            told = json.loads(line)
        except ValueError:
            return
        if not isinstance(told, dict) or "part" not in told or "state" not in told:
            return
        part = told["part"]
        with self._lock:
            before = self._parts.get(part)
            if told.get("rows_in") and (before is None or told.get("batch_id") != before.get("batch_id")):
                self._batches[part] = self._batches.get(part, 0) + 1
            self._parts[part] = told

    def now(self) -> JobProgress:
        """Both sinks as one job, as far as the one that is behind."""
        with self._lock:
            told = [part for name, part in self._parts.items() if "." in name]
            batches = dict(self._batches)
            states = {part["state"] for part in self._parts.values()}
        if "waiting" in states:
            return JobProgress(state="Spark tries again")
        if not batches:
            return JobProgress(state="Spark starts")
        return JobProgress(
            state="running" if states <= {"running", "starting"} else sorted(states)[0],
            rows_in=min(part.get("rows_total") or 0 for part in told) if len(told) == _SINKS else 0,
            batches=sum(batches.values()),
            batch_ms=max(part.get("batch_ms") or 0.0 for part in told),
        )

    def failure(self) -> str | None:
        """Why there is nothing to wait for; None as long as there is."""
        with self._lock:
            for name, part in self._parts.items():
                gave_up = (part.get("restarts") or 0) >= _RESTARTS_MAX and part["state"] == "waiting"
                if part["state"] == "failed" or gave_up:
                    return f"the pipeline {name} does not run: {part.get('last_error')}"
        return None


class SparkFailed(BarnabasError):
    """The pipeline gave up; the text is its own."""


class SparkJob:
    """`barnabas pipeline run` as a child."""

    title = "Spark SQL"

    def __init__(self, address: str, folder: Path, source: str, target: str) -> None:
        self._folder = folder
        self._file = folder / "demo.yaml"
        self._file.write_text(
            pipeline_file(self._file.name, address, source, target, folder / "parquet"), encoding="utf-8"
        )
        self._progress = SparkProgress()
        self._child: Child | None = None

    def start(self) -> None:
        self._child = Child(
            "pipeline",
            ["pipeline", "run", str(self._file), "--checkpoint", str(self._folder / "checkpoints"), "--json"],
            log=self._folder / "pipeline.log",
            on_line=self._progress.take,
            folder=self._folder,
        )

    def progress(self) -> JobProgress:
        return self._progress.now()

    def check(self) -> None:
        failure = self._progress.failure()
        if failure is not None:
            raise SparkFailed(failure)
        if self._child is not None:
            self._child.check()

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop(grace_s=30.0)
