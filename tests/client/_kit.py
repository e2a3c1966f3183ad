"""Small tools of the client's tests: records written and group members made without producer or consumer."""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from barnabas.client.cluster import Cluster, CoordinatorKind
from barnabas.client.config import ADMIN, parse
from barnabas.client.errors import error_for
from barnabas.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas.protocol.storage.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from barnabas.records.builder import build_batch

KEPT: Final = {"retention.ms": "-1"}  # of topics whose records claim to be from 1970


def settings_for(bootstrap: str, **more: object) -> dict[str, object]:
    """Settings whose waits are short, so that what fails fails soon."""
    return {
        "bootstrap.servers": bootstrap,
        "bootstrap.timeout.ms": 0,
        "retry.backoff.ms": 10,
        "reconnect.backoff.ms": 10,
        "reconnect.backoff.max.ms": 50,
        "client.id": "test",
        **more,
    }


class Client:
    """A started cluster core."""

    def __init__(self, bootstrap: str, **more: object) -> None:
        self.cluster = Cluster(parse(ADMIN, settings_for(bootstrap, **more)))

    async def __aenter__(self) -> Cluster:
        await self.cluster.start()
        return self.cluster

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.cluster.close()


async def _write(bootstrap: str, topic: str, partition: int, timestamps: Sequence[int]) -> int:
    async with Client(bootstrap) as cluster:
        await cluster.topic(topic, timeout_ms=10_000, create=False)
        leader = cluster.metadata.leader(topic, partition)
        assert leader is not None
        rows = [(stamp, b"key", b"value", ()) for stamp in timestamps]
        request = ProduceRequest(
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                TopicProduceData(
                    name=topic,
                    partition_data=[PartitionProduceData(index=partition, records=build_batch(rows))],
                )
            ],
        )

        async def attempt() -> int:
            answer = await cluster.request(leader, request, version_max=12)
            assert isinstance(answer, ProduceResponse)
            found = answer.responses[0].partition_responses[0]
            if found.error_code:  # Kafka names a leader before that leader knows of it
                raise error_for(found.error_code)
            return found.base_offset

        return await cluster.retry(attempt, timeout_ms=10_000)


def write(bootstrap: str, topic: str, timestamps: Sequence[int], *, partition: int = 0) -> int:
    """Writes one record per timestamp; the result is the offset of the first."""
    return asyncio.run(_write(bootstrap, topic, partition, timestamps))


class Member:
    """A member of a classic group that reads all of a topic, as its own leader; it leaves by closing."""

    def __init__(self, bootstrap: str, group: str, topic: str, partitions: Sequence[int]) -> None:
        self._client = Client(bootstrap, client_id="member")
        self._group = group
        self._topic = topic
        self._partitions = list(partitions)

    async def __aenter__(self) -> Self:
        cluster = await self._client.__aenter__()
        node = await cluster.coordinator(CoordinatorKind.GROUP, self._group)
        subscription = ConsumerProtocolSubscription(topics=[self._topic]).encode_versioned(1)
        member_id = ""
        while True:
            joined = await cluster.request(
                node,
                JoinGroupRequest(
                    group_id=self._group,
                    session_timeout_ms=30_000,
                    rebalance_timeout_ms=30_000,
                    member_id=member_id,
                    protocol_type="consumer",
                    protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
                ),
                purpose="coordinator",
            )
            assert isinstance(joined, JoinGroupResponse)
            member_id = joined.member_id
            if joined.error_code == 0:
                break
        assignment = ConsumerProtocolAssignment(
            assigned_partitions=[TopicPartition(topic=self._topic, partitions=self._partitions)]
        ).encode_versioned(1)
        synced = await cluster.request(
            node,
            SyncGroupRequest(
                group_id=self._group,
                generation_id=joined.generation_id,
                member_id=member_id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=[SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)],
            ),
            purpose="coordinator",
        )
        assert isinstance(synced, SyncGroupResponse)
        assert synced.error_code == 0
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, error, trace)
