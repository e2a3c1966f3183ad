"""Rebuilds the transactions of one partition from its log.

Feed it every record in log order; of each id the last one counts.  Touches nothing of the coordinator, so it
may run in a thread; `TransactionCoordinator.finish_load` takes the outcome over.
Records that cannot be read are left out and counted: one bad record must not take a thousand ids away.
"""

from barnabas.coordinator.txn_records import CorruptTransactionRecord, decode_key, decode_value
from barnabas.coordinator.txn_state import Snapshot, Transaction
from barnabas.coordinator.txn_table import OwnedTransactions

__all__ = ["TransactionLoad"]

FAULTS_KEPT_MAX = 10


class TransactionLoad:
    """The state of one partition of `__transaction_state` so far."""

    __slots__ = ("_snapshots", "fault_count", "faults", "owned", "partition", "record_count", "unknown_count")

    def __init__(self, partition: int, owned: OwnedTransactions) -> None:
        self.partition = partition
        self.owned = owned
        self.record_count = 0
        self.unknown_count = 0
        """Records of kinds that are newer than this broker."""
        self.fault_count = 0
        self.faults: list[CorruptTransactionRecord] = []
        """The first few of them, for the log."""
        self._snapshots: dict[str, Snapshot] = {}

    def record(self, key: bytes | memoryview | None, value: bytes | memoryview | None) -> None:
        self.record_count += 1
        try:
            self._record(key, value)
        except CorruptTransactionRecord as fault:
            self.fault_count += 1
            if len(self.faults) < FAULTS_KEPT_MAX:
                self.faults.append(fault)

    def _record(self, key: bytes | memoryview | None, value: bytes | memoryview | None) -> None:
        if key is None:
            raise CorruptTransactionRecord("a record of __transaction_state has no key")
        transactional_id = decode_key(key)
        if transactional_id is None:
            self.unknown_count += 1
        elif value is None:
            self._snapshots.pop(transactional_id, None)
        else:
            self._snapshots[transactional_id] = decode_value(transactional_id, value)

    def transactions(self) -> list[Transaction]:
        """What the log holds, decided ones not yet completed."""
        return [Transaction(name, self.partition, snapshot) for name, snapshot in self._snapshots.items()]
