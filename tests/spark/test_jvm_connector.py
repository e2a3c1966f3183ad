"""Spark's own Kafka connector against our broker, and beside our source: the same rows for the same options.

One driver does all jobs in one session.  Skipped where its jars cannot be had.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer
from barnabas.records.record import Record
from barnabas.testing import Broker
from tests import _spark_connector
from tests.client._kit import KEPT
from tests.spark._kit import Topics

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(450),
    pytest.mark.skipif(
        (reason := _spark_connector.why_missing()) is not None, reason=reason or "the connector is there"
    ),
]

Job = dict[str, Any]
BOTH: Final = ("kafka", "barnabas")
TIMEOUT_S: Final = 400
MINUTE: Final = 60_000
START: Final = 1_700_000_000_000
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")

READS: Final[dict[str, dict[str, str]]] = {
    "everything": {"subscribe": "rows"},
    "headers": {"subscribe": "rows", "includeHeaders": "true"},
    "assign": {"assign": '{"rows":[0,2],"more":[0]}'},
    "pattern": {"subscribePattern": "ro.*|mor[a-f]"},
    "part_of_names": {"subscribePattern": "o[rw]|^mor$"},
    "offsets": {
        "subscribe": "rows",
        "startingOffsets": '{"rows":{"0":3,"1":-2,"2":9}}',
        "endingOffsets": '{"rows":{"0":7,"1":-1,"2":10}}',
    },
    "since": {"subscribe": "rows", "startingTimestamp": str(START + 4 * MINUTE)},
    "until": {"subscribe": "rows", "endingTimestamp": str(START + 4 * MINUTE + 1)},
    "times": {
        "subscribe": "rows",
        "startingOffsetsByTimestamp": json.dumps({"rows": {str(p): START + p * MINUTE for p in range(3)}}),
        "endingOffsetsByTimestamp": json.dumps({"rows": {str(p): START + 6 * MINUTE for p in range(3)}}),
    },
    "later_than_all": {
        "subscribe": "rows",
        "startingTimestamp": str(START + 1000 * MINUTE),
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "many_tasks": {"subscribe": "rows", "minPartitions": "7"},
    "small_tasks": {"subscribe": "rows", "maxRecordsPerPartition": "4"},
    "uncommitted": {"subscribe": "more,transactions"},
    "committed": {"subscribe": "more,transactions", "kafka.isolation.level": "read_committed"},
    "empty": {"subscribe": "empty"},
}
SPLIT: Final = ("many_tasks",)  # their batch reads leave maxRecordsPerPartition without effect
STREAMS: Final[dict[str, dict[str, str]]] = {
    "in_one": {"subscribe": "rows", "startingOffsets": "earliest"},
    "in_parts": {
        "subscribe": "rows",
        "startingOffsets": '{"rows":{"0":3,"1":-2,"2":9}}',
        "maxOffsetsPerTrigger": "5",
    },
}
WRITTEN: Final = """
    SELECT CAST(CONCAT('k', id) AS BINARY) AS key,
           CASE WHEN id % 5 = 0 THEN NULL ELSE CAST(CONCAT('v', id) AS BINARY) END AS value,
           CAST(id % 3 AS INT) AS partition,
           ARRAY(NAMED_STRUCT('key', 'h', 'value', CAST(CAST(id AS STRING) AS BINARY))) AS headers
    FROM RANGE(0, 50, 1, 2)
"""
HASHED: Final = """
    SELECT CONCAT('key-', id) AS key, CAST(id AS STRING) AS value, '{topic}' AS topic FROM RANGE(0, 60, 1, 2)
"""


class Answers(NamedTuple):
    """What came of every job, by its name and the connector that did it."""

    found: dict[tuple[str, str], Any]
    bootstrap: str

    def both(self, name: str) -> tuple[Any, Any]:
        theirs, ours = (self.found[name, connector] for connector in BOTH)
        for connector, answer in zip(BOTH, (theirs, ours), strict=True):
            assert not (isinstance(answer, dict) and "error" in answer), f"{connector}: {answer['error']}"
        return theirs, ours


def fill(topics: Topics) -> None:
    """Records of every kind: null and empty parts, headers, each codec, a minute between neighbours."""
    for name, partitions in (("rows", 3), ("more", 1), ("transactions", 2), ("empty", 2), ("copied", 2)):
        topics.create(name, partitions, config=KEPT)
    for number in range(30):
        settings = {"bootstrap.servers": topics.bootstrap, "compression.type": CODECS[number % 5]}
        with Producer(settings) as producer:
            producer.send(
                "rows",
                None if number % 7 == 0 else b"v%d" % number if number % 4 else b"",
                key=None if number % 3 == 0 else b"\xff\x00k%d" % number,
                partition=number // 10,
                timestamp_ms=START + (number % 10) * MINUTE,
                headers=[] if number % 2 else [("h", b"1"), ("h", None), ("ü", b"")],
            )
    topics.fill("more", 5)
    with Producer({"bootstrap.servers": topics.bootstrap}, transactional_id="jvm") as producer:
        producer.init_transactions()
        for round_ in range(4):
            producer.begin_transaction()
            for number in range(6):
                producer.send("transactions", b"%d-%d" % (round_, number), partition=number % 2)
            producer.flush()
            if round_ % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()


def jobs_for(bootstrap: str) -> list[Job]:
    server = {"kafka.bootstrap.servers": bootstrap}
    jobs: list[Job] = []
    for connector in BOTH:
        for do, cases in (("read", READS), ("stream", STREAMS)):
            jobs += [
                {
                    "do": do,
                    "name": name,
                    "format": connector,
                    "options": {**server, **options},
                    "tasks": name in SPLIT,
                }
                for name, options in cases.items()
            ]
        written = {**server, "topic": f"written-{connector}", "includeHeaders": "true"}
        jobs.append(
            {"do": "write", "name": "written", "format": connector, "sql": WRITTEN, "options": written}
        )
        hashed = HASHED.format(topic=f"hashed-{connector}")
        jobs.append({"do": "write", "name": "hashed", "format": connector, "sql": hashed, "options": server})
        jobs.append(
            {
                "do": "copy",
                "name": "copied",
                "format": connector,
                "sink": connector,
                "source": {**server, "subscribe": "rows", "startingOffsets": "earliest"},
                "columns": ["key", "value", "CAST(partition % 2 AS INT) AS partition"],
                "options": {**server, "topic": f"copied-{connector}"},
            }
        )
    return jobs


def run_driver(jobs: list[Job]) -> list[Any]:
    spark = {**_spark_connector.settings(), "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark._jvm_driver", json.dumps(spark)],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    results: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return results


@pytest.fixture(scope="module")
def answers() -> Iterator[Answers]:
    with Broker() as broker, Topics(broker.bootstrap_servers) as topics:
        fill(topics)
        for connector in BOTH:
            for stem, partitions in (("written", 3), ("hashed", 6), ("copied", 2)):
                topics.create(f"{stem}-{connector}", partitions, config=KEPT)
        jobs = jobs_for(broker.bootstrap_servers)
        results = run_driver(jobs)
        found = {(job["name"], job["format"]): one for job, one in zip(jobs, results, strict=True)}
        yield Answers(found, broker.bootstrap_servers)


def records_of(bootstrap: str, topic: str) -> list[Record]:
    """All records of a topic, partition after partition."""
    with Consumer({"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}) as consumer:
        parts = [TopicPartition(topic, number) for number in range(len(consumer.partitions_for(topic)))]
        consumer.assign(parts)
        ends = consumer.end_offsets(*parts)
        found: list[Record] = []
        while any(consumer.position(part) < ends[part] for part in parts):
            found += consumer.poll(0.2)
    return sorted(found, key=lambda record: (record.partition, record.offset))


@pytest.mark.parametrize("name", READS)
def test_batch_reads_have_the_same_rows_and_schema(answers: Answers, name: str) -> None:
    theirs, ours = answers.both(name)
    assert ours["rows"] == theirs["rows"]
    assert ours["schema"] == theirs["schema"]
    assert bool(theirs["rows"]) is (name not in ("later_than_all", "empty"))


@pytest.mark.parametrize("name", SPLIT)
def test_ranges_are_split_into_as_many_tasks(answers: Answers, name: str) -> None:
    theirs, ours = answers.both(name)
    assert ours["tasks"] == theirs["tasks"]


@pytest.mark.parametrize("name", STREAMS)
def test_streams_have_the_same_rows_in_the_same_batches(answers: Answers, name: str) -> None:
    theirs, ours = answers.both(name)
    assert ours["rows"] == theirs["rows"]
    assert ours["batches"] == theirs["batches"]


def test_written_rows_become_the_same_records(answers: Answers) -> None:
    answers.both("written")
    theirs, ours = (records_of(answers.bootstrap, f"written-{connector}") for connector in BOTH)
    assert len(theirs) == 50

    def parts(records: list[Record]) -> list[tuple[object, ...]]:
        return sorted((r.partition, r.key, r.value or b"", r.value is None, r.headers) for r in records)

    assert parts(ours) == parts(theirs)


def test_keys_go_to_the_same_partitions(answers: Answers) -> None:
    answers.both("hashed")
    theirs, ours = (records_of(answers.bootstrap, f"hashed-{connector}") for connector in BOTH)
    assert {r.key: r.partition for r in ours} == {r.key: r.partition for r in theirs}
    assert len(ours) == len(theirs) == 60


def test_a_stream_from_topic_to_topic_copies_all_records(answers: Answers) -> None:
    answers.both("copied")
    theirs, ours = (records_of(answers.bootstrap, f"copied-{connector}") for connector in BOTH)

    def parts(records: list[Record]) -> list[tuple[object, ...]]:
        return sorted((r.partition, r.key or b"", r.value or b"", r.value is None) for r in records)

    assert parts(ours) == parts(theirs)
    assert len(theirs) == 30
