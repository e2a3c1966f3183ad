"""Rates, lag and ETA of a pipeline, from its batches."""

from barnabas.spark.pipelines.jobs import BatchReport
from barnabas.spark.pipelines.progress import Meter, Progress, record

AT = ("t", 0)


def report(batch: int, rows: int, done: int, end: int, *, rows_out: int | None = None) -> BatchReport:
    return BatchReport(batch, rows, rows_out, 100, {AT: done}, {AT: end})


def test_rates_are_those_of_the_last_seconds() -> None:
    meter = Meter(0)
    meter.take(report(0, 500, 500, 2000, rows_out=50), 1_000)
    found = meter.take(report(1, 500, 1000, 2000, rows_out=50), 2_000)
    assert (found["rows_per_s_in"], found["rows_per_s_out"]) == (500.0, 50.0)
    assert found["rows_total"] == 1000
    later = meter.take(report(2, 100, 1100, 2000), 30_000)
    assert later["rows_per_s_in"] == 10.0
    assert later["rows_per_s_out"] is None


def test_lag_is_what_is_left_in_the_partitions() -> None:
    found = Meter(0).take(report(0, 10, 10, 25), 1_000)
    assert found["lag_messages"] == 15
    assert found["lag_seconds"] is None
    assert found["eta_seconds"] is None


def test_lag_in_seconds_is_since_the_partitions_ended_there() -> None:
    meter = Meter(0)
    meter.take(report(0, 10, 10, 10), 1_000)
    meter.take(report(1, 5, 15, 30), 5_000)
    found = meter.take(report(2, 10, 25, 50), 8_000)
    assert found["lag_seconds"] == 7.0
    assert meter.take(report(3, 25, 50, 50), 9_000)["lag_seconds"] == 0.0


def test_eta_counts_with_what_still_comes() -> None:
    meter = Meter(0)
    meter.take(report(0, 100, 100, 1000), 1_000)
    found = meter.take(report(1, 200, 300, 1100), 2_000)
    assert found["eta_seconds"] == 8.0
    falling_behind = meter.take(report(2, 10, 310, 5000), 3_000)
    assert falling_behind["eta_seconds"] is None
    assert meter.take(report(3, 4690, 5000, 5000), 4_000)["eta_seconds"] == 0.0


def test_a_source_that_tells_no_positions_has_no_lag() -> None:
    found = Meter(0).take(BatchReport(0, 10, None, 100), 1_000)
    assert (found["lag_messages"], found["lag_seconds"], found["eta_seconds"]) == (None, None, None)


def test_a_progress_is_a_document() -> None:
    found = Progress("lake", "lake.parquet", "running", batch_id=3).as_json()
    assert found["part"] == "lake.parquet"
    assert found["batch_id"] == 3
    assert found["last_error"] is None


def test_a_pipeline_gives_way_to_its_parts_and_a_part_of_its_name_stays() -> None:
    parts: dict[str, Progress] = {}
    for name, state in (("a", "starting"), ("b", "starting"), ("a.x", "running"), ("a.y", "running")):
        record(parts, Progress(name[0], name, state))
    assert list(parts) == ["b", "a.x", "a.y"]
    for name in ("b", "b.dead-letters", "b"):
        record(parts, Progress("b", name, "running"))
    assert list(parts) == ["a.x", "a.y", "b", "b.dead-letters"]
