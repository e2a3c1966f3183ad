"""Changes of transactions on their way to `__transaction_state`, and what clients are told when that fails.

W1  a change counts, and is told to anybody, only after the log made it durable
W2  an outcome that comes after the partition moved away changes nothing: its new leader reads the log
"""

from collections.abc import Callable, Sequence
from functools import partial

from barnabas.coordinator.txn_ports import TransactionSurroundings
from barnabas.coordinator.txn_records import transaction_record, transaction_tombstone
from barnabas.coordinator.txn_state import Snapshot, Transaction
from barnabas.coordinator.txn_table import TransactionTable
from barnabas.protocol.codes import ErrorCode

__all__ = ["TransactionWrites", "transaction_error"]

Done = Callable[[ErrorCode], None]

_CLIENT_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def transaction_error(error: ErrorCode) -> ErrorCode:
    """What a producer is told when a write to `__transaction_state` ended so."""
    return _CLIENT_ERRORS.get(error, error)


class TransactionWrites:
    """The one way in which a transaction changes."""

    __slots__ = ("_around", "_table")

    def __init__(self, around: TransactionSurroundings, table: TransactionTable) -> None:
        self._around = around
        self._table = table

    def change(self, transaction: Transaction, to: Snapshot, done: Done) -> None:
        """Writes the change; `done` is told NONE when it counts, else why it does not."""
        transaction.begin(to)
        self.append(transaction, partial(self._changed, transaction, done))

    def append(self, transaction: Transaction, done: Done) -> None:
        """Writes the change that has begun, again if need be; `done` decides what it means."""
        assert transaction.pending is not None, transaction
        record = transaction_record(transaction.transactional_id, transaction.pending, self._around.version())
        self._around.log.append(transaction.partition, [record], done)

    def _changed(self, transaction: Transaction, done: Done, error: ErrorCode) -> None:
        if not self._table.is_current(transaction):
            done(ErrorCode.NOT_COORDINATOR)  # W2
        elif error:
            transaction.drop()
            done(transaction_error(error))
        else:
            transaction.settle()
            done(ErrorCode.NONE)

    def bury(self, partition: int, transactions: Sequence[Transaction], done: Done) -> None:
        """Writes the tombstones of ids of one partition, and forgets those ids once they are durable."""
        buried = [(transaction, transaction.durable) for transaction in transactions]
        records = [transaction_tombstone(transaction.transactional_id) for transaction in transactions]
        self._around.log.append(partition, records, partial(self._buried, buried, done))

    def _buried(self, buried: Sequence[tuple[Transaction, Snapshot]], done: Done, error: ErrorCode) -> None:
        for transaction, snapshot in buried:
            # One that came back to life meanwhile has a record behind its tombstone.
            if not error and not transaction.is_changing and transaction.durable is snapshot:
                self._table.remove(transaction)
        done(transaction_error(error))
