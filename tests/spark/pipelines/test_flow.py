"""The queries of a flow: their names, and what a function must give."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark._kit import Topics
from tests.spark.pipelines._flows import SCHEMA, ended, run_once, send_orders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_a_function_that_gives_no_stream_is_one_sentence(
    spark: "SparkSession", topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.create(topic)
    send_orders(topics, topic, range(3))
    document = {
        "name": "broken",
        "kind": "transform",
        "bootstrap": topics.bootstrap,
        "source": {"topic": topic, "schema": SCHEMA},
        "python": lambda orders: 7,
        "sinks": [{"console": 1}, {"console": 2}],
    }
    outcomes, told, _ = run_once(spark, tmp_path, document)
    assert ended(outcomes) == [
        ("failed", "test.yaml: the function of broken must give a streaming DataFrame, not int")
    ]
    assert {each.part for each in told} == {"broken"}
