"""Whether a partition may take a transactional batch (KIP-890): only as part of its producer's transaction.

A batch that came late, after the end of its transaction, would begin another one that nobody ever ends, and
hold back every reader of committed data.  The log knows the transactions that are open in it; for the first
batch of one, the coordinator is asked.  From Produce v12 on, that first batch makes the partition part of the
transaction, and must be the first of its epoch.
"""

import asyncio
from collections.abc import Iterable

from barnabas.base.types import TopicPartition
from barnabas.broker.context import Context
from barnabas.broker.fencing import produce_code
from barnabas.coordinator.ports import Producer
from barnabas.coordinator.txn_ending import FIRST_BUMPING_VERSION
from barnabas.protocol.codes import ErrorCode
from barnabas.records.batch import ATTRIBUTE_TRANSACTIONAL, HEADER_BYTES, RecordBatch, read_header
from barnabas.replication.partition import Partition

__all__ = ["FIRST_IMPLICIT_VERSION", "join_transaction", "starting_partitions", "transaction_refusal"]

FIRST_IMPLICIT_VERSION = 12  # of Produce
_ATTRIBUTES, _PRODUCER_ID, _PRODUCER_EPOCH = 5, 9, 10  # places in a batch header


def transaction_refusal(
    batch: RecordBatch,
    transactional_id: str | None,
    partition: Partition,
    ctx: Context,
    join_error: ErrorCode = ErrorCode.NONE,
) -> ErrorCode:
    """NONE if the batch belongs to an open transaction, else what its producer is told.

    `join_error` is why the request's new partitions could not be made part of it.
    """
    if _is_open(partition, batch.producer_id, batch.producer_epoch):
        return ErrorCode.NONE
    if transactional_id is None:
        return ErrorCode.INVALID_TXN_STATE
    error = join_error or ctx.services.transactions.verify(
        transactional_id, Producer(batch.producer_id, batch.producer_epoch), partition.topic_partition
    )
    if error:
        return produce_code(error, ctx.version)
    is_unknown = batch.producer_id not in partition.log.producers.producers
    if is_unknown and batch.base_sequence != 0 and ctx.version >= FIRST_IMPLICIT_VERSION:
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # the epoch is new, so one before it was lost
    return ErrorCode.NONE


def starting_partitions(
    batches: Iterable[tuple[Partition, object]],
) -> tuple[Producer, list[TopicPartition]] | None:
    """The producer of a request's transactional batches, and where it has no transaction open yet.

    None if there is no such partition.  What is no batch is left for the append to refuse.
    """
    producer: Producer | None = None
    starting: list[TopicPartition] = []
    for partition, records in batches:
        if not isinstance(records, memoryview) or len(records) < HEADER_BYTES:
            continue
        header = read_header(records)
        if not header[_ATTRIBUTES] & ATTRIBUTE_TRANSACTIONAL:
            continue
        sender = Producer(header[_PRODUCER_ID], header[_PRODUCER_EPOCH])
        producer = producer or sender
        if sender == producer and not _is_open(partition, *sender):
            starting.append(partition.topic_partition)
    return (producer, starting) if producer is not None and starting else None


async def join_transaction(
    transactional_id: str, producer: Producer, partitions: list[TopicPartition], ctx: Context
) -> ErrorCode:
    """Makes the partitions part of the producer's transaction; says why not."""
    joined: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
    ctx.services.transactions.add_partitions(
        transactional_id, producer, partitions, joined.set_result, version=FIRST_BUMPING_VERSION
    )
    return await joined


def _is_open(partition: Partition, producer_id: int, epoch: int) -> bool:
    entry = partition.log.producers.producers.get(producer_id)
    return entry is not None and entry.transaction_first_offset >= 0 and entry.epoch == epoch
