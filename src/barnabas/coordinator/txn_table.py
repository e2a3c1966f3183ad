"""All transactional ids of this broker, by the partition of `__transaction_state` that keeps them.

T1  an id is here if and only if its partition is led by this broker and loaded, and the id is known
T2  the coordinator epoch of a partition is its leader epoch; markers carry it, so that a broker that lost
    the partition can no longer end transactions
An election or resignation with an epoch below the last one seen is stale and changes nothing.
"""

from collections.abc import Iterator

from barnabas.coordinator.hashing import partition_of
from barnabas.coordinator.txn_state import Transaction
from barnabas.protocol.codes import ErrorCode

__all__ = ["OwnedTransactions", "TransactionTable"]


class OwnedTransactions:
    """A partition of the transaction topic that this broker leads."""

    __slots__ = ("epoch", "is_loading", "transactions")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.is_loading = True
        self.transactions: dict[str, Transaction] = {}


class TransactionTable:
    """Transactions by id, and whether this broker may speak for them."""

    __slots__ = ("_epochs", "_owned", "is_active", "partition_count")

    def __init__(self, partition_count: int) -> None:
        self.partition_count = partition_count
        self.is_active = False
        self._owned: dict[int, OwnedTransactions] = {}
        self._epochs: dict[int, int] = {}

    def __iter__(self) -> Iterator[Transaction]:
        """The transactions of this moment; the table may change meanwhile."""
        loaded = [owned for owned in self._owned.values() if not owned.is_loading]
        return iter([transaction for owned in loaded for transaction in owned.transactions.values()])

    @property
    def is_loading(self) -> bool:
        return any(owned.is_loading for owned in self._owned.values())

    def partition_for(self, transactional_id: str) -> int:
        return partition_of(transactional_id, self.partition_count)

    def find(self, transactional_id: str) -> Transaction | ErrorCode | None:
        """The transaction, None if the id is not known, or why this broker cannot say."""
        if not self.is_active:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        owned = self._owned.get(self.partition_for(transactional_id))
        if owned is None:
            return ErrorCode.NOT_COORDINATOR
        if owned.is_loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return owned.transactions.get(transactional_id)

    def add(self, transaction: Transaction) -> None:
        owned = self._owned[transaction.partition]
        assert transaction.transactional_id not in owned.transactions, f"{transaction} is there already"
        owned.transactions[transaction.transactional_id] = transaction

    def remove(self, transaction: Transaction) -> None:
        if self.is_current(transaction):
            del self._owned[transaction.partition].transactions[transaction.transactional_id]

    def is_current(self, transaction: Transaction) -> bool:
        """Whether this broker still speaks for the transaction, and it is still the one of its id."""
        owned = self._owned.get(transaction.partition)
        return owned is not None and owned.transactions.get(transaction.transactional_id) is transaction

    def epoch_of(self, transaction: Transaction) -> int:
        """The coordinator epoch of a current transaction (T2)."""
        return self._owned[transaction.partition].epoch

    # Leadership

    def begin_load(self, partition: int, epoch: int) -> OwnedTransactions | None:
        """Takes the partition over; None if the epoch is stale or it is here already."""
        if not self._is_news(partition, epoch) or partition in self._owned:
            return None
        owned = self._owned[partition] = OwnedTransactions(epoch)
        return owned

    def finish_load(self, partition: int, owned: OwnedTransactions) -> bool:
        """Opens the partition for calls; says False if it moved away meanwhile."""
        if self._owned.get(partition) is not owned:
            return False
        owned.is_loading = False
        return True

    def give_up(self, partition: int, epoch: int | None) -> bool:
        """Lets go of the partition; False if the epoch is stale or it is not here.

        No epoch means the partition is gone for good.
        """
        if epoch is not None and not self._is_news(partition, epoch):
            return False
        return self._owned.pop(partition, None) is not None

    def _is_news(self, partition: int, epoch: int) -> bool:
        if epoch < self._epochs.get(partition, epoch):
            return False
        self._epochs[partition] = epoch
        return True
