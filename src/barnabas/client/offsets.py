"""Questions about offsets: where logs start and end, what a group committed, where an epoch ended.

Every function asks the right brokers at once, one request per broker, and does it again after retriable
errors until the time is up.  They keep no state; the cluster is the only thing they touch.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from barnabas.base.types import TopicPartition
from barnabas.client.cluster import Cluster, CoordinatorKind
from barnabas.client.errors import CommitFailed, ConnectionLost, KafkaError, RequestTimedOut, error_for
from barnabas.client.subscription import UNKNOWN, OffsetAndMetadata
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.schema import Message

__all__ = [
    "EARLIEST",
    "LATEST",
    "EpochEnd",
    "GroupIdentity",
    "OffsetAndTimestamp",
    "Outcome",
    "ask_epoch_ends",
    "ask_offsets",
    "commit_offsets",
    "committed_offsets",
    "list_offsets",
]

EARLIEST: Final = -2
LATEST: Final = -1

_NAMES_UP_TO: Final = 9  # from version 10 on OffsetCommit and OffsetFetch carry topic ids
_BATCHED_FROM: Final = 8  # OffsetFetch asks for several groups at once
_PURPOSE: Final = "coordinator"
_COORDINATOR_MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})

Result = TypeVar("Result")


class OffsetAndTimestamp(NamedTuple):
    """An offset that was looked up; the timestamp is -1 for the start and the end of a log."""

    offset: int
    timestamp: int
    leader_epoch: int = UNKNOWN


class EpochEnd(NamedTuple):
    """The largest epoch not above the one asked for, and where it ended; both -1 when there is none."""

    leader_epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class GroupIdentity:
    """In whose name offsets are committed; the defaults are for consumers that are no members."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Result]):
    """What one round of asking gave: answers and, for the other partitions, why not."""

    found: dict[TopicPartition, Result]
    failed: dict[TopicPartition, KafkaError]


async def ask_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
) -> Outcome[OffsetAndTimestamp]:
    """One round of ListOffsets: partition to EARLIEST, LATEST or a timestamp in ms."""

    def build(partitions: list[tuple[TopicPartition, int]]) -> Message:
        topics = [
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=tp.partition, current_leader_epoch=epoch, timestamp=wanted[tp]
                    )
                    for tp, epoch in group
                ],
            )
            for topic, group in _by_topic(partitions)
        ]
        return ListOffsetsRequest(replica_id=-1, isolation_level=int(read_committed), topics=topics)

    def read(answer: Message, outcome: Outcome[OffsetAndTimestamp]) -> None:
        assert isinstance(answer, ListOffsetsResponse), answer
        for topic in answer.topics:
            for part in topic.partitions:
                tp = TopicPartition(topic.name, part.partition_index)
                if part.error_code:
                    outcome.failed[tp] = error_for(part.error_code, subject=_name(tp))
                else:
                    found = OffsetAndTimestamp(part.offset, part.timestamp, part.leader_epoch)
                    outcome.found[tp] = found

    return await _ask_leaders(cluster, wanted, build, read)


async def list_offsets(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, int],
    *,
    timeout_ms: int,
    read_committed: bool = False,
) -> dict[TopicPartition, OffsetAndTimestamp]:
    """As `ask_offsets`, until all are found; offset -1 where no record is as late as the timestamp.

    Raises KafkaError: the first final one, or the last one when the time is up.
    """
    for topic in {tp.topic for tp in wanted}:
        await cluster.topic(topic, timeout_ms=timeout_ms, create=False)
    found: dict[TopicPartition, OffsetAndTimestamp] = {}

    async def attempt() -> None:
        missing = {tp: at for tp, at in wanted.items() if tp not in found}
        outcome = await ask_offsets(cluster, missing, read_committed=read_committed)
        found.update(outcome.found)
        _raise_first(outcome.failed)

    if wanted:
        await cluster.retry(attempt, timeout_ms=timeout_ms)
    return found


async def ask_epoch_ends(cluster: Cluster, wanted: Mapping[TopicPartition, int]) -> Outcome[EpochEnd]:
    """One round of OffsetForLeaderEpoch: partition to the epoch whose end is wanted."""

    def build(partitions: list[tuple[TopicPartition, int]]) -> Message:
        topics = [
            OffsetForLeaderTopic(
                topic=topic,
                partitions=[
                    OffsetForLeaderPartition(
                        partition=tp.partition, current_leader_epoch=epoch, leader_epoch=wanted[tp]
                    )
                    for tp, epoch in group
                ],
            )
            for topic, group in _by_topic(partitions)
        ]
        return OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)

    def read(answer: Message, outcome: Outcome[EpochEnd]) -> None:
        assert isinstance(answer, OffsetForLeaderEpochResponse), answer
        for topic in answer.topics:
            for part in topic.partitions:
                tp = TopicPartition(topic.topic, part.partition)
                if part.error_code:
                    outcome.failed[tp] = error_for(part.error_code, subject=_name(tp))
                else:
                    outcome.found[tp] = EpochEnd(part.leader_epoch, part.end_offset)

    return await _ask_leaders(cluster, wanted, build, read)


async def committed_offsets(
    cluster: Cluster,
    group: str,
    partitions: Iterable[TopicPartition] | None,
    *,
    timeout_ms: int,
    require_stable: bool = True,
) -> dict[TopicPartition, OffsetAndMetadata]:
    """What the group committed for these partitions, or for all when None; those without a commit are absent.

    With `require_stable` offsets of a transaction that is still open are waited for.  Raises KafkaError.
    """
    wanted = None if partitions is None else list(partitions)

    async def attempt(node: int) -> dict[TopicPartition, OffsetAndMetadata]:
        await cluster.ready(node, purpose=_PURPOSE)
        version = cluster.version_of(node, ApiKey.OFFSET_FETCH) or 0
        request = _offset_fetch(group, wanted, min(version, _NAMES_UP_TO), require_stable)
        answer = await cluster.request(node, request, purpose=_PURPOSE, version_max=_NAMES_UP_TO)
        assert isinstance(answer, OffsetFetchResponse), answer
        return _read_committed(answer, group)

    return await _with_coordinator(cluster, group, attempt, timeout_ms)


async def commit_offsets(
    cluster: Cluster,
    identity: GroupIdentity,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    *,
    timeout_ms: int,
) -> None:
    """Commits.  Raises CommitFailed when the group has gone on without this member, or another KafkaError."""
    if not offsets:
        return
    request = OffsetCommitRequest(
        group_id=identity.group_id,
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=tp.partition,
                        committed_offset=offsets[tp].offset,
                        committed_leader_epoch=offsets[tp].leader_epoch,
                        committed_metadata=offsets[tp].metadata,
                    )
                    for tp, _ in group
                ],
            )
            for topic, group in _by_topic([(tp, 0) for tp in offsets])
        ],
    )

    async def attempt(node: int) -> None:
        answer = await cluster.request(node, request, purpose=_PURPOSE, version_max=_NAMES_UP_TO)
        assert isinstance(answer, OffsetCommitResponse), answer
        for topic in answer.topics:
            for part in topic.partitions:
                if part.error_code:
                    tp = TopicPartition(topic.name, part.partition_index)
                    raise _commit_error(part.error_code, identity.group_id, tp)

    await _with_coordinator(cluster, identity.group_id, attempt, timeout_ms)


def _commit_error(code: int, group: str, tp: TopicPartition) -> KafkaError:
    if code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID):
        return CommitFailed(
            f"group {group!r} has rebalanced without this member, so {_name(tp)} was not committed: another "
            "member may read it by now.  Most often the time between two polls passed max.poll.interval.ms",
            code=ErrorCode(code),
        )
    return error_for(code, subject=f"group {group!r}, {_name(tp)}")


def _offset_fetch(
    group: str, partitions: list[TopicPartition] | None, version: int, require_stable: bool
) -> OffsetFetchRequest:
    topics = None if partitions is None else _by_topic([(tp, 0) for tp in partitions])
    stable = require_stable and version >= 7
    if version >= _BATCHED_FROM:
        asked = (
            None
            if topics is None
            else [
                OffsetFetchRequestTopics(name=topic, partition_indexes=[tp.partition for tp, _ in found])
                for topic, found in topics
            ]
        )
        groups = [OffsetFetchRequestGroup(group_id=group, topics=asked)]
        return OffsetFetchRequest(groups=groups, require_stable=stable)
    single = (
        None
        if topics is None
        else [
            OffsetFetchRequestTopic(name=topic, partition_indexes=[tp.partition for tp, _ in found])
            for topic, found in topics
        ]
    )
    return OffsetFetchRequest(group_id=group, topics=single, require_stable=stable)


def _read_committed(answer: OffsetFetchResponse, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
    code = answer.groups[0].error_code if answer.groups else answer.error_code
    if code:
        raise error_for(code, subject=f"group {group!r}")
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for topic in answer.groups[0].topics if answer.groups else answer.topics:
        for part in topic.partitions:
            tp = TopicPartition(topic.name, part.partition_index)
            if part.error_code:
                raise error_for(part.error_code, subject=f"group {group!r}, {_name(tp)}")
            if part.committed_offset >= 0:
                metadata = part.metadata or ""
                found[tp] = OffsetAndMetadata(part.committed_offset, metadata, part.committed_leader_epoch)
    return found


async def _with_coordinator(
    cluster: Cluster, group: str, attempt: Callable[[int], Awaitable[Result]], timeout_ms: int
) -> Result:
    async def one() -> Result:
        node = await cluster.coordinator(CoordinatorKind.GROUP, group)
        try:
            return await attempt(node)
        except KafkaError as error:
            if error.code in _COORDINATOR_MOVED or isinstance(error, ConnectionLost | RequestTimedOut):
                cluster.forget_coordinator(CoordinatorKind.GROUP, group)
            raise

    return await cluster.retry(one, timeout_ms=timeout_ms)


async def _ask_leaders(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, int],
    build: Callable[[list[tuple[TopicPartition, int]]], Message],
    read: Callable[[Message, Outcome[Result]], None],
) -> Outcome[Result]:
    """Asks each leader for its partitions, all at once; `build` gets them with their leader epochs."""
    outcome: Outcome[Result] = Outcome({}, {})
    by_node: dict[int, list[tuple[TopicPartition, int]]] = {}
    for tp in wanted:
        node = cluster.metadata.leader(tp.topic, tp.partition)
        if node is None:
            code = cluster.metadata.errors.get(tp.topic, ErrorCode.LEADER_NOT_AVAILABLE)
            outcome.failed[tp] = error_for(code, subject=_name(tp))
        else:
            epoch = cluster.metadata.topics[tp.topic].partitions[tp.partition].leader_epoch
            by_node.setdefault(node, []).append((tp, epoch))
    sent = [(cluster.send(node, build(group)), group) for node, group in by_node.items()]
    answers = await asyncio.gather(*(future for future, _ in sent), return_exceptions=True)
    for answer, (_, group) in zip(answers, sent, strict=True):
        if isinstance(answer, KafkaError):
            outcome.failed.update((tp, answer) for tp, _ in group)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            read(answer, outcome)
    if any(error.refreshes_metadata for error in outcome.failed.values()):
        cluster.want_refresh()
    return outcome


def _raise_first(failed: Mapping[TopicPartition, KafkaError]) -> None:
    """The first error that no repeat can help, else the first."""
    if failed:
        raise min(failed.values(), key=lambda error: error.retriable)


def _by_topic(
    partitions: Iterable[tuple[TopicPartition, int]],
) -> list[tuple[str, list[tuple[TopicPartition, int]]]]:
    topics: dict[str, list[tuple[TopicPartition, int]]] = {}
    for tp, number in partitions:
        topics.setdefault(tp.topic, []).append((tp, number))
    return list(topics.items())


def _name(tp: TopicPartition) -> str:
    return f"{tp.topic}-{tp.partition}"
