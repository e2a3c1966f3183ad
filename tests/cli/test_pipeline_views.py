"""What `pipeline validate` and `pipeline status` show."""

from pathlib import Path

import pytest

from barnabas.cli.pipeline_views import described, status_rows
from barnabas.spark.pipelines.files import parse_document
from barnabas.spark.pipelines.progress import Progress
from barnabas.spark.pipelines.spec import Pipeline
from barnabas.spark.pipelines.status import StatusFile
from barnabas.testing import Broker


def pipeline(bootstrap: str, topic: str) -> Pipeline:
    (found,) = parse_document(
        {
            "name": "lake",
            "kind": "transform",
            "bootstrap": bootstrap,
            "source": {"topic": topic},
            "sinks": [{"topic": "out"}, {"parquet": "/lake"}, {"console": True}],
            "dead_letters": "dead",
        },
        "f.yaml",
    )
    return found


def test_what_a_pipeline_reads_and_writes() -> None:
    assert described(pipeline("127.0.0.1:1", "orders"), offline=True) == {
        "name": "lake",
        "kind": "transform",
        "reads": ["orders"],
        "writes": ["out", "/lake", "console", "dead"],
        "schemas": {},
    }


def test_one_that_never_ran_says_so(tmp_path: Path) -> None:
    (row,) = status_rows(pipeline("127.0.0.1:1", "orders"), str(tmp_path))
    assert (row["part"], row["state"], row["batch"]) == ("lake", "never ran", None)


def test_progress_that_is_elsewhere_is_not_known() -> None:
    (row,) = status_rows(pipeline("127.0.0.1:1", "orders"), "hdfs://name-1:8020/progress")
    assert row["state"] == "unknown"


def test_one_that_was_killed_is_told_from_one_that_runs(tmp_path: Path) -> None:
    status = StatusFile(str(tmp_path / "lake"))
    status.take(Progress("lake", "lake", "running", batch_id=7, last_error="x", restarts=2))
    (row,) = status_rows(pipeline("127.0.0.1:1", "orders"), str(tmp_path))
    assert (row["state"], row["batch"], row["restarts"], row["last_error"]) == ("killed", 7, 2, "x")


@pytest.mark.slow
def test_the_lag_is_that_of_the_group(tmp_path: Path) -> None:
    from barnabas.base.types import TopicPartition
    from barnabas.client.admin import Admin
    from barnabas.client.producer import Producer

    with Broker() as broker:
        broker.create_topic("orders", 1)
        settings = {"bootstrap.servers": broker.bootstrap_servers}
        with Producer(settings) as producer:
            for _ in range(5):
                producer.send("orders", b'{"id": 1}')
        with Admin(settings) as admin:
            admin.alter_group_offsets("spark:lake", {TopicPartition("orders", 0): 2})
        StatusFile(str(tmp_path / "lake")).take(Progress("lake", "lake", "done"))
        (row,) = status_rows(pipeline(broker.bootstrap_servers, "orders"), str(tmp_path))
        assert (row["state"], row["lag_messages"]) == ("done", 3)
        schemas = described(pipeline(broker.bootstrap_servers, "orders"), offline=False)["schemas"]
        assert schemas == {"orders": "id BIGINT"}
