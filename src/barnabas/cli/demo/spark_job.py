"""The job of the demo on Spark: a pipeline file, run as any other by `barnabas pipeline run`.

Two pipelines in one driver read the orders: `revenue` counts and sums by region into a topic, `lake` lands
every order with its total as Parquet.  What they tell of themselves are the JSON lines of the command.
"""

import json
import threading
from pathlib import Path
from typing import Any, Final

from barnabas.base.errors import BarnabasError
from barnabas.cli.demo.child import Child
from barnabas.cli.demo.jobs import JobProgress

__all__ = ["SparkJob", "SparkProgress", "pipeline_file", "what_is_missing"]

_PIPELINES: Final = ("revenue", "lake")
_FILE: Final = """\
# The pipelines of `barnabas demo`.  Run them yourself: barnabas pipeline run {name}
bootstrap: {address}

pipelines:
  - name: revenue
    kind: transform
    source:
      topic: {source}
      format: json
      schema: {schema}
    sql: |
      SELECT region, count(*) AS orders, round(sum(quantity * unit_price), 2) AS revenue
      FROM {source} GROUP BY region
    output: update
    trigger: 500ms
    sink:
      topic: {target}
      key: region

  - name: lake
    kind: land
    source:
      topic: {source}
      format: json
      schema: {schema}
    sql: |
      SELECT *, quantity * unit_price AS total FROM {source}
    trigger: 2s
    sink:
      parquet: {landing}
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
    return None


class SparkProgress:
    """What the lines of `pipeline run --json` come to.  `take` and `now` may be called from two threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: dict[str, dict[str, Any]] = {}
        self._batches: dict[str, int] = {}

    def take(self, line: str) -> None:
        """One line; what is no progress of a pipeline is passed over."""
        try:
            told = json.loads(line)
        except ValueError:
            return
        if not isinstance(told, dict) or "pipeline" not in told or "state" not in told:
            return
        name = told["pipeline"]
        with self._lock:
            before = self._parts.get(name)
            if told.get("rows_in") and (before is None or told.get("batch_id") != before.get("batch_id")):
                self._batches[name] = self._batches.get(name, 0) + 1
            self._parts[name] = told

    def now(self) -> JobProgress:
        """Both pipelines as one job: as far as the one that is behind, its lag the worse of both."""
        with self._lock:
            parts, batches = dict(self._parts), dict(self._batches)
        if len(parts) < len(_PIPELINES):
            return JobProgress(state="Spark starts")
        told = list(parts.values())
        is_working = all(batches.get(name) for name in _PIPELINES)
        states = {part["state"] for part in told}
        state = "running" if states == {"running"} else next(iter(sorted(states - {"running"})))
        return JobProgress(
            state=state if is_working or state not in ("running", "starting") else "Spark starts",
            rows_in=min(part.get("rows_total") or 0 for part in told),
            rows_per_s=min(part.get("rows_per_s_in") or 0.0 for part in told),
            batches=sum(batches.values()) if is_working else 0,
            batch_ms=max(part.get("batch_ms") or 0.0 for part in told),
            lag_messages=max((part.get("lag_messages") or 0 for part in told), default=None),
            lag_seconds=max((part.get("lag_seconds") or 0.0 for part in told), default=None),
        )

    def failure(self) -> str | None:
        with self._lock:
            for name, part in self._parts.items():
                if part["state"] == "failed":
                    return f"pipeline {name}: {part.get('last_error')}"
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
