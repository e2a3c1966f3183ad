"""Tests of the single requests of a transaction against a real broker."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client import transaction_requests as requests
from barnabas.client.admin import Admin
from barnabas.client.cluster import Cluster, CoordinatorKind
from barnabas.client.errors import CommitFailed, KafkaError, ProducerFenced, UnknownTopic
from barnabas.client.offsets import GroupIdentity, committed_offsets
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.protocol.codes import ErrorCode
from tests.client._kit import Client

Result = TypeVar("Result")
LIMIT_MS = 5000


def with_cluster(bootstrap: str, work: Callable[[Cluster], Awaitable[Result]]) -> Result:
    async def main() -> Result:
        async with Client(bootstrap) as cluster:
            return await work(cluster)

    return asyncio.run(main())


async def begin(cluster: Cluster, name: str) -> requests.Name:
    identity = await requests.init(cluster, name, transaction_timeout_ms=60_000, timeout_ms=LIMIT_MS)
    return requests.Name(name, identity)


def test_every_init_raises_the_epoch_and_fences(
    bootstrap: str, topic: str, name: Callable[[str], str], admin: Admin
) -> None:
    admin.create_topic(topic, 1)

    async def work(cluster: Cluster) -> None:
        first = await begin(cluster, name("txn"))
        second = await begin(cluster, first.transactional_id)
        assert second.identity == (first.identity.producer_id, first.identity.epoch + 1)
        with pytest.raises(ProducerFenced):
            await requests.add_partitions(cluster, first, [TopicPartition(topic, 0)], timeout_ms=LIMIT_MS)
        with pytest.raises(ProducerFenced):
            await requests.init(
                cluster,
                first.transactional_id,
                transaction_timeout_ms=60_000,
                held=first.identity,
                timeout_ms=LIMIT_MS,
            )

    with_cluster(bootstrap, work)


def test_ending_twice_the_same_way_is_harmless_and_the_other_way_refused(
    bootstrap: str, topic: str, name: Callable[[str], str], admin: Admin
) -> None:
    admin.create_topic(topic, 1)

    async def work(cluster: Cluster) -> None:
        who = await begin(cluster, name("txn"))
        await requests.add_partitions(cluster, who, [TopicPartition(topic, 0)], timeout_ms=LIMIT_MS)
        for _ in range(2):
            await requests.end(cluster, who, committed=True, timeout_ms=LIMIT_MS)
        with pytest.raises(KafkaError) as caught:
            await requests.end(cluster, who, committed=False, timeout_ms=LIMIT_MS)
        assert caught.value.code is ErrorCode.INVALID_TXN_STATE

    with_cluster(bootstrap, work)


def test_a_refused_partition_is_named(
    bootstrap: str, topic: str, name: Callable[[str], str], admin: Admin
) -> None:
    admin.create_topic(topic, 1)

    async def work(cluster: Cluster) -> None:
        who = await begin(cluster, name("txn"))
        wanted = [TopicPartition(topic, 0), TopicPartition(topic, 7)]
        with pytest.raises(UnknownTopic, match=f"{topic}-7"):
            await requests.add_partitions(cluster, who, wanted, timeout_ms=50)

    with_cluster(bootstrap, work)


def test_offsets_count_when_it_is_committed(
    bootstrap: str, topic: str, group: str, name: Callable[[str], str], admin: Admin
) -> None:
    admin.create_topic(topic, 1)
    tp = TopicPartition(topic, 0)

    async def work(cluster: Cluster) -> None:
        who = await begin(cluster, name("txn"))
        await requests.add_group(cluster, who, group, timeout_ms=LIMIT_MS)
        at = {tp: OffsetAndMetadata(3, "note")}
        await requests.commit_offsets(cluster, who, GroupIdentity(group), at, timeout_ms=LIMIT_MS)
        before = await committed_offsets(cluster, group, [tp], timeout_ms=LIMIT_MS, require_stable=False)
        assert before == {}
        await requests.end(cluster, who, committed=True, timeout_ms=LIMIT_MS)
        after = await committed_offsets(cluster, group, [tp], timeout_ms=LIMIT_MS)
        assert (after[tp].offset, after[tp].metadata) == (3, "note")

    with_cluster(bootstrap, work)


def test_offsets_of_a_stranger_are_refused(
    bootstrap: str, topic: str, group: str, name: Callable[[str], str], admin: Admin
) -> None:
    admin.create_topic(topic, 1)

    async def work(cluster: Cluster) -> None:
        who = await begin(cluster, name("txn"))
        await requests.add_group(cluster, who, group, timeout_ms=LIMIT_MS)
        stranger = GroupIdentity(group, generation=1, member_id="nobody")
        at = {TopicPartition(topic, 0): OffsetAndMetadata(3)}
        with pytest.raises(CommitFailed, match="rebalanced without this member"):
            await requests.commit_offsets(cluster, who, stranger, at, timeout_ms=LIMIT_MS)

    with_cluster(bootstrap, work)


def test_a_coordinator_that_is_gone_is_looked_up_anew(bootstrap: str, name: Callable[[str], str]) -> None:
    async def work(cluster: Cluster) -> None:
        key = name("txn")
        cluster._coordinators[CoordinatorKind.TRANSACTION, key] = 4711
        assert (await begin(cluster, key)).identity.epoch == 0

    with_cluster(bootstrap, work)
