"""Record batches as a broker returns them, and records written to a broker without a producer."""

import asyncio
import time
from collections.abc import Iterable, Sequence

from barnabas.base.types import TopicPartition
from barnabas.client.errors import error_for
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.records.batch import patch_batch
from barnabas.records.builder import build_batch
from barnabas.records.codecs import Codec
from barnabas.records.record import Record
from tests.client._kit import Client

Row = tuple[bytes | None, bytes | None]


def batch(
    values: Sequence[bytes | None],
    *,
    base_offset: int = 0,
    leader_epoch: int = 0,
    codec: Codec = Codec.NONE,
    timestamp: int = 1000,
    **more: object,
) -> bytes:
    """One batch with these values, as it lies in a log."""
    rows = [(timestamp + number, b"k", value, ()) for number, value in enumerate(values)]
    built = build_batch(rows, codec=codec, **more)  # type: ignore[arg-type]  # as the test says
    patch_batch(built, 0, base_offset, leader_epoch)
    return bytes(built)


async def _produce(
    bootstrap: str, topic: str, partition: int, rows: Sequence[Row], timestamp: int, codec: Codec
) -> int:
    built = build_batch([(timestamp, key, value, ()) for key, value in rows], codec=codec)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=partition, records=built)]
            )
        ],
    )
    async with Client(bootstrap) as cluster:
        await cluster.topic(topic, timeout_ms=10_000, create=False)

        async def attempt() -> int:
            leader = cluster.metadata.leader(topic, partition)
            if leader is None:
                raise error_for(ErrorCode.LEADER_NOT_AVAILABLE)
            answer = await cluster.request(leader, request, version_max=12)
            assert isinstance(answer, ProduceResponse)
            found = answer.responses[0].partition_responses[0]
            if found.error_code:  # a leader that was just named may not know it yet
                raise error_for(found.error_code)
            return found.base_offset

        return await cluster.retry(attempt, timeout_ms=10_000)


def produce(
    bootstrap: str,
    topic: str,
    values: Iterable[bytes | Row | None],
    *,
    partition: int = 0,
    timestamp: int | None = None,
    codec: Codec = Codec.NONE,
) -> int:
    """Writes values, or (key, value) pairs, as one batch; the result is the offset of the first."""
    rows = [value if isinstance(value, tuple) else (None, value) for value in values]
    stamp = int(time.time() * 1000) if timestamp is None else timestamp
    return asyncio.run(_produce(bootstrap, topic, partition, rows, stamp, codec))


def values_of(records: Iterable[Record]) -> list[bytes | None]:
    return [record.value for record in records]


def place_of(record: Record) -> TopicPartition:
    return TopicPartition(record.topic or "", record.partition)
