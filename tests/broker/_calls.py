"""Shorthands for the requests that most broker tests begin with, and for what they send and get."""

import time

from barnabas.base.types import ZERO_UUID, Uuid
from barnabas.metadata.image import ClusterImage
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.records.batch import iter_batches
from barnabas.records.builder import build_batch
from barnabas.records.codecs import Codec
from barnabas.replication.partition import Partition
from barnabas.testing import Broker
from tests.broker._wire import WireClient

READ_COMMITTED = 1
PRODUCE_VERSION = 12
FETCH_VERSION = 12


def now_ms() -> int:
    return int(time.time() * 1000)


def batch(
    *values: bytes | None,
    key: bytes | None = None,
    codec: Codec = Codec.NONE,
    timestamp: int | None = None,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    """A batch of these values, as a producer sends it."""
    stamp = now_ms() if timestamp is None else timestamp
    return bytes(
        build_batch(
            [(stamp, key, value, ()) for value in values],
            codec=codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
    )


def produce_request(
    topic: str,
    records: bytes | None,
    *,
    partition: int = 0,
    acks: int = -1,
    topic_id: Uuid = ZERO_UUID,
    timeout_ms: int = 5_000,
) -> ProduceRequest:
    part = PartitionProduceData(index=partition, records=records)
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=[part])],
    )


def produce(
    client: WireClient,
    topic: str,
    records: bytes | None,
    *,
    version: int = PRODUCE_VERSION,
    partition: int = 0,
    acks: int = -1,
    topic_id: Uuid = ZERO_UUID,
) -> PartitionProduceResponse:
    """Produces one batch and gives the partition's answer."""
    request = produce_request(topic, records, partition=partition, acks=acks, topic_id=topic_id)
    (answer,) = client.call(request, version, ProduceResponse).responses
    (part,) = answer.partition_responses
    return part


def fetch_request(
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    topic_id: Uuid = ZERO_UUID,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    min_bytes: int = 0,
    max_wait_ms: int = 0,
    isolation: int = 0,
    leader_epoch: int = -1,
) -> FetchRequest:
    part = FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        current_leader_epoch=leader_epoch,
    )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation,
        topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=[part])],
    )


def fetch(
    client: WireClient,
    topic: str,
    offset: int = 0,
    *,
    version: int = FETCH_VERSION,
    partition: int = 0,
    topic_id: Uuid = ZERO_UUID,
    isolation: int = 0,
    leader_epoch: int = -1,
) -> PartitionData:
    """Fetches one partition without waiting and gives its answer."""
    request = fetch_request(
        topic,
        offset,
        partition=partition,
        topic_id=topic_id,
        isolation=isolation,
        leader_epoch=leader_epoch,
    )
    return only_partition(client.call(request, version, FetchResponse))


def only_partition(response: FetchResponse) -> PartitionData:
    assert response.error_code == 0
    (topic,) = response.responses
    (part,) = topic.partitions
    return part


def record_bytes(data: PartitionData) -> bytes:
    """The records of a fetched partition; they must not be null."""
    assert data.records is not None, "null records stall some clients"
    return bytes(data.records)


def values(data: PartitionData) -> list[bytes | None]:
    """What the fetched batches hold."""
    return [
        None if record.value is None else bytes(record.value)
        for batch in iter_batches(memoryview(record_bytes(data)))
        for record in batch.records(limit=1 << 26)
    ]


def offsets(data: PartitionData) -> list[int]:
    return [
        record.offset
        for batch in iter_batches(memoryview(record_bytes(data)))
        for record in batch.records(limit=1 << 26)
    ]


def list_offset(
    client: WireClient,
    topic: str,
    timestamp: int,
    *,
    version: int = 7,
    partition: int = 0,
    isolation: int = 0,
    leader_epoch: int = -1,
) -> ListOffsetsPartitionResponse:
    part = ListOffsetsPartition(
        partition_index=partition, timestamp=timestamp, current_leader_epoch=leader_epoch
    )
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation if version >= 2 else 0,
        topics=[ListOffsetsTopic(name=topic, partitions=[part])],
    )
    (answer,) = client.call(request, version, ListOffsetsResponse).topics
    (found,) = answer.partitions
    return found


def image_of(broker: Broker) -> ClusterImage:
    assert broker.node is not None
    assert broker.node.services is not None
    return broker.node.services.image


def topic_id_of(broker: Broker, topic: str) -> Uuid:
    return image_of(broker).topics[topic].id


def partition_of(broker: Broker, topic: str, index: int = 0) -> Partition:
    """The running broker's own partition; touch it only through `Broker.run`."""
    assert broker.node is not None
    assert broker.node.services is not None
    found = broker.node.services.partitions.get(topic, index)
    assert found is not None, f"{topic}-{index}"
    return found
