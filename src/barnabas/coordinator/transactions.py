"""The transaction coordinator: every call of the transaction APIs finds its transaction here.

What can be decided at once is returned; whatever writes to the log takes a `reply`, which is called exactly
once, maybe before the call returns.  One caller at a time (the event loop).
"""

import logging
from collections.abc import Callable, Collection
from dataclasses import replace

from barnabas.base.types import TopicPartition
from barnabas.coordinator.ports import Producer, TimerHandle
from barnabas.coordinator.txn_calls import (
    ErrorReply,
    InitResult,
    ProducerReply,
    TransactionDescription,
    TransactionFilter,
    TransactionList,
    TransactionListing,
)
from barnabas.coordinator.txn_completion import Completion
from barnabas.coordinator.txn_ending import Ending
from barnabas.coordinator.txn_init import Initialization
from barnabas.coordinator.txn_loading import TransactionLoad
from barnabas.coordinator.txn_ports import TransactionSurroundings
from barnabas.coordinator.txn_records import can_be_stored
from barnabas.coordinator.txn_state import STATE_NAMES, Snapshot, Transaction, TransactionState
from barnabas.coordinator.txn_table import TransactionTable
from barnabas.coordinator.txn_writes import TransactionWrites
from barnabas.protocol.codes import ErrorCode

__all__ = ["TransactionCoordinator"]

LOG = logging.getLogger(__name__)
TOMBSTONES_PER_BATCH = 1_000


class TransactionCoordinator:
    """Transactional ids, their producers and their transactions."""

    def __init__(self, around: TransactionSurroundings, partition_count: int) -> None:
        """`partition_count` is that of `__transaction_state`; it changes only while none is here."""
        self._around = around
        self.table = TransactionTable(partition_count)
        self._writes = TransactionWrites(around, self.table)
        self._completion = Completion(around, self.table, self._writes)
        self._ending = Ending(around, self.table, self._writes, self._completion)
        self._initialization = Initialization(around, self.table, self._writes, self._ending)
        self._timers: dict[Callable[[], None], TimerHandle] = {}

    # Life

    def start(self) -> None:
        """Answers calls from now on, aborts what runs out of time and forgets what expires."""
        self.table.is_active = True
        self._abort_later()
        self._expire_later()

    def stop(self) -> None:
        """Lets go of all partitions; changes on their way to the log are told NOT_COORDINATOR."""
        self.table.is_active = False
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for partition in range(self.table.partition_count):
            self.unload(partition)

    def _abort_later(self) -> None:
        interval_ms = self._around.settings.timeout_check_interval_ms
        self._timers[self._abort_timed_out] = self._around.timers.call_after(
            interval_ms, self._abort_timed_out
        )

    def _abort_timed_out(self) -> None:
        self._abort_later()
        self._ending.abort_timed_out()

    def _expire_later(self) -> None:
        interval_ms = self._around.settings.expiration_check_interval_ms
        self._timers[self._expire] = self._around.timers.call_after(interval_ms, self._expire)

    def _expire(self) -> None:
        self._expire_later()
        self.remove_expired()

    # Leadership

    def begin_load(self, partition: int, epoch: int) -> TransactionLoad | None:
        """This broker leads the partition since `epoch`.  Feed the load its whole log, then `finish_load`.

        None if that is old news.  Until it is finished, calls are told COORDINATOR_LOAD_IN_PROGRESS.
        """
        owned = self.table.begin_load(partition, epoch)
        return None if owned is None else TransactionLoad(partition, owned)

    def finish_load(self, load: TransactionLoad) -> None:
        """The load has seen the log to its end; completes what was decided and not completed.

        Does nothing if the partition moved away meanwhile.
        """
        if not self.table.finish_load(load.partition, load.owned):
            return
        transactions = load.transactions()
        for transaction in transactions:
            self.table.add(transaction)
        if transactions:
            LOG.info("partition %d: loaded %d transactional ids", load.partition, len(transactions))
        for fault in load.faults:
            LOG.error("partition %d: %s", load.partition, fault)
        for transaction in transactions:
            if transaction.state.is_decided:
                self._completion.start(transaction)

    def unload(self, partition: int, epoch: int | None = None) -> None:
        """Another broker leads the partition since `epoch`; None if it was deleted."""
        self.table.give_up(partition, epoch)

    def partition_for(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` whose leader coordinates the id."""
        return self.table.partition_for(transactional_id)

    # Producers

    def init_producer(
        self, transactional_id: str, timeout_ms: int, expected: Producer | None, reply: ProducerReply
    ) -> None:
        """The id's producer, in a new epoch; `expected` is what it has so far, if it says so (KIP-360)."""
        if not transactional_id or not can_be_stored(transactional_id):
            reply(InitResult(ErrorCode.INVALID_REQUEST))
        elif not 0 < timeout_ms <= self._around.settings.timeout_ms_max:
            reply(InitResult(ErrorCode.INVALID_TRANSACTION_TIMEOUT))
        else:
            self._initialization.init(transactional_id, timeout_ms, expected, reply)

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Collection[TopicPartition],
        reply: ErrorReply,
        version: int = 0,
    ) -> None:
        """Makes the partitions part of the producer's transaction, which begins with the first ones.

        `version` is the transaction.version that the producer's client speaks.
        """
        found = self._of_producer(transactional_id, producer)
        if isinstance(found, ErrorCode):
            reply(found)
            return
        now = found.durable
        if found.is_changing or now.state.is_decided:
            reply(ErrorCode.CONCURRENT_TRANSACTIONS)
        elif now.state is TransactionState.ONGOING and now.partitions.issuperset(partitions):
            reply(ErrorCode.NONE)
        else:
            self._writes.change(found, self._with_partitions(now, partitions, version), reply)

    def _with_partitions(
        self, now: Snapshot, partitions: Collection[TopicPartition], version: int
    ) -> Snapshot:
        now_ms = self._around.clock.now_ms()
        return replace(
            now,
            state=TransactionState.ONGOING,
            partitions=now.partitions.union(partitions),
            started_ms=now.started_ms if now.state is TransactionState.ONGOING else now_ms,
            updated_ms=now_ms,
            version=version,
        )

    def verify(self, transactional_id: str, producer: Producer, partition: TopicPartition) -> ErrorCode:
        """NONE if the partition may take a batch of the producer's transaction.

        TRANSACTION_ABORTABLE if it is not part of it.
        """
        if not self._around.settings.verifies_partitions:
            return ErrorCode.NONE
        found = self._of_producer(transactional_id, producer)
        if isinstance(found, ErrorCode):
            return found
        if found.state.is_decided:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        is_part = partition in found.durable.partitions
        return ErrorCode.NONE if is_part else ErrorCode.TRANSACTION_ABORTABLE

    def end(
        self,
        transactional_id: str,
        producer: Producer,
        committed: bool,
        reply: ProducerReply,
        version: int = 0,
    ) -> None:
        """Commits or aborts.  Answered when the decision is durable; with its producer id and epoch from
        then on, which differ from before only for clients of transaction.version 2."""
        found = self._find(transactional_id)
        if isinstance(found, ErrorCode):
            reply(InitResult(found))
        else:
            self._ending.end(found, producer, committed, version, reply)

    def _find(self, transactional_id: str) -> Transaction | ErrorCode:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        return self.table.find(transactional_id) or ErrorCode.INVALID_PRODUCER_ID_MAPPING

    def _of_producer(self, transactional_id: str, producer: Producer) -> Transaction | ErrorCode:
        """The transaction if the producer is its current one."""
        found = self._find(transactional_id)
        if isinstance(found, ErrorCode):
            return found
        if found.durable.producer_id != producer.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if found.durable.producer_epoch != producer.producer_epoch:
            return ErrorCode.PRODUCER_FENCED
        return found

    # Administration

    def describe(self, transactional_id: str) -> TransactionDescription:
        if not transactional_id:
            return TransactionDescription(ErrorCode.INVALID_REQUEST, transactional_id)
        found = self.table.find(transactional_id) or ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        if isinstance(found, ErrorCode):
            return TransactionDescription(found, transactional_id)
        now = found.durable
        return TransactionDescription(
            ErrorCode.NONE,
            transactional_id,
            now.state.text,
            now.timeout_ms,
            now.started_ms,
            now.producer_id,
            now.producer_epoch,
            tuple(sorted(now.partitions)),
        )

    def list_transactions(self, wanted: TransactionFilter) -> TransactionList:
        if not self.table.is_active:
            return TransactionList(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if self.table.is_loading:
            return TransactionList(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        states = {STATE_NAMES[name] for name in wanted.states if name in STATE_NAMES}
        now_ms = self._around.clock.now_ms()

        def is_wanted(transaction: Transaction) -> bool:
            now = transaction.durable
            return (
                (not wanted.states or now.state in states)
                and (not wanted.producer_ids or now.producer_id in wanted.producer_ids)
                and (wanted.longer_than_ms < 0 or now_ms - now.started_ms > wanted.longer_than_ms)
                and (wanted.matches is None or wanted.matches(transaction.transactional_id))
            )

        return TransactionList(
            ErrorCode.NONE,
            sorted(wanted.states - STATE_NAMES.keys()),
            [
                TransactionListing(
                    transaction.transactional_id, transaction.durable.producer_id, transaction.state
                )
                for transaction in self.table
                if is_wanted(transaction)
            ],
        )

    def remove_expired(self) -> None:
        """Forgets the ids that were not used for too long and have no transaction open."""
        oldest_ms = self._around.clock.now_ms() - self._around.settings.id_expiration_ms
        expired: dict[int, list[Transaction]] = {}
        for transaction in self.table:
            now = transaction.durable
            if not transaction.is_changing and now.state.is_idle and now.updated_ms <= oldest_ms:
                expired.setdefault(transaction.partition, []).append(transaction)
        for partition, transactions in expired.items():
            LOG.info("partition %d: %d transactional ids expired", partition, len(transactions))
            for at in range(0, len(transactions), TOMBSTONES_PER_BATCH):
                self._writes.bury(partition, transactions[at : at + TOMBSTONES_PER_BATCH], _log_failure)


def _log_failure(error: ErrorCode) -> None:
    if error:
        LOG.warning("expired transactional ids could not be removed now: %s", error.name)
