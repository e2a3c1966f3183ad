"""Source and sink against Apache Kafka, without a session: what executors and driver ask of a cluster.

BARNABAS_CONFORMANCE=kafka runs all tests of this folder against it; these run wherever it can be had.
"""

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.producer import Producer
from barnabas.spark import source, writing
from barnabas.spark.errors import ReplayRefused, SparkPartError
from barnabas.spark.exactly_once import TaskName, write_exactly_once
from barnabas.spark.lookup import Lookup
from barnabas.spark.options import parse_source
from barnabas.spark.progress import Progress
from barnabas.spark.reading import close_fetchers
from barnabas.spark.sink import prepare
from barnabas.spark.sink_options import EXACTLY_ONCE, parse_sink
from tests import _kafka
from tests.spark._kit import Topics

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif((reason := _kafka.why_missing()) is not None, reason=reason or "Kafka is there"),
]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Topics]:
    with _kafka.KafkaServer() as server, Topics(server.bootstrap_servers) as made:
        yield made
        writing.close_kept()
        close_fetchers()


def rows_of(kafka: Topics, **options: str) -> list[tuple[int, int, bytes]]:
    given = {"kafka.bootstrap.servers": kafka.bootstrap, **options}
    reader = source.batch_reader(given, source.schema(given))
    batches = [batch for task in reader.partitions() for batch in reader.read(task)]
    return sorted(
        (row["partition"], row["offset"], row["value"]) for batch in batches for row in batch.to_pylist()
    )


def test_a_read_has_every_committed_record_between_its_bounds(kafka: Topics, topic: str) -> None:
    kafka.create(topic, 2)
    kafka.fill(topic, 10)
    with Producer({"bootstrap.servers": kafka.bootstrap}, transactional_id=topic) as producer:
        for commit in (False, True):
            producer.begin_transaction()
            producer.send(topic, b"yes" if commit else b"no", partition=0)
            producer.flush()
            producer.commit_transaction() if commit else producer.abort_transaction()
    committed = {"kafka.isolation.level": "read_committed"}
    found = rows_of(kafka, subscribe=topic, **committed)
    assert [value for partition, _, value in found if partition == 0] == [
        *(b"v%d" % number for number in range(0, 10, 2)),
        b"yes",
    ]
    bounds = {
        "startingOffsets": json.dumps({topic: {"0": 3, "1": -2}}),
        "endingOffsets": json.dumps({topic: {"0": 5, "1": 1}}),
    }
    assert rows_of(kafka, subscribe=topic, **bounds) == [(0, 3, b"v6"), (0, 4, b"v8"), (1, 0, b"v1")]


def test_a_task_is_written_once_whoever_repeats_it(kafka: Topics, topic: str) -> None:
    kafka.create(topic, 3)
    options = prepare(parse_sink({"kafka.bootstrap.servers": kafka.bootstrap, "topic": topic}))
    assert options.delivery == EXACTLY_ONCE
    task = TaskName(topic, "query", 4, 0)
    batch = pa.record_batch({"key": [f"k{n}" for n in range(50)], "value": [f"v{n}" for n in range(50)]})

    def overtaken() -> Iterator[pa.RecordBatch]:
        yield batch
        assert write_exactly_once([batch], options, task) == (50, False)
        yield batch

    with pytest.raises(SparkPartError, match="another attempt took over"):
        write_exactly_once(overtaken(), options, task)
    assert write_exactly_once([batch], options, task) == (50, True)
    with pytest.raises(ReplayRefused, match="was written before, with 50 rows"):
        write_exactly_once([batch.slice(1)], options, task)
    assert len(kafka.values(topic, isolation="read_committed")) == 50


def test_a_group_shows_how_far_a_stream_is(kafka: Topics, topic: str) -> None:
    kafka.create(topic)
    kafka.fill(topic, 7)
    options = parse_source(
        {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic, "queryName": topic}, stream=True
    )
    lookup = Lookup(options)
    try:
        Progress(lookup, options.group).tell({TopicPartition(topic, 0): 5}, 2)
    finally:
        lookup.close()
    assert kafka.admin.group_lag(f"spark:{topic}").messages == 2
