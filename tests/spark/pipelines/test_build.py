"""Every kind has a module that reads and starts it."""

from importlib import import_module
from typing import Any

import pytest

from barnabas.spark.pipelines import build
from barnabas.spark.pipelines.fields import Fields
from barnabas.spark.pipelines.spec import Cluster, Flow, Pipeline


@pytest.mark.parametrize("module", build.KINDS.values())
def test_a_kind_can_be_read_and_started(module: str) -> None:
    found = import_module(module)
    assert callable(found.parse)
    assert callable(found.start)


def test_the_reader_of_a_kind_is_its_module() -> None:
    fields = Fields({"source": {"topic": "a"}, "sink": {"parquet": "/x"}}, "f")
    plan = build.readers()["land"](fields, Cluster("b:1"))
    assert isinstance(plan, Flow)


def test_a_run_takes_what_is_there_or_goes_on() -> None:
    session: Any = None
    assert build.Run(session, "/c", once=True).trigger(500) == {"availableNow": True}
    assert build.Run(session, "/c").trigger(500) == {"processingTime": "500 milliseconds"}


def test_start_and_check_go_to_the_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    land = import_module(build.KINDS["land"])
    monkeypatch.setattr(land, "check", lambda pipeline: seen.append(f"check {pipeline.name}"))
    monkeypatch.setattr(land, "start", lambda pipeline, run: seen.append(f"start {pipeline.name}"))
    pipeline = Pipeline("lake", "land", None)
    session: Any = None
    build.check(pipeline)
    build.start(pipeline, build.Run(session, "/c"))
    assert seen == ["check lake", "start lake"]
