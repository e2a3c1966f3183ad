"""Runs pipelines in the shared session, and makes topics with JSON orders."""

import json
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.spark.pipelines import Outcome, Progress, Supervisor
from barnabas.spark.pipelines.files import parse_document
from tests.spark._kit import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id BIGINT, at TIMESTAMP, amount DOUBLE"


def order(number: int) -> dict[str, Any]:
    """Sixty orders make an hour of the first of May."""
    return {"id": number, "at": f"2026-05-01T{number // 60:02d}:{number % 60:02d}:00Z", "amount": number / 2}


def send_orders(topics: Topics, topic: str, numbers: Sequence[int], *bad: bytes | None) -> None:
    for number in numbers:
        topics.producer.send(topic, json.dumps(order(number)).encode(), key=f"k{number % 3}".encode())
    for value in bad:
        topics.producer.send(topic, value, key=b"bad", headers=[("had", b"one")])
    topics.producer.flush()


def run_once(
    spark: "SparkSession", checkpoint: object, *documents: Mapping[str, Any]
) -> tuple[list[Outcome], list[Progress], list[Mapping[str, object]]]:
    """How pipelines ended, what they told, and the rows that they printed."""
    pipelines = [each for document in documents for each in parse_document(document, "test.yaml")]
    told: list[Progress] = []
    printed: list[Mapping[str, object]] = []
    supervisor = Supervisor(
        pipelines,
        checkpoint=str(checkpoint),
        once=True,
        spark=spark,
        write=lambda pipeline, row: printed.append(row),
    )
    return supervisor.run(threading.Event(), told.append), told, printed


def ended(outcomes: Sequence[Outcome]) -> list[tuple[str, str | None]]:
    return [(outcome.state, outcome.error) for outcome in outcomes]
