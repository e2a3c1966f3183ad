"""Tests of Produce requests made from batches and answers found for them."""

from barnabas.base.types import ZERO_UUID, Uuid
from barnabas.client.produce_requests import AnswersByPartition, produce_request
from barnabas.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from tests.client._batches import make_batch

IDS: dict[str, Uuid] = {"a": b"a" * 16, "b": b"b" * 16}
BATCHES = [make_batch(topic="a"), make_batch(topic="b"), make_batch(topic="a", partition=3)]
BYTES = [bytearray(b"1"), bytearray(b"2"), bytearray(b"3")]


def made(ids: dict[str, Uuid]) -> tuple[ProduceRequest, int | None]:
    return produce_request(BATCHES, BYTES, lambda name: ids.get(name, ZERO_UUID), acks=1, timeout_ms=7)


class TestRequests:
    def test_partitions_are_gathered_by_topic(self) -> None:
        request, _ = made(IDS)
        found = [
            (
                topic.name,
                topic.topic_id,
                [(data.index, bytes(data.records or b"")) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ]
        assert found == [("a", IDS["a"], [(0, b"1"), (3, b"3")]), ("b", IDS["b"], [(0, b"2")])]
        assert (request.acks, request.timeout_ms, request.transactional_id) == (1, 7, None)

    def test_ids_may_be_used_when_all_topics_have_one(self) -> None:
        assert made(IDS)[1] is None
        assert made({"a": IDS["a"]})[1] == 12

    def test_a_transaction_may_hold_the_version_down(self) -> None:
        for ids in (IDS, {}):
            request, version_max = produce_request(
                BATCHES,
                BYTES,
                lambda name, ids=ids: ids.get(name, ZERO_UUID),  # type: ignore[misc]  # bound per round
                acks=-1,
                timeout_ms=7,
                transactional_id="x",
                version_max=11,
            )
            assert (request.transactional_id, version_max) == ("x", 11)


class TestAnswers:
    def response(self, name: str, topic_id: Uuid) -> AnswersByPartition:
        part = PartitionProduceResponse(index=3, base_offset=5)
        topic = TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=[part])
        return AnswersByPartition(ProduceResponse(responses=[topic]))

    def test_by_name_and_by_id(self) -> None:
        for answers in (self.response("a", ZERO_UUID), self.response("", IDS["a"])):
            found = answers.get(BATCHES[2], IDS["a"])
            assert found is not None
            assert found.base_offset == 5

    def test_nothing_said(self) -> None:
        assert self.response("a", ZERO_UUID).get(BATCHES[0], IDS["a"]) is None
        assert self.response("", IDS["b"]).get(BATCHES[2], IDS["a"]) is None
