"""AddOffsetsToTxn (key 25), v0-4: makes a group's offsets part of the producer's transaction.

What it adds is the partition of `__consumer_offsets` that keeps the group.  Before v2 a fenced producer is
told INVALID_PRODUCER_EPOCH.
"""

from barnabas.base.types import TopicPartition
from barnabas.broker.context import Context
from barnabas.broker.fencing import fenced_code
from barnabas.coordinator.ports import Producer
from barnabas.metadata.names import GROUP_METADATA_TOPIC
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

FIRST_FENCED_VERSION = 2


def handle(request: AddOffsetsToTxnRequest, ctx: Context) -> AddOffsetsToTxnResponse | None:
    services = ctx.services
    if services.image.topics.get(GROUP_METADATA_TOPIC) is None:
        # Its marker would have nowhere to go; whoever finds the group's coordinator creates the topic.
        return AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def reply(error: ErrorCode) -> None:
        ctx.reply(AddOffsetsToTxnResponse(error_code=fenced_code(error, ctx.version, FIRST_FENCED_VERSION)))

    services.transactions.add_partitions(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        [TopicPartition(GROUP_METADATA_TOPIC, services.groups.partition_for(request.group_id))],
        reply,
    )
    return None
