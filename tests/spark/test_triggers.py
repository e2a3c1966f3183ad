"""Every trigger and every limit of a batch through Spark itself; a topic made again under its stream."""

import pytest
from pyspark.errors import StreamingQueryException

from barnabas.base.types import TopicPartition
from barnabas.spark import one_sentence
from tests.spark._reads import Reads, numbered

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


class TestTriggers:
    @pytest.mark.parametrize("trigger", [None, "100 milliseconds"])
    def test_a_stream_goes_on_as_records_come(self, reads: Reads, trigger: str | None) -> None:
        reads.topics.create(reads.topic, 2)
        with reads.running(trigger=trigger, startingOffsets="earliest") as running:
            for first in (0, 30, 60):
                reads.topics.fill(reads.topic, 30, first=first)
                running.processAllAvailable()
                assert reads.values() == numbered(0, first + 30)

    def test_once_takes_all_in_one_batch_whatever_the_limit(self, reads: Reads) -> None:
        reads.topics.create(reads.topic)
        reads.topics.fill(reads.topic, 100)
        reads.stream(once=True, startingOffsets="earliest", maxOffsetsPerTrigger="10")
        assert {number: len(values) for number, values in reads.batches.items()} == {0: 100}


class TestLimits:
    def test_few_records_wait_for_more(self, reads: Reads) -> None:
        reads.topics.create(reads.topic)
        reads.topics.fill(reads.topic, 3)
        limits = {"minOffsetsPerTrigger": "10", "maxTriggerDelay": "1h"}
        with reads.running(startingOffsets="earliest", **limits) as running:
            running.processAllAvailable()
            assert list(reads.batches) == [0]
            reads.topics.fill(reads.topic, 4, first=3)
            running.processAllAvailable()  # looks, and finds too few
            assert list(reads.batches) == [0]
            reads.topics.fill(reads.topic, 6, first=7)
            running.processAllAvailable()
            assert reads.batches[1] == [f"v{number}" for number in range(3, 13)]

    def test_a_batch_has_about_the_bytes_it_may_have(self, reads: Reads) -> None:
        reads.topics.create(reads.topic, 2)
        for number in range(400):
            reads.topics.producer.send(reads.topic, b"%01000d" % number, partition=number % 2)
        reads.topics.producer.flush()
        reads.stream(startingOffsets="earliest", maxBytesPerTrigger="100k")
        rows = [len(values) for values in reads.batches.values()]
        assert sum(rows) == len(set(reads.values())) == 400
        assert all(80 <= count <= 100 for count in rows[:-1]), rows


class TestATopicMadeAgain:
    def test_its_stream_ends_with_the_reason_or_starts_over(self, reads: Reads) -> None:
        topics, topic = reads.topics, reads.topic
        topics.create(topic)
        topics.fill(topic, 20)
        reads.stream(startingOffsets="earliest")
        topics.admin.delete_topics([topic]).check()
        topics.create(topic)
        topics.fill(topic, 5, first=100)
        with pytest.raises(StreamingQueryException) as caught:
            reads.stream()
        said = one_sentence(caught.value)
        assert str(TopicPartition(topic, 0)) in said
        assert "failOnDataLoss=false" in said
        reads.stream(failOnDataLoss="false")
        assert reads.values() == sorted([*numbered(0, 20), *numbered(100, 105)])
