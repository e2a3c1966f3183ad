"""The requests of a transaction, each with its repeats: every function returns when the broker agreed.

R1  a repeat is harmless: the coordinator answers the same question the same way, also when the first answer
    was lost
R2  a coordinator that moved, or cannot be reached, is looked up anew; one that still ends the transaction
    before is asked again after a moment (CONCURRENT_TRANSACTIONS)
R3  the versions of a request say by which rules the transaction runs.  V1: partitions and groups are added by
    requests of their own, below the versions named here.  V2 (KIP-890, from the level 2 of the feature
    transaction.version on): what is written to becomes part of the transaction by itself, and every end
    raises the epoch.  One transaction keeps to one of them

All raise KafkaError: the broker's refusal, or the last error when `timeout_ms` is over.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from barnabas.base.types import TopicPartition
from barnabas.client.cluster import Cluster, CoordinatorKind
from barnabas.client.errors import (
    CommitFailed,
    ConnectionLost,
    KafkaError,
    RequestTimedOut,
    UnsupportedByBroker,
    error_for,
)
from barnabas.client.offsets import GroupIdentity
from barnabas.client.producer_batch import NO_ID, Identity
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

__all__ = ["PRODUCE_MAX", "Name", "add_group", "add_partitions", "commit_offsets", "end", "init", "speaks_v2"]

PRODUCE_MAX: Final = 11  # these three in transactions V1
_TXN_OFFSET_COMMIT_MAX: Final = 4
_END_TXN_MAX: Final = 4
_ADD_PARTITIONS_MAX: Final = 3  # above, it is a request between brokers
_FEATURE: Final = "transaction.version"
_V2: Final = 2
_KEEPS_ID_FROM: Final = 3
_KNOWS_MEMBERS_FROM: Final = 3
_ENDING_PAUSE_S: Final = 0.02
_PURPOSE: Final = "coordinator"
_MOVED: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Name:
    """In whose name a transaction runs."""

    transactional_id: str
    identity: Identity
    is_v2: bool = False


def speaks_v2(cluster: Cluster) -> bool:
    """Whether the cluster has transactions V2 switched on, as far as its brokers said when we connected."""
    return any(cluster.feature(node, _FEATURE) >= _V2 for node in cluster.metadata.brokers)


async def init(
    cluster: Cluster,
    transactional_id: str,
    *,
    transaction_timeout_ms: int,
    held: Identity = NO_ID,
    timeout_ms: int,
) -> Identity:
    """The producer id of a transactional id at its next epoch; everybody with an older one is fenced.

    A producer that has it already names what it holds, and is itself refused if another took over since.
    """

    async def attempt(node: int) -> Identity:
        if held != NO_ID:
            await cluster.ready(node, purpose=_PURPOSE)
            if (cluster.version_of(node, ApiKey.INIT_PRODUCER_ID) or 0) < _KEEPS_ID_FROM:
                raise UnsupportedByBroker(
                    "the broker is too old to go on after a failed transaction; open a new producer"
                )
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=transaction_timeout_ms,
            producer_id=held.producer_id,
            producer_epoch=held.epoch,
        )
        answer = await cluster.request(node, request, purpose=_PURPOSE)
        assert isinstance(answer, InitProducerIdResponse), answer
        _check(answer.error_code, transactional_id)
        return Identity(answer.producer_id, answer.producer_epoch)

    return await _ask(cluster, CoordinatorKind.TRANSACTION, transactional_id, attempt, timeout_ms)


async def add_partitions(
    cluster: Cluster, name: Name, partitions: Iterable[TopicPartition], *, timeout_ms: int
) -> None:
    """Makes partitions part of the transaction; only then may they be written to."""
    topics: dict[str, AddPartitionsToTxnTopic] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, AddPartitionsToTxnTopic(name=topic)).partitions.append(partition)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name.transactional_id,
        v3_and_below_producer_id=name.identity.producer_id,
        v3_and_below_producer_epoch=name.identity.epoch,
        v3_and_below_topics=list(topics.values()),
    )

    async def attempt(node: int) -> None:
        answer = await cluster.request(node, request, purpose=_PURPOSE, version_max=_ADD_PARTITIONS_MAX)
        assert isinstance(answer, AddPartitionsToTxnResponse), answer
        codes = {
            f"{topic.name}-{part.partition_index}": part.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for part in topic.results_by_partition
            if part.partition_error_code
        }
        # Those not refused themselves are told OPERATION_NOT_ATTEMPTED, which explains nothing.
        for where, code in sorted(
            codes.items(), key=lambda item: item[1] == ErrorCode.OPERATION_NOT_ATTEMPTED
        ):
            _check(code, f"{name.transactional_id}, {where}")

    await _ask(cluster, CoordinatorKind.TRANSACTION, name.transactional_id, attempt, timeout_ms)


async def add_group(cluster: Cluster, name: Name, group_id: str, *, timeout_ms: int) -> None:
    """Makes the offsets of a group part of the transaction."""
    # First, as this makes the topic of the offsets if no group ever was.
    await cluster.coordinator(CoordinatorKind.GROUP, group_id, timeout_ms=timeout_ms)
    request = AddOffsetsToTxnRequest(
        transactional_id=name.transactional_id,
        producer_id=name.identity.producer_id,
        producer_epoch=name.identity.epoch,
        group_id=group_id,
    )

    async def attempt(node: int) -> None:
        answer = await cluster.request(node, request, purpose=_PURPOSE)
        assert isinstance(answer, AddOffsetsToTxnResponse), answer
        _check(answer.error_code, f"{name.transactional_id}, group {group_id!r}")

    await _ask(cluster, CoordinatorKind.TRANSACTION, name.transactional_id, attempt, timeout_ms)


async def commit_offsets(
    cluster: Cluster,
    name: Name,
    group: GroupIdentity,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    *,
    timeout_ms: int,
) -> None:
    """Hands offsets to the group; they count when the transaction is committed.

    Raises CommitFailed when the group has gone on without the member.
    """
    topics: dict[str, TxnOffsetCommitRequestTopic] = {}
    for tp, at in offsets.items():
        topics.setdefault(tp.topic, TxnOffsetCommitRequestTopic(name=tp.topic)).partitions.append(
            TxnOffsetCommitRequestPartition(
                partition_index=tp.partition,
                committed_offset=at.offset,
                committed_leader_epoch=at.leader_epoch,
                committed_metadata=at.metadata,
            )
        )

    async def attempt(node: int) -> None:
        await cluster.ready(node, purpose=_PURPOSE)
        request = TxnOffsetCommitRequest(
            transactional_id=name.transactional_id,
            group_id=group.group_id,
            producer_id=name.identity.producer_id,
            producer_epoch=name.identity.epoch,
            topics=list(topics.values()),
        )
        if (cluster.version_of(node, ApiKey.TXN_OFFSET_COMMIT) or 0) >= _KNOWS_MEMBERS_FROM:
            request.generation_id = group.generation
            request.member_id = group.member_id
            request.group_instance_id = group.instance_id
        version_max = None if name.is_v2 else _TXN_OFFSET_COMMIT_MAX
        answer = await cluster.request(node, request, purpose=_PURPOSE, version_max=version_max)
        assert isinstance(answer, TxnOffsetCommitResponse), answer
        for topic in answer.topics:
            for part in topic.partitions:
                _check_offset(part.error_code, group, TopicPartition(topic.name, part.partition_index))

    await _ask(cluster, CoordinatorKind.GROUP, group.group_id, attempt, timeout_ms)


def _check_offset(code: int, group: GroupIdentity, tp: TopicPartition) -> None:
    if code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID):
        raise CommitFailed(
            f"group {group.group_id!r} has rebalanced without this member: {tp.topic}-{tp.partition} may be "
            "another member's by now",
            code=ErrorCode(code),
        )
    _check(code, f"group {group.group_id!r}, {tp.topic}-{tp.partition}")


async def end(cluster: Cluster, name: Name, *, committed: bool, timeout_ms: int) -> Identity:
    """Commits or aborts; gives the id and epoch for the next transaction, new ones in V2.

    After a retriable error the outcome is open: only the same call may follow.
    """
    request = EndTxnRequest(
        transactional_id=name.transactional_id,
        producer_id=name.identity.producer_id,
        producer_epoch=name.identity.epoch,
        committed=committed,
    )

    async def attempt(node: int) -> Identity:
        version_max = None if name.is_v2 else _END_TXN_MAX
        answer = await cluster.request(node, request, purpose=_PURPOSE, version_max=version_max)
        assert isinstance(answer, EndTxnResponse), answer
        _check(answer.error_code, name.transactional_id)
        told = Identity(answer.producer_id, answer.producer_epoch)
        return name.identity if told == NO_ID else told

    return await _ask(cluster, CoordinatorKind.TRANSACTION, name.transactional_id, attempt, timeout_ms)


def _check(code: int, subject: str) -> None:
    if code != ErrorCode.NONE:
        raise error_for(code, subject=f"transaction of {subject}")


async def _ask(
    cluster: Cluster,
    kind: CoordinatorKind,
    key: str,
    attempt: Callable[[int], Awaitable[Result]],
    timeout_ms: int,
) -> Result:
    """The result of `attempt` at the coordinator, repeated as R2 says."""

    async def one() -> Result:
        while True:
            node = await cluster.coordinator(kind, key)
            try:
                return await attempt(node)
            except KafkaError as error:
                if error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
                    await asyncio.sleep(_ENDING_PAUSE_S)
                    continue
                if error.code in _MOVED or isinstance(error, ConnectionLost | RequestTimedOut):
                    cluster.forget_coordinator(kind, key)
                raise

    return await cluster.retry(one, timeout_ms=timeout_ms)
