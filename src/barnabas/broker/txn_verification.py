"""Whether a partition may take a transactional batch (KIP-890): only as part of its producer's transaction.

A batch that came late, after the end of its transaction, would begin another one that nobody ever ends, and
hold back every reader of committed data.  The log knows the transactions that are open in it; for the first
batch of one, the coordinator is asked.
"""

from barnabas.broker.context import Context
from barnabas.broker.fencing import produce_code
from barnabas.coordinator.ports import Producer
from barnabas.protocol.codes import ErrorCode
from barnabas.records.batch import RecordBatch
from barnabas.replication.partition import Partition

__all__ = ["transaction_refusal"]

FIRST_ABORTABLE_VERSION = 11  # of Produce


def transaction_refusal(
    batch: RecordBatch, transactional_id: str | None, partition: Partition, ctx: Context
) -> ErrorCode:
    """NONE if the batch belongs to an open transaction, else what its producer is told."""
    entry = partition.log.producers.producers.get(batch.producer_id)
    if entry is not None and entry.transaction_first_offset >= 0 and entry.epoch == batch.producer_epoch:
        return ErrorCode.NONE
    if transactional_id is None:
        return ErrorCode.INVALID_TXN_STATE
    error = ctx.services.transactions.verify(
        transactional_id, Producer(batch.producer_id, batch.producer_epoch), partition.topic_partition
    )
    return produce_code(error, knows_abortable=ctx.version >= FIRST_ABORTABLE_VERSION)
