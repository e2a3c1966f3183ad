"""A broker that takes batches into lists and refuses them as a test tells it to."""

from collections import defaultdict
from collections.abc import Callable

from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.init_producer_id import InitProducerIdResponse
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.protocol.schema import Message
from barnabas.records.batch import RecordBatch
from tests.client._fake import Answer, FakeBroker

TOPIC_ID = bytes(range(16))

Judge = Callable[[int, RecordBatch], PartitionProduceResponse | None]
"""Answers a partition's batch; None is success."""


class ProduceFake(FakeBroker):
    """One topic `t`.  `script` says what the next produce requests get: an answer, CUT, HOLD or a judge."""

    def __init__(self, partitions: int = 1, *, topic_id: bytes = TOPIC_ID) -> None:
        super().__init__()
        self.partitions = partitions
        self.topic_id = topic_id
        self.leader: int | None = None
        self.script: list[object] = []
        self.batches: dict[int, list[RecordBatch]] = defaultdict(list)
        self.requests: list[ProduceRequest] = []
        self.ends: dict[int, int] = defaultdict(int)
        self.throttle_ms = 0
        self.ids = 0
        self.responses[ApiKey.METADATA] = self._metadata
        self.responses[ApiKey.INIT_PRODUCER_ID] = self._init
        self.responses[ApiKey.PRODUCE] = self._produce

    def versions_of(self, key: ApiKey) -> list[int]:
        return [version for each, version, _ in self.seen if each is key]

    def values(self, partition: int = 0) -> list[bytes | None]:
        return [
            record.value for batch in self.batches[partition] for record in batch.records(limit=10_000_000)
        ]

    def _metadata(self, message: Message) -> MetadataResponse:
        assert isinstance(message, MetadataRequest)
        answer = self.metadata()
        if message.topics is None or any(topic.name == "t" for topic in message.topics):
            leader = self.node if self.leader is None else self.leader
            answer.topics = [
                MetadataResponseTopic(
                    name="t",
                    topic_id=self.topic_id,
                    partitions=[
                        MetadataResponsePartition(partition_index=index, leader_id=leader, leader_epoch=1)
                        for index in range(self.partitions)
                    ],
                )
            ]
        return answer

    def _init(self, message: Message) -> InitProducerIdResponse:
        self.ids += 1
        return InitProducerIdResponse(producer_id=100 + self.ids, producer_epoch=0)

    def _produce(self, message: Message) -> Answer:
        assert isinstance(message, ProduceRequest)
        self.requests.append(message)
        step = self.script.pop(0) if self.script else _accept
        if callable(step):
            return self.judged(message, step)
        return step

    def judged(self, request: ProduceRequest, judge: Judge) -> ProduceResponse:
        """The answer to a request, with every batch written that the judge does not refuse."""
        topics = []
        for topic in request.topic_data:
            answers = []
            for data in topic.partition_data:
                assert data.records is not None
                batch = RecordBatch(memoryview(bytes(data.records)))
                batch.check()
                answer = judge(data.index, batch)
                if answer is None:
                    answer = PartitionProduceResponse(base_offset=self.ends[data.index])
                    self.ends[data.index] += batch.record_count
                    self.batches[data.index].append(batch)
                answer.index = data.index
                answers.append(answer)
            topics.append(
                TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
            )
        return ProduceResponse(responses=topics, throttle_time_ms=self.throttle_ms)


def _accept(partition: int, batch: RecordBatch) -> None:
    return None


def refuse(code: int, log_start_offset: int = 0) -> Judge:
    """A judge that answers everything with a code."""
    return lambda partition, batch: PartitionProduceResponse(
        error_code=code, base_offset=-1, log_start_offset=log_start_offset
    )
