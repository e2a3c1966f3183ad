"""The queries of a flow: their names, and what a function must give."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.base.types import TopicPartition
from barnabas.spark.pipelines.errors import PipelineError
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


def test_offsets_and_topics_that_are_gone_and_other_sources_are_one_sentence_each(
    spark: "SparkSession", topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.create(topic)
    topics.create(f"{topic}-b")
    send_orders(topics, topic, range(5))

    def document(*names: str) -> dict[str, Any]:
        return {
            "name": "copy",
            "kind": "transform",
            "bootstrap": topics.bootstrap,
            "sources": [{"topic": name, "schema": SCHEMA} for name in names],
            "sql": " UNION ALL ".join(f"SELECT id FROM {name.replace('-', '_')}" for name in names),
            "sink": {"topic": f"{topic}-copy"},
        }

    assert ended(run_once(spark, tmp_path, document(topic))[0]) == [("done", None)]

    send_orders(topics, topic, range(5, 10))
    topics.admin.delete_records({TopicPartition(topic, 0): 8})
    ((state, error),) = ended(run_once(spark, tmp_path, document(topic))[0])
    assert state == "failed"
    assert (error or "").startswith(f"offsets 5 to 7 of {topic}-0 are lost")
    assert len(topics.values(f"{topic}-copy", isolation="read_committed")) == 5

    outcomes, _, _ = run_once(spark, tmp_path, document(topic, f"{topic}-b"))
    assert ended(outcomes) == [
        (
            "failed",
            "the checkpoint was written by a pipeline with other sources; give this one a new checkpoint",
        )
    ]

    topics.admin.delete_topics([topic])
    with pytest.raises(PipelineError, match=rf"^there is no topic {topic} at "):
        run_once(spark, tmp_path, document(topic))
