"""OffsetCommit (key 8), v0-10: stores offsets of a group's member, or of a consumer without a group.

v0 has no generation, v1 the client's own commit time, v2-4 a retention; v6 leader epochs, v7 static
members, v10 topic ids (an unknown id is UNKNOWN_TOPIC_ID).
"""

from barnabas.base.types import TopicPartition
from barnabas.broker.context import Context
from barnabas.coordinator.calls import OffsetsResult, OffsetToCommit
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

FIRST_TOPIC_ID_VERSION = 10
OWN_TIME_VERSION = 1
DEFAULT_RETENTION = -1


def handle(request: OffsetCommitRequest, ctx: Context) -> None:
    by_id = ctx.version >= FIRST_TOPIC_ID_VERSION
    names = [_topic_name(topic, ctx) if by_id else topic.name for topic in request.topics]
    offsets = [
        OffsetToCommit(
            TopicPartition(name, part.partition_index),
            part.committed_offset,
            part.committed_leader_epoch,
            part.committed_metadata,
            part.commit_timestamp if ctx.version == OWN_TIME_VERSION and part.commit_timestamp >= 0 else None,
        )
        for name, topic in zip(names, request.topics, strict=True)
        if name is not None
        for part in topic.partitions
    ]

    def reply(result: OffsetsResult) -> None:
        errors = iter(result.partitions)
        ctx.reply(
            OffsetCommitResponse(
                topics=[
                    OffsetCommitResponseTopic(
                        name=topic.name,
                        topic_id=topic.topic_id,
                        partitions=[
                            OffsetCommitResponsePartition(
                                partition_index=part.partition_index,
                                error_code=ErrorCode.UNKNOWN_TOPIC_ID if name is None else next(errors),
                            )
                            for part in topic.partitions
                        ],
                    )
                    for name, topic in zip(names, request.topics, strict=True)
                ]
            )
        )

    retention = request.retention_time_ms
    ctx.services.groups.offsets.commit(
        request.group_id,
        member_id=request.member_id,
        generation_id=request.generation_id_or_member_epoch,
        instance_id=request.group_instance_id,
        offsets=offsets,
        reply=reply,
        retention_ms=None if retention == DEFAULT_RETENTION else retention,
    )


def _topic_name(topic: OffsetCommitRequestTopic, ctx: Context) -> str | None:
    found = ctx.services.image.topics_by_id.get(topic.topic_id)
    return found.name if found else None
