"""OffsetDelete (key 47), v0: forgets committed offsets of topics that a group no longer reads."""

from barnabas.base.types import TopicPartition
from barnabas.broker.context import Context
from barnabas.coordinator.calls import OffsetsResult
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(request: OffsetDeleteRequest, ctx: Context) -> None:
    wanted = [TopicPartition(t.name, part.partition_index) for t in request.topics for part in t.partitions]

    def reply(result: OffsetsResult) -> None:
        if result.error:
            ctx.reply(OffsetDeleteResponse(error_code=result.error))
            return
        errors = iter(result.partitions)
        ctx.reply(
            OffsetDeleteResponse(
                error_code=0,
                topics=[
                    OffsetDeleteResponseTopic(
                        name=topic.name,
                        partitions=[
                            OffsetDeleteResponsePartition(
                                partition_index=part.partition_index, error_code=next(errors)
                            )
                            for part in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ],
            )
        )

    ctx.services.groups.offsets.delete(request.group_id, wanted, reply)
