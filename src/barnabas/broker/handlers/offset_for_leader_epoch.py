"""OffsetForLeaderEpoch (key 23), v0-4: where an epoch ends, so that a reader can tell if it was truncated.

v1 adds the epoch found, v2 the caller's current epoch, v3 the replica id.
"""

from barnabas.base.errors import BarnabasError
from barnabas.broker.context import Context
from barnabas.broker.error_codes import code_of
from barnabas.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(request: OffsetForLeaderEpochRequest, ctx: Context) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_look_up(topic.topic, asked, ctx) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _look_up(topic: str, asked: OffsetForLeaderPartition, ctx: Context) -> EpochEndOffset:
    partition = ctx.services.partitions.get(topic, asked.partition)
    if partition is None:
        code = ctx.services.partitions.absence(topic, asked.partition)
        return EpochEndOffset(error_code=code, partition=asked.partition)
    try:
        partition.check_epoch(asked.current_leader_epoch)
        epoch, end = partition.epoch_end_offset(asked.leader_epoch)
    except BarnabasError as error:
        return EpochEndOffset(error_code=code_of(error), partition=asked.partition)
    return EpochEndOffset(error_code=0, partition=asked.partition, leader_epoch=epoch, end_offset=end)
