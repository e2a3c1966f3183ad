"""Batches into a Produce request, and its answer back to the batches.

Topics travel by id from version 13 on, before by name; a request that has a topic without an id is held
below that.  An answer names them as the request did.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from barnabas.base.types import ZERO_UUID, Uuid
from barnabas.client.producer_batch import ProducerBatch
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

__all__ = ["AnswersByPartition", "produce_request"]

_NAMES_UP_TO: Final = 12


def produce_request(
    batches: Iterable[ProducerBatch],
    sealed: Sequence[bytearray],
    topic_id: Callable[[str], Uuid],
    *,
    acks: int,
    timeout_ms: int,
    transactional_id: str | None = None,
    version_max: int | None = None,
) -> tuple[ProduceRequest, int | None]:
    """One request with all batches, `sealed` being their bytes, and the highest version that can carry it.

    That is `version_max` or less.
    """
    topics: dict[str, TopicProduceData] = {}
    for batch, data in zip(batches, sealed, strict=True):
        topic = topics.get(batch.topic)
        if topic is None:
            known = topic_id(batch.topic)
            if known == ZERO_UUID:
                version_max = min(version_max or _NAMES_UP_TO, _NAMES_UP_TO)
            topic = topics[batch.topic] = TopicProduceData(name=batch.topic, topic_id=known)
        topic.partition_data.append(PartitionProduceData(index=batch.partition, records=data))
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=list(topics.values()),
    )
    return request, version_max


class AnswersByPartition:
    """The parts of an answer, found by the batch they belong to."""

    def __init__(self, response: ProduceResponse) -> None:
        self._found: dict[tuple[str | Uuid, int], PartitionProduceResponse] = {
            (topic.name or topic.topic_id, part.index): part
            for topic in response.responses
            for part in topic.partition_responses
        }

    def get(self, batch: ProducerBatch, topic_id: Uuid) -> PartitionProduceResponse | None:
        """What the broker says about a batch, None if it says nothing."""
        by_name = self._found.get((batch.topic, batch.partition))
        return by_name or self._found.get((topic_id, batch.partition))
