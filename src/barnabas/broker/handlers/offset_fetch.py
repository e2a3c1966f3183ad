"""OffsetFetch (key 9), v0-10: committed offsets; -1 where there is none.

v2+ with null topics gives all that the group committed; v7 can insist on stable offsets; v8 asks for several
groups; v9 carries a member (of the newer group protocol only); v10 names topics by id.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

from barnabas.base.types import ZERO_UUID, TopicPartition, Uuid
from barnabas.broker.context import Context
from barnabas.coordinator.calls import FetchedOffset
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

FIRST_GROUP_ERROR_VERSION = 2
FIRST_BATCHED_VERSION = 8
FIRST_TOPIC_ID_VERSION = 10


def handle(request: OffsetFetchRequest, ctx: Context) -> OffsetFetchResponse:
    if ctx.version >= FIRST_BATCHED_VERSION:
        return OffsetFetchResponse(
            groups=[_fetch_group(group, request.require_stable, ctx) for group in request.groups]
        )
    return _fetch_one(request, ctx)


def _fetch_one(request: OffsetFetchRequest, ctx: Context) -> OffsetFetchResponse:
    wanted = None
    if request.topics is not None:
        wanted = [TopicPartition(t.name, index) for t in request.topics for index in t.partition_indexes]
    found = ctx.services.groups.offsets.fetch(request.group_id, wanted, require_stable=request.require_stable)
    # Without names the offsets come in the order of their commits; an answer names each topic once.
    offsets: Iterable[FetchedOffset] = found.partitions if wanted is not None else sorted(found.partitions)
    if found.error and ctx.version < FIRST_GROUP_ERROR_VERSION:
        # There is no place for the group's error yet, so each partition says it.
        offsets = [FetchedOffset(tp, error=found.error) for tp in wanted or ()]
    return OffsetFetchResponse(
        error_code=found.error,
        topics=[
            OffsetFetchResponseTopic(
                name=name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=each.partition.partition,
                        committed_offset=each.offset,
                        committed_leader_epoch=each.leader_epoch,
                        metadata=each.metadata,
                        error_code=each.error,
                    )
                    for each in parts
                ],
            )
            for name, parts in groupby(offsets, key=lambda each: each.partition.topic)
        ],
    )


def _fetch_group(
    group: OffsetFetchRequestGroup, require_stable: bool, ctx: Context
) -> OffsetFetchResponseGroup:
    by_id = ctx.version >= FIRST_TOPIC_ID_VERSION
    offsets = ctx.services.groups.offsets
    if group.topics is None:
        found = offsets.fetch(group.group_id, None, require_stable=require_stable)
        topics = [
            _topic(name, _id_of(name, ctx), list(parts), by_id)
            for name, parts in groupby(sorted(found.partitions), key=lambda each: each.partition.topic)
        ]
        known = [topic for topic in topics if not by_id or topic.topic_id != ZERO_UUID]
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=known, error_code=found.error)
    names = [_name_of(topic, by_id, ctx) for topic in group.topics]
    wanted = [
        TopicPartition(name, index)
        for name, topic in zip(names, group.topics, strict=True)
        if name is not None
        for index in topic.partition_indexes
    ]
    found = offsets.fetch(group.group_id, wanted, require_stable=require_stable)
    if found.error:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=found.error)
    left = iter(found.partitions)
    answers = []
    for name, topic in zip(names, group.topics, strict=True):
        if name is None:
            parts = [
                FetchedOffset(TopicPartition("", index), error=ErrorCode.UNKNOWN_TOPIC_ID)
                for index in topic.partition_indexes
            ]
        else:
            parts = [next(left) for _ in topic.partition_indexes]
        answers.append(_topic(name or "", topic.topic_id, parts, by_id))
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=answers, error_code=0)


def _name_of(topic: OffsetFetchRequestTopics, by_id: bool, ctx: Context) -> str | None:
    if not by_id:
        return topic.name
    found = ctx.services.image.topics_by_id.get(topic.topic_id)
    return found.name if found else None


def _id_of(name: str, ctx: Context) -> Uuid:
    topic = ctx.services.image.topics.get(name)
    return topic.id if topic else ZERO_UUID


def _topic(
    name: str, topic_id: Uuid, offsets: Sequence[FetchedOffset], by_id: bool
) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name="" if by_id else name,
        topic_id=topic_id if by_id else ZERO_UUID,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=each.partition.partition,
                committed_offset=each.offset,
                committed_leader_epoch=each.leader_epoch,
                metadata=each.metadata,
                error_code=each.error,
            )
            for each in offsets
        ],
    )
