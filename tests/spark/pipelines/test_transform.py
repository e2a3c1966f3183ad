"""`kind: transform` from topics through SQL to topics and the console, with real Spark."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.spark.pipelines.errors import PipelineError
from tests.spark._kit import Topics
from tests.spark.pipelines._flows import SCHEMA, ended, run_once, send_orders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def transform(topics: Topics, **more: Any) -> dict[str, Any]:
    return {"name": "hours", "kind": "transform", "bootstrap": topics.bootstrap, **more}


def documents(topics: Topics, topic: str) -> list[dict[str, Any]]:
    return [json.loads(value) for value in topics.values(topic, isolation="read_committed")]


def test_windows_close_behind_the_watermark_and_joins_find_their_rows(
    spark: "SparkSession", topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.create(topic, 2)
    topics.create(f"{topic}-names")
    send_orders(topics, topic, range(200))
    for key, value in (("k0", "zero"), ("k1", "one")):
        topics.producer.send(f"{topic}-names", value.encode(), key=key.encode())
    topics.producer.flush()
    windows = transform(
        topics,
        source={"topic": topic, "view": "orders", "schema": SCHEMA, "watermark": "at 1 minute"},
        sql="SELECT window.start AS hour, count(*) AS n FROM orders GROUP BY window(at, '1 hour')",
        sinks=[{"topic": f"{topic}-hours", "key": "hour"}],
    )
    joined = transform(
        topics,
        name="named",
        sources=[
            {"topic": topic, "view": "orders", "schema": SCHEMA, "watermark": "_timestamp 1 hour"},
            {
                "topic": f"{topic}-names",
                "view": "names",
                "format": "string",
                "watermark": "timestamp 1 hour",
            },
        ],
        sql="""SELECT o.id, n.value AS name FROM orders o JOIN names n ON o._key = n.key
               AND n.timestamp BETWEEN o._timestamp - INTERVAL 1 HOUR AND o._timestamp + INTERVAL 1 HOUR""",
        sinks=[{"topic": f"{topic}-named"}],
    )
    outcomes, _, _ = run_once(spark, tmp_path, windows, joined)
    assert ended(outcomes) == [("done", None), ("done", None)]
    hours = sorted(documents(topics, f"{topic}-hours"), key=lambda each: str(each["hour"]))
    assert [(each["hour"][11:13], each["n"]) for each in hours] == [("00", 60), ("01", 60), ("02", 60)]
    named = {each["id"]: each["name"] for each in documents(topics, f"{topic}-named")}
    assert named == {n: ("zero", "one")[n % 3] for n in range(200) if n % 3 < 2}


def test_updates_go_to_a_topic_and_the_console_and_wrong_sql_is_one_sentence(
    spark: "SparkSession", topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.create(topic)
    send_orders(topics, topic, range(90))
    good = transform(
        topics,
        source={"topic": topic, "view": "orders", "format": "raw"},
        sql="SELECT cast(key AS STRING) AS key, count(*) AS n FROM orders GROUP BY 1",
        output="update",
        sinks=[{"topic": f"{topic}-counts", "key": "key"}, {"console": 10}],
    )
    wrong = transform(
        topics,
        name="wrong",
        source={"topic": topic, "view": "orders", "schema": SCHEMA},
        sql="SELECT nothing FROM orders",
        sinks=[{"console": True}],
    )
    outcomes, _, printed = run_once(spark, tmp_path, good, wrong)
    assert outcomes[0].state == "done", outcomes
    counts = {each["key"]: each["n"] for each in documents(topics, f"{topic}-counts")}
    assert counts == {"k0": 30, "k1": 30, "k2": 30}
    query = json.loads((tmp_path / "hours" / "topic" / "metadata").read_text())["id"]
    marks = [each.id for each in topics.admin.list_groups() if each.id.startswith("spark-sink:hours.topic/")]
    assert marks, "the batches of a query left their markers"
    assert all(each.startswith(f"spark-sink:hours.topic/{query}/") for each in marks)
    assert sorted(str(row["key"]) for row in printed) == ["k0", "k1", "k2"]
    assert outcomes[1].state == "failed"
    assert "`nothing` cannot be resolved" in (outcomes[1].error or "")
    assert "\n" not in (outcomes[1].error or "")


def test_a_topic_that_is_not_there_is_said_before_anything_starts(
    spark: "SparkSession", topics: Topics, topic: str, tmp_path: Path
) -> None:
    document = transform(topics, source={"topic": topic}, sinks=[{"console": True}])
    with pytest.raises(PipelineError, match=rf"^there is no topic {topic} at "):
        run_once(spark, tmp_path, document)
