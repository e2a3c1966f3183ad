"""A dead letter is the record as it was, with the cause behind its own headers."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from barnabas.spark.pipelines.dead_letters import dead_rows, decodes
from barnabas.spark.pipelines.spec import Cluster, Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RAW = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)


def test_only_what_is_decoded_can_be_dead() -> None:
    found = {form: decodes(Source("v", Cluster("b:1"), ("t",), format=form)) for form in ("json", "raw")}
    assert found == {"json": True, "raw": False}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_cause_stands_in_the_headers(spark: "SparkSession") -> None:
    at = datetime(2026, 5, 1, tzinfo=UTC)
    given = spark.createDataFrame(
        [
            (b"k", b'{"a": 1}', "t", 0, 5, at, None),
            (b"k", b"rubbish", "t", 1, 6, at, [("had", b"x")]),
            (None, b"more", "t", 1, 7, at, None),
        ],
        RAW,
    )
    found = dead_rows(given, Source("v", Cluster("b:1"), ("t",)), "a INT", "lake").collect()
    assert [(row["key"] and bytes(row["key"]), bytes(row["value"])) for row in found] == [
        (b"k", b"rubbish"),
        (None, b"more"),
    ]
    headers = [(each["key"], bytes(each["value"])) for each in found[0]["headers"]]
    assert headers == [
        ("had", b"x"),
        ("barnabas.dead.pipeline", b"lake"),
        ("barnabas.dead.topic", b"t"),
        ("barnabas.dead.partition", b"1"),
        ("barnabas.dead.offset", b"6"),
        ("barnabas.dead.timestamp", b"1777593600000"),
        ("barnabas.dead.error", b"the value is not JSON"),
    ]
