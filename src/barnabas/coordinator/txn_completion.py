"""From a decision to its end: markers into every partition, then the record that says so.

C1  markers are written only after the decision is durable, and the completion only after all markers
C2  a marker or completion that could not be written is tried again until it is, or the partition of
    `__transaction_state` moves away; whoever leads it then begins again from the decision
C3  while a transaction is completing, its `pending` is the completion, so that nothing else begins
Writing a marker twice is harmless: the second one finds no transaction open.
"""

import logging
from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

from barnabas.base.types import TopicPartition
from barnabas.coordinator.txn_ports import FaultPoint, Marker, TransactionSurroundings
from barnabas.coordinator.txn_state import Transaction, TransactionState
from barnabas.coordinator.txn_table import TransactionTable
from barnabas.coordinator.txn_writes import TransactionWrites
from barnabas.protocol.codes import ErrorCode

__all__ = ["Completion"]

LOG = logging.getLogger(__name__)
RETRY_MS: Final = 50
RETRY_MS_MAX: Final = 5_000  # a partition may be offline for days
# Another coordinator took over, and will end the transaction itself.
_FENCED: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)


class Completion:
    """Ends decided transactions."""

    __slots__ = ("_around", "_table", "_writes")

    def __init__(
        self, around: TransactionSurroundings, table: TransactionTable, writes: TransactionWrites
    ) -> None:
        self._around = around
        self._table = table
        self._writes = writes

    def start(self, transaction: Transaction) -> None:
        """The transaction is decided, and that is durable."""
        decided = transaction.durable
        transaction.begin(decided.completed(self._around.clock.now_ms()))
        self._mark(transaction, decided.partitions)

    def _mark(
        self, transaction: Transaction, partitions: Collection[TopicPartition], wait_ms: int = RETRY_MS
    ) -> None:
        if not self._table.is_current(transaction):
            return
        # A topic that was deleted took its part of the transaction along.
        has_partition = self._around.topics.has_partition
        left = [partition for partition in sorted(partitions) if has_partition(*partition)]
        if not left:
            self._finish(transaction)
            return
        decided = transaction.durable
        marker = Marker(
            decided.producer_id,
            decided.producer_epoch,
            decided.state is TransactionState.PREPARE_COMMIT,
            self._table.epoch_of(transaction),
        )
        self._around.markers.write(marker, left, partial(self._marked, transaction, wait_ms))

    def _marked(
        self, transaction: Transaction, wait_ms: int, errors: Mapping[TopicPartition, ErrorCode]
    ) -> None:
        failed = {partition: error for partition, error in errors.items() if error}
        if not failed:
            self._finish(transaction)
            return
        fenced = [partition for partition, error in failed.items() if error in _FENCED]
        if fenced:
            LOG.error("%s: the end is left to a newer coordinator, which %s knows", transaction, fenced[0])
            return
        LOG.info("%s: markers are written again in %d ms: %s", transaction, wait_ms, failed)
        again = partial(self._mark, transaction, failed.keys(), min(wait_ms * 2, RETRY_MS_MAX))
        self._around.timers.call_after(wait_ms, again)

    def _finish(self, transaction: Transaction) -> None:
        if not self._table.is_current(transaction):
            return
        self._around.reach(FaultPoint.MARKED_ALL)
        self._writes.append(transaction, partial(self._finished, transaction))

    def _finished(self, transaction: Transaction, error: ErrorCode) -> None:
        if not self._table.is_current(transaction):
            return
        if error:
            LOG.warning("%s: the completion is written again later: %s", transaction, error.name)
            self._around.timers.call_after(RETRY_MS, partial(self._finish, transaction))
            return
        transaction.settle()
        self._around.reach(FaultPoint.COMPLETED)
