"""AddOffsetsToTxn (key 25), v0-4: makes a group's offsets part of the producer's transaction.

What it adds is the partition of `__consumer_offsets` that keeps the group.  Before v2 a fenced producer is
told INVALID_PRODUCER_EPOCH.
"""

from collections.abc import Awaitable

from barnabas.base.errors import BarnabasError
from barnabas.base.types import TopicPartition
from barnabas.broker.context import Context
from barnabas.broker.fencing import fenced_code
from barnabas.coordinator.ports import Producer
from barnabas.metadata.names import GROUP_METADATA_TOPIC
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

FIRST_FENCED_VERSION = 2


def handle(request: AddOffsetsToTxnRequest, ctx: Context) -> Awaitable[AddOffsetsToTxnResponse | None] | None:
    if ctx.services.image.topics.get(GROUP_METADATA_TOPIC) is None:
        return _create_then_add(request, ctx)
    _add(request, ctx)
    return None


async def _create_then_add(request: AddOffsetsToTxnRequest, ctx: Context) -> AddOffsetsToTxnResponse | None:
    """Some clients add offsets before they look for the group's coordinator, which creates the topic."""
    try:
        await ctx.services.topics.ensure(GROUP_METADATA_TOPIC)
    except BarnabasError:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    _add(request, ctx)
    return None


def _add(request: AddOffsetsToTxnRequest, ctx: Context) -> None:
    def reply(error: ErrorCode) -> None:
        ctx.reply(AddOffsetsToTxnResponse(error_code=fenced_code(error, ctx.version, FIRST_FENCED_VERSION)))

    ctx.services.transactions.add_partitions(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        [TopicPartition(GROUP_METADATA_TOPIC, ctx.services.groups.partition_for(request.group_id))],
        reply,
    )
