"""What Spark tells of a query's progress is understood."""

from typing import Any

from barnabas.spark.pipelines.jobs import QueryJob, positions, report_of


def progress(batch: int, rows: int = 5, **more: Any) -> dict[str, Any]:
    return {
        "batchId": batch,
        "numInputRows": rows,
        "durationMs": {"triggerExecution": 120, "addBatch": 80},
        "sources": [
            {
                "endOffset": '{"#base":{"t":{"0":0}},"#batch":1,"t":{"0":7,"1":3}}',
                "latestOffset": '{"t":{"0":9,"1":3}}',
            }
        ],
        "sink": {"description": "x", "numOutputRows": -1},
        **more,
    }


class FakeQuery:
    """A query that has told some progress."""

    def __init__(self, *told: dict[str, Any]) -> None:
        self.recentProgress = list(told)
        self.isActive = True
        self.stopped = 0
        self.status = {"message": "Processing new data"}

    def exception(self) -> BaseException | None:
        return None

    def stop(self) -> None:
        self.stopped += 1


def test_a_progress_becomes_a_report() -> None:
    found = report_of(progress(4))
    assert (found.batch_id, found.rows_in, found.rows_out, found.batch_ms) == (4, 5, None, 120)
    assert found.done == {("t", 0): 7, ("t", 1): 3}
    assert found.ends == {("t", 0): 9, ("t", 1): 3}
    assert report_of(progress(4, sink={"numOutputRows": 2})).rows_out == 2


def test_offsets_of_other_sources_are_no_positions() -> None:
    assert positions(None) == {}
    assert positions("17") == {}
    assert positions("no json") == {}
    assert positions({"logOffset": 3}) == {}
    assert positions('{"5":{"0":1}}') == {("5", 0): 1}


def test_every_batch_is_reported_once() -> None:
    query: Any = FakeQuery(progress(0), progress(1))
    job = QueryJob("lake", query)
    assert [each.batch_id for each in job.reports()] == [0, 1]
    assert job.reports() == []
    query.recentProgress.append(progress(2))
    assert [each.batch_id for each in job.reports()] == [2]
    query.recentProgress.append(progress(2, 0, timestamp="later"))
    assert [each.rows_in for each in job.reports()] == [0]
    assert job.reports() == []


def test_a_job_is_what_its_query_is() -> None:
    query: Any = FakeQuery()
    job = QueryJob("lake", query)
    job.settle()
    assert (job.name, job.is_active(), job.failure()) == ("lake", True, None)
    job.stop()
    assert query.stopped == 1
