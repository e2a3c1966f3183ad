"""`kind: land` with real Spark: rows exact, bad records kept, wrong checkpoints refused."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset
import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer
from tests.spark._kit import Topics
from tests.spark.pipelines._arrow_tables import plain_files, plain_rows
from tests.spark.pipelines._flows import SCHEMA, ended, run_once, send_orders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def land(topics: Topics, topic: str, folder: Path, **more: Any) -> dict[str, Any]:
    return {
        "name": "lake",
        "kind": "land",
        "bootstrap": topics.bootstrap,
        "source": {"topic": topic, "schema": SCHEMA, "options": {"maxOffsetsPerTrigger": 60}},
        "sink": {"parquet": str(folder / "lake"), "partition_by": ["date"], "file_size": "1mb"},
        **more,
    }


def headers_of(topics: Topics, topic: str) -> list[dict[str, bytes | None]]:
    """The headers of all committed records."""
    settings = {"bootstrap.servers": topics.bootstrap, "isolation.level": "read_committed"}
    found: list[dict[str, bytes | None]] = []
    with Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False}) as consumer:
        where = TopicPartition(topic, 0)
        consumer.assign([where])
        end = consumer.end_offsets(where)[where]
        while consumer.position(where) < end:
            found += [{**dict(each.headers), "value": each.value} for each in consumer.poll(0.2)]
    return found


def test_rows_land_once_and_bad_ones_are_kept_with_their_cause(
    spark: "SparkSession", topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.create(topic, 2)
    send_orders(topics, topic, range(100), b"rubbish", b'{"id": "text"}', None)
    with Producer({"bootstrap.servers": topics.bootstrap}, transactional_id=topic) as producer:
        producer.begin_transaction()
        for value in (b'{"id": 999}', b"rubbish that was taken back"):
            producer.send(topic, value)
        producer.flush()
        producer.abort_transaction()
    document = land(topics, topic, tmp_path, dead_letters=f"{topic}.dead")
    outcomes, told, _ = run_once(spark, tmp_path / "progress", document)
    assert ended(outcomes) == [("done", None)]
    send_orders(topics, topic, range(100, 150))
    outcomes, _, _ = run_once(spark, tmp_path / "progress", document)
    assert ended(outcomes) == [("done", None)]

    table = pyarrow.dataset.dataset(tmp_path / "lake", format="parquet", partitioning="hive").to_table()
    assert sorted(each for each in table["id"].to_pylist() if each is not None) == list(range(150))
    assert table["id"].null_count == 1, "a record without a value is a row without one"
    assert len(plain_files(str(tmp_path / "lake"))) == 1, "the file grew"
    assert set(table.column_names) >= {
        "at",
        "amount",
        "_key",
        "_topic",
        "_partition",
        "_offset",
        "_timestamp",
    }
    assert spark.read.parquet(str(tmp_path / "lake")).count() == 151

    dead = headers_of(topics, f"{topic}.dead")
    assert sorted(each["value"] or b"" for each in dead) == [b"rubbish", b'{"id": "text"}']
    for each in dead:
        assert (each["had"], each["barnabas.dead.pipeline"]) == (b"one", b"lake")
        assert each["barnabas.dead.topic"] == topic.encode()
        assert int(each["barnabas.dead.offset"] or b"-1") >= 0
    causes = {each["value"]: each["barnabas.dead.error"] for each in dead}
    assert causes[b"rubbish"] == b"the value is not JSON"
    assert causes[b'{"id": "text"}'] == f"the value does not fit the schema {SCHEMA}".encode()

    last = [each for each in told if each.part == "lake"][-1]
    assert (last.state, last.rows_total, last.lag_messages) == ("done", 103, 0)
    assert (last.batch_id or 0) > 0, "maxOffsetsPerTrigger made several batches"


def test_without_dead_letters_a_bad_record_ends_the_run_and_a_wrong_checkpoint_is_refused(
    spark: "SparkSession", topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.create(topic)
    send_orders(topics, topic, range(10))
    document = land(topics, topic, tmp_path)
    assert ended(run_once(spark, tmp_path / "one", document)[0]) == [("done", None)]

    outcomes, _, _ = run_once(spark, tmp_path / "other", document)
    ((state, error),) = ended(outcomes)
    assert state == "failed"
    assert "was landed by lake with another checkpoint, and its records would land twice" in (error or "")
    assert plain_rows(str(tmp_path / "lake")) == list(range(10))

    send_orders(topics, topic, [], b"rubbish")
    outcomes, _, _ = run_once(spark, tmp_path / "one", document)
    assert ended(outcomes) == [
        (
            "failed",
            f"{topic}-0 offset 10: the value is not JSON; set dead_letters to put such records aside",
        )
    ]
    assert plain_rows(str(tmp_path / "lake")) == list(range(10))


def test_a_delta_table_gets_the_rows_of_a_python_function(
    spark: "SparkSession", topics: Topics, topic: str, tmp_path: Path
) -> None:
    deltalake = pytest.importorskip("deltalake")
    topics.create(topic)
    send_orders(topics, topic, range(20))
    document = land(
        topics,
        topic,
        tmp_path,
        source={"topic": topic},
        python=lambda orders: orders.where("amount >= 5"),
        sink={"delta": str(tmp_path / "delta"), "partition_by": "_topic", "metadata": True},
    )
    assert ended(run_once(spark, tmp_path / "progress", document)[0]) == [("done", None)]
    table = deltalake.DeltaTable(str(tmp_path / "delta")).to_pyarrow_table()
    assert sorted(table["id"].to_pylist()) == list(range(10, 20))
