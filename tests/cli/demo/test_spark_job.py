"""barnabas.cli.demo.spark_job: the pipeline file, and what its lines come to."""

import json
from pathlib import Path

import pytest

from barnabas.cli.demo.spark_job import SparkProgress, pipeline_file, what_is_missing


def line(part: str, **facts: object) -> str:
    return json.dumps({"pipeline": "sales", "part": part, "state": "running", "restarts": 0, **facts})


@pytest.fixture
def progress() -> SparkProgress:
    return SparkProgress()


def test_the_file_is_one_that_pipeline_run_takes(tmp_path: Path) -> None:
    from barnabas.spark.pipelines import load

    path = tmp_path / "demo.yaml"
    path.write_text(pipeline_file("demo.yaml", "localhost:9092", "orders", "sales", tmp_path / "parquet"))
    (pipeline,) = load(path)
    assert (pipeline.name, len(pipeline.plan.sinks)) == ("sales", 2)


def test_it_starts_until_a_sink_has_had_a_batch(progress: SparkProgress) -> None:
    assert progress.now().state == "Spark starts"
    progress.take(line("sales", state="starting"))
    progress.take(line("sales.parquet", batch_id=None, rows_in=0))
    assert (progress.now().state, progress.now().batches) == ("Spark starts", 0)
    progress.take(line("sales.topic", batch_id=0, rows_in=10, rows_total=10))
    assert (progress.now().batches, progress.now().rows_in) == (1, 0)


def test_it_is_as_far_as_the_sink_that_is_behind(progress: SparkProgress) -> None:
    progress.take(line("sales.topic", batch_id=0, rows_in=10, rows_total=10))
    progress.take(line("sales.topic", batch_id=1, rows_in=5, rows_total=15))
    progress.take(line("sales.topic", batch_id=1, rows_in=5, rows_total=15))
    progress.take(
        line(
            "sales.parquet",
            batch_id=0,
            rows_in=9,
            rows_total=9,
            batch_ms=70,
            lag_messages=4,
            lag_seconds=None,
        )
    )
    now = progress.now()
    assert (now.state, now.rows_in, now.batches, now.batch_ms) == ("running", 9, 3, 70)


def test_a_pipeline_that_gave_up_is_a_failure(progress: SparkProgress) -> None:
    assert progress.failure() is None
    progress.take(line("sales.topic", state="waiting", restarts=1, last_error="no broker"))
    assert (progress.failure(), progress.now().state) == (None, "Spark tries again")
    progress.take(line("sales.topic", state="waiting", restarts=6, last_error="no broker"))
    assert progress.failure() == "the pipeline sales.topic does not run: no broker"
    progress.take(line("sales.topic", state="failed", last_error="no such column"))
    assert progress.failure() == "the pipeline sales.topic does not run: no such column"


@pytest.mark.parametrize("text", ["", "not json", "[1]", '{"state": "running"}'])
def test_other_lines_are_passed_over(progress: SparkProgress, text: str) -> None:
    progress.take(text)
    assert progress.now().state == "Spark starts"


def test_what_is_missing_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert str(what_is_missing()).startswith("Java is missing, and Spark needs 17 or newer: ")
