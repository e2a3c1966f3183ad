"""A scripted broker with one topic of one partition, for what a real one does only when things go wrong."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

from barnabas.client.aio_consumer import Consumer
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from barnabas.protocol.schema import Message
from tests.client._fake import FakeBroker
from tests.client._kit import settings_for

TOPIC = "t"
TOPIC_ID = b"0123456789abcdef"


@dataclass
class Script:
    """What the topic is like; brokers that share a script are one cluster."""

    batches: dict[int, bytes] = field(default_factory=dict)  # base offset to batch
    end: int = 0
    start: int = 0
    leader: int = 1
    leader_epoch: int = 0
    fetch_errors: list[int] = field(default_factory=list)  # answered in turn before data
    epoch_end: tuple[int, int] = (-1, -1)
    epoch_error: int = 0
    preferred: int = -1
    aborted: list[AbortedTransaction] | None = None


class LogBroker(FakeBroker):
    def __init__(self, script: Script, node: int = 1) -> None:
        super().__init__(node)
        self.script = script
        self.responses[ApiKey.METADATA] = self._metadata
        self.responses[ApiKey.FETCH] = self._fetch
        self.responses[ApiKey.LIST_OFFSETS] = self._list_offsets
        self.responses[ApiKey.OFFSET_FOR_LEADER_EPOCH] = self._epoch_end

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        return self

    def fetches(self) -> list[FetchRequest]:
        return [message for _, _, message in self.seen if isinstance(message, FetchRequest)]

    def _metadata(self, message: Message) -> MetadataResponse:
        answer = self.metadata()
        script = self.script
        answer.topics = [
            MetadataResponseTopic(
                name=TOPIC,
                topic_id=TOPIC_ID,
                partitions=[
                    MetadataResponsePartition(
                        partition_index=0,
                        leader_id=script.leader,
                        leader_epoch=script.leader_epoch,
                        replica_nodes=[1],
                        isr_nodes=[1],
                    )
                ],
            )
        ]
        return answer

    def _fetch(self, message: Message) -> Message:
        assert isinstance(message, FetchRequest)
        (topic,) = message.topics
        (asked,) = topic.partitions
        script = self.script
        data = PartitionData(
            partition_index=asked.partition,
            high_watermark=script.end,
            last_stable_offset=script.end,
            log_start_offset=script.start,
            records=b"",
        )
        if script.fetch_errors:
            data.error_code = script.fetch_errors.pop(0)
        elif script.leader != self.node and script.preferred != self.node:
            data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif script.preferred not in (-1, self.node):
            data.preferred_read_replica = script.preferred
        elif not script.start <= asked.fetch_offset <= script.end:
            data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            bases = [base for base in script.batches if base <= asked.fetch_offset]
            if asked.fetch_offset < script.end and bases:
                data.records = script.batches[max(bases)]
                data.aborted_transactions = script.aborted
        topics = [FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=[data])]
        return FetchResponse(responses=topics)

    def _list_offsets(self, message: Message) -> Message:
        assert isinstance(message, ListOffsetsRequest)
        (topic,) = message.topics
        asked = topic.partitions[0]
        offset = {-2: self.script.start, -1: self.script.end}.get(asked.timestamp, -1)
        part = ListOffsetsPartitionResponse(
            partition_index=0, offset=offset, leader_epoch=self.script.leader_epoch
        )
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=topic.name, partitions=[part])])

    def _epoch_end(self, message: Message) -> Message:
        epoch, end = self.script.epoch_end
        part = EpochEndOffset(
            partition=0, error_code=self.script.epoch_error, leader_epoch=epoch, end_offset=end
        )
        return OffsetForLeaderEpochResponse(
            topics=[OffsetForLeaderTopicResult(topic=TOPIC, partitions=[part])]
        )


def consumer_of(broker: FakeBroker, **more: object) -> Consumer:
    return Consumer(
        settings_for(broker.address), **{"auto_offset_reset": "earliest", "fetch_max_wait_ms": 10, **more}
    )


@asynccontextmanager
async def two_brokers(script: Script) -> AsyncIterator[tuple[LogBroker, LogBroker]]:
    """Brokers 1 and 2 of one cluster, that know each other."""
    async with LogBroker(script) as first, LogBroker(script, 2) as second:
        first.advertised[2] = ("127.0.0.1", second.port)
        second.advertised = first.advertised
        yield first, second
