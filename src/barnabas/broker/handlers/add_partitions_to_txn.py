"""AddPartitionsToTxn (key 24), v0-5: makes partitions part of transactions before they are written to.

v0-3 come from producers and name one transaction; v4 and v5 come from brokers, name several, and may only
ask whether the partitions are part of them (verify_only).  If one partition does not exist, none is added:
it gets UNKNOWN_TOPIC_OR_PARTITION and the others OPERATION_NOT_ATTEMPTED.  Before v2 a fenced producer is
told INVALID_PRODUCER_EPOCH.
"""

from collections.abc import Callable, Mapping

from barnabas.base.types import TopicPartition
from barnabas.broker.context import Context
from barnabas.broker.fencing import fenced_code, old_verification_code
from barnabas.broker.gather import Gather
from barnabas.coordinator.ports import Producer
from barnabas.metadata.names import is_internal
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

FIRST_FENCED_VERSION = 2
FIRST_BATCHED_VERSION = 4
FIRST_ABORTABLE_VERSION = 5

Errors = Mapping[TopicPartition, ErrorCode]


def handle(request: AddPartitionsToTxnRequest, ctx: Context) -> None:
    batched = ctx.version >= FIRST_BATCHED_VERSION
    transactions = request.transactions if batched else [_only_one(request)]

    def finished(results: dict[int, AddPartitionsToTxnResult]) -> None:
        ordered = [results[at] for at in range(len(transactions))]
        if batched:
            ctx.reply(AddPartitionsToTxnResponse(results_by_transaction=ordered))
        else:
            ctx.reply(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=ordered[0].topic_results))

    gather: Gather[int, AddPartitionsToTxnResult] = Gather(range(len(transactions)), finished)
    for at, transaction in enumerate(transactions):
        _add(transaction, ctx, _answer(at, transaction, gather))


def _only_one(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def _answer(
    at: int, transaction: AddPartitionsToTxnTransaction, gather: Gather[int, AddPartitionsToTxnResult]
) -> Callable[[Errors], None]:
    def done(errors: Errors) -> None:
        topics = [
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=errors[TopicPartition(topic.name, index)]
                    )
                    for index in topic.partitions
                ],
            )
            for topic in transaction.topics
        ]
        result = AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=topics)
        gather.done(at, result)

    return done


def _add(transaction: AddPartitionsToTxnTransaction, ctx: Context, done: Callable[[Errors], None]) -> None:
    partitions = [
        TopicPartition(topic.name, index) for topic in transaction.topics for index in topic.partitions
    ]
    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    coordinator = ctx.services.transactions
    if transaction.verify_only:
        done(
            {
                partition: _verified(
                    coordinator.verify(transaction.transactional_id, producer, partition), ctx.version
                )
                for partition in partitions
            }
        )
        return
    refused = {partition: error for partition in partitions if (error := _refusal(partition, ctx))}
    if refused:
        rest = dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
        done({**rest, **refused})
        return

    def reply(error: ErrorCode) -> None:
        done(dict.fromkeys(partitions, fenced_code(error, ctx.version, FIRST_FENCED_VERSION)))

    coordinator.add_partitions(transaction.transactional_id, producer, partitions, reply)


def _refusal(partition: TopicPartition, ctx: Context) -> ErrorCode:
    if is_internal(partition.topic) and ctx.version < FIRST_BATCHED_VERSION:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if ctx.services.image.partition(*partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _verified(error: ErrorCode, version: int) -> ErrorCode:
    return error if version >= FIRST_ABORTABLE_VERSION else old_verification_code(error)
