"""Transactions as compaction meets them, batch by batch: what is aborted, and which markers still serve.

T1  A data batch of an aborted transaction may go at once: no reader of committed data was ever given it.
T2  A marker stays as long as a batch of its transaction was met in the same pass; after that it may go, once
    its delete horizon has passed (KIP-534), so that a reader who met the data also meets the marker.
T3  An aborted transaction stays in the transaction index as long as T2 keeps its marker for its data.

Fed with every batch of the pass in offset order, and with the aborted transactions of each segment before its
batches.  Pure; one caller.
"""

import heapq
from collections.abc import Iterable

from barnabas.log.txn_index import AbortedTransaction
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import read_end_txn_marker

__all__ = ["CleanedTransactions"]


class CleanedTransactions:
    """The state of one pass; `retained` collects the transactions for the cleaned index, oldest end first."""

    __slots__ = ("_ahead", "_ongoing_aborted", "_ongoing_committed", "retained")

    def __init__(self) -> None:
        self.retained: list[AbortedTransaction] = []
        self._ahead: list[tuple[int, AbortedTransaction]] = []  # heap by first offset
        self._ongoing_committed: set[int] = set()
        self._ongoing_aborted: dict[int, tuple[AbortedTransaction, bool]] = {}  # and whether data was met

    def expect(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Aborted transactions that batches to come may belong to; naming one twice does no harm."""
        for transaction in aborted:
            heapq.heappush(self._ahead, (transaction.first_offset, transaction))

    def _begin_up_to(self, offset: int) -> None:
        while self._ahead and self._ahead[0][0] <= offset:
            _, transaction = heapq.heappop(self._ahead)
            self._ongoing_aborted.setdefault(transaction.producer_id, (transaction, False))

    def data(self, batch: RecordBatch) -> bool:
        """A data batch passes; True when it belongs to an aborted transaction (T1)."""
        self._begin_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        if (found := self._ongoing_aborted.get(batch.producer_id)) is not None:
            self._ongoing_aborted[batch.producer_id] = (found[0], True)
            return True
        self._ongoing_committed.add(batch.producer_id)
        return False

    def marker(self, batch: RecordBatch) -> bool:
        """A control batch passes; True when no batch of its transaction is left (T2)."""
        self._begin_up_to(batch.last_offset)
        if batch.record_count == 0:
            return True  # an earlier pass emptied it
        marker = read_end_txn_marker(batch)
        if marker is None:
            return False  # not about a transaction: not ours to judge
        if marker.committed:
            met = batch.producer_id in self._ongoing_committed
            self._ongoing_committed.discard(batch.producer_id)
            return not met
        transaction, met = self._ongoing_aborted.pop(batch.producer_id, (None, False))
        if transaction is not None and met:
            self.retained.append(transaction)
            return False
        return True

    def take_retained(self) -> list[AbortedTransaction]:
        """The entries for the cleaned segment's index since the last call (T3)."""
        taken, self.retained = self.retained, []
        return taken
