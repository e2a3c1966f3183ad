"""TxnOffsetCommit (key 28), v0-5: offsets of a group that count when the producer's transaction commits.

v3 names the consumer (KIP-447), so that one which lost its partitions cannot commit.  The group's partition
of `__consumer_offsets` must be part of the transaction (AddOffsetsToTxn), else INVALID_TXN_STATE, from v4 on
TRANSACTION_ABORTABLE.  v0-1 get COORDINATOR_NOT_AVAILABLE while groups load, which old producers survive.
v5 adds the group to the transaction by itself (KIP-890).
"""

from barnabas.base.types import TopicPartition
from barnabas.broker.context import Context
from barnabas.broker.fencing import old_verification_code
from barnabas.coordinator.append_errors import commit_error
from barnabas.coordinator.calls import OffsetsResult, OffsetToCommit
from barnabas.coordinator.ports import Producer
from barnabas.coordinator.txn_ending import FIRST_BUMPING_VERSION
from barnabas.metadata.names import GROUP_METADATA_TOPIC
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

FIRST_LOADING_VERSION = 2
FIRST_ABORTABLE_VERSION = 4
FIRST_IMPLICIT_VERSION = 5


def handle(request: TxnOffsetCommitRequest, ctx: Context) -> None:
    offsets = [
        OffsetToCommit(
            TopicPartition(topic.name, part.partition_index),
            part.committed_offset,
            part.committed_leader_epoch,
            part.committed_metadata,
        )
        for topic in request.topics
        for part in topic.partitions
    ]

    def reply(result: OffsetsResult) -> None:
        errors = iter(result.partitions)
        ctx.reply(
            TxnOffsetCommitResponse(
                topics=[
                    TxnOffsetCommitResponseTopic(
                        name=topic.name,
                        partitions=[
                            TxnOffsetCommitResponsePartition(
                                partition_index=part.partition_index,
                                error_code=_known(next(errors), ctx.version),
                            )
                            for part in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ]
            )
        )

    producer = Producer(request.producer_id, request.producer_epoch)

    def verified(error: ErrorCode) -> None:
        if error:
            refusal = _refusal(error, ctx.version)
            reply(OffsetsResult(ErrorCode.NONE, [refusal] * len(offsets)))
            return
        ctx.services.groups.offsets.commit_in_transaction(
            request.group_id,
            producer=producer,
            member_id=request.member_id,
            generation_id=request.generation_id,
            instance_id=request.group_instance_id,
            offsets=offsets,
            reply=reply,
        )

    transactions, groups = ctx.services.transactions, ctx.services.groups
    where = TopicPartition(GROUP_METADATA_TOPIC, groups.partition_for(request.group_id))
    if ctx.version >= FIRST_IMPLICIT_VERSION:
        transactions.add_partitions(
            request.transactional_id, producer, [where], verified, version=FIRST_BUMPING_VERSION
        )
    else:
        verified(transactions.verify(request.transactional_id, producer, where))


def _refusal(error: ErrorCode, version: int) -> ErrorCode:
    match error:
        case ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        case ErrorCode.TRANSACTION_ABORTABLE:
            return error if version >= FIRST_ABORTABLE_VERSION else old_verification_code(error)
        case ErrorCode.CONCURRENT_TRANSACTIONS | ErrorCode.NOT_COORDINATOR:
            # The transaction's coordinator is meant, not the group's: wait, and ask again here.
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        case _:
            return commit_error(error)


def _known(error: ErrorCode, version: int) -> ErrorCode:
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < FIRST_LOADING_VERSION:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error
