"""Transactions of tasks that were killed, ended by whoever gives the batch up."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.client.bulk_produce import BulkProducer
from barnabas.client.errors import KafkaError
from barnabas.records.builder import build_batch
from barnabas.spark import left_open
from barnabas.spark.exactly_once import TaskName
from barnabas.spark.left_open import end_left_open, query_of
from barnabas.spark.sink import BatchSink, StreamSink, Written
from barnabas.spark.sink_options import AT_LEAST_ONCE, EXACTLY_ONCE, SinkOptions, parse_sink
from tests.spark._kit import Topics

ID = "0f4e6a0e-4b3c-4a5e-9d6f-0a1b2c3d4e5f"


class Killed:
    """A task whose process is gone, as far as anybody can tell: its transaction is open."""

    def __init__(self, options: SinkOptions, topics: Topics, sink_id: str, partition: int) -> None:
        self._topics = topics
        self._key = TaskName(sink_id, sink_id, 0, partition).key
        self.producer = BulkProducer(options.client, transactional_id=self._key)
        self.producer.begin()
        self.producer.send(str(options.topic), 0, build_batch([(0, None, b"open", ())]))
        self.producer.flush()

    def is_open(self) -> bool:
        found = self._topics.admin.list_transactions(states=["Ongoing"])
        return self._key in [each.transactional_id for each in found]


@pytest.fixture
def options(bootstrap: str, topics: Topics, topic: str, tmp_path: Path) -> SinkOptions:
    """Those of a stream with a checkpoint that names its query."""
    topics.create(topic)
    (tmp_path / "metadata").write_text(f'{{"id":"{ID}"}}')
    return parse_sink(
        {
            "kafka.bootstrap.servers": bootstrap,
            "topic": topic,
            "delivery": EXACTLY_ONCE,
            "checkpointLocation": str(tmp_path),
        }
    )


@pytest.fixture
def killed(options: SinkOptions, topics: Topics, topic: str) -> Iterator[Killed]:
    """Task 1 of a sink with the name of the topic."""
    task = Killed(options, topics, topic, 1)
    yield task
    task.producer.close()


class TestQueries:
    def test_a_local_checkpoint_tells_its_query(self, tmp_path: Path) -> None:
        (tmp_path / "metadata").write_text(f'{{"id":"{ID}"}}')
        assert query_of(SinkOptions({}, checkpoint=str(tmp_path))) == ID
        assert query_of(SinkOptions({}, checkpoint=tmp_path.as_uri())) == ID

    def test_what_is_not_known_is_not_guessed(self, tmp_path: Path) -> None:
        assert query_of(SinkOptions({})) is None
        assert query_of(SinkOptions({}, checkpoint="s3a://bucket/checkpoint")) is None
        assert query_of(SinkOptions({}, checkpoint=str(tmp_path))) is None
        for text in ("", "[]", "{}", "null"):
            (tmp_path / "metadata").write_text(text)
            assert query_of(SinkOptions({}, checkpoint=str(tmp_path))) is None


class TestEnding:
    def test_a_transaction_is_aborted_and_its_task_fenced(
        self, options: SinkOptions, killed: Killed, topics: Topics, topic: str
    ) -> None:
        assert killed.is_open()
        end_left_open(options, topic, [0, 1, 2])
        assert not killed.is_open()
        with pytest.raises(KafkaError):
            killed.producer.commit()
        assert topics.values(topic, isolation="read_committed") == []

    def test_those_of_other_tasks_and_sinks_are_let_be(
        self, options: SinkOptions, killed: Killed, topic: str
    ) -> None:
        end_left_open(options, topic, [0, 2, 11])
        end_left_open(options, topic[:-1], [1])
        assert killed.is_open()

    def test_without_a_broker_it_is_said_soon(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(left_open, "_LIMIT_MS", 100)
        end_left_open(SinkOptions({"bootstrap.servers": "127.0.0.1:1"}), "sink", [0])
        assert "transactions of tasks that were killed may still be open" in caplog.text


class TestSinks:
    def test_a_stream_goes_by_its_sink_id(self, options: SinkOptions, killed: Killed, topic: str) -> None:
        StreamSink(named(options, topic)).abort([Written(0, 1, False), None], 7)
        assert not killed.is_open()

    def test_a_stream_without_one_goes_by_its_checkpoint(self, options: SinkOptions, topics: Topics) -> None:
        killed = Killed(options, topics, ID, 0)
        StreamSink(options).abort([None], 7)
        assert not killed.is_open()
        killed.producer.close()

    def test_a_job_goes_by_itself_or_by_its_sink_id(
        self, options: SinkOptions, killed: Killed, topics: Topics, topic: str
    ) -> None:
        job = Killed(options, topics, f"job-{topic}", 0)
        BatchSink(options, f"job-{topic}").abort([None])
        assert not job.is_open()
        job.producer.close()
        BatchSink(named(options, topic), "job").abort([None, None])
        assert not killed.is_open()

    def test_tasks_that_are_done_are_let_be(self, options: SinkOptions, killed: Killed, topic: str) -> None:
        StreamSink(named(options, topic)).abort([None, Written(1, 1, False)], 7)
        assert killed.is_open()

    def test_at_least_once_has_nothing_to_end(self, options: SinkOptions, killed: Killed, topic: str) -> None:
        StreamSink(named(options, topic, AT_LEAST_ONCE)).abort([None, None], 7)
        assert killed.is_open()


def named(options: SinkOptions, sink_id: str, delivery: str = EXACTLY_ONCE) -> SinkOptions:
    return replace(options, sink_id=sink_id, delivery=delivery)
