"""EndTxn, and the aborts that nobody asked for: fenced producers and transactions out of time.

E1  the decision is durable before anybody is told of it, and it is never taken back
E2  an abort by the coordinator raises the epoch, so that whoever was writing is fenced everywhere; a client
    of version 2 whose time was over learns the new epoch when it aborts, and goes on
With transactions of version 2 (KIP-890) every end raises the epoch, and the producer is told the new one; a
repeated call is known by the epoch before.
"""

import logging
from dataclasses import replace
from functools import partial

from barnabas.coordinator.ports import Producer
from barnabas.coordinator.txn_calls import ErrorReply, InitResult, ProducerReply
from barnabas.coordinator.txn_completion import Completion
from barnabas.coordinator.txn_ports import FaultPoint, TransactionSurroundings
from barnabas.coordinator.txn_state import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER,
    Snapshot,
    Transaction,
    TransactionState,
    is_exhausted,
)
from barnabas.coordinator.txn_table import TransactionTable
from barnabas.coordinator.txn_writes import TransactionWrites
from barnabas.protocol.codes import ErrorCode

__all__ = ["FIRST_BUMPING_VERSION", "Ending"]

LOG = logging.getLogger(__name__)
FIRST_BUMPING_VERSION = 2
"""From this transaction.version on, a client's epoch rises with every end."""


class Ending:
    """Decides transactions."""

    __slots__ = ("_around", "_completion", "_table", "_writes")

    def __init__(
        self,
        around: TransactionSurroundings,
        table: TransactionTable,
        writes: TransactionWrites,
        completion: Completion,
    ) -> None:
        self._around = around
        self._table = table
        self._writes = writes
        self._completion = completion

    # By the producer

    def end(
        self,
        transaction: Transaction,
        producer: Producer,
        committed: bool,
        version: int,
        reply: ProducerReply,
    ) -> None:
        """Decides as the producer says; `version` is the transaction.version its client speaks."""
        now = transaction.durable
        bumps = version >= FIRST_BUMPING_VERSION
        repeated = bumps and _is_repeated(now, producer)
        if error := _producer_error(now, producer, bumps=bumps, repeated=repeated):
            self._answer(reply, InitResult(error))
        elif transaction.is_changing:
            self._answer(reply, InitResult(ErrorCode.CONCURRENT_TRANSACTIONS))
        elif now.state is TransactionState.ONGOING or _is_empty_abort(now, committed, bumps, repeated):
            self._decide_as_told(transaction, committed, bumps, reply)
        else:
            error = _repeated_result(now.state, committed, bumps and not repeated)
            current = (now.producer_id, now.producer_epoch) if not error else (NO_PRODUCER, NO_EPOCH)
            self._answer(reply, InitResult(error, *current))

    def _decide_as_told(
        self, transaction: Transaction, committed: bool, bumps: bool, reply: ProducerReply
    ) -> None:
        if bumps and is_exhausted(transaction.durable.producer_epoch):
            follow_up = partial(self._decide_with_id, transaction, transaction.durable, committed, reply)
            self._around.producer_ids.next_id(follow_up)
        else:
            self._decide(transaction, self._decision(transaction, committed, bumps, NO_PRODUCER), reply)

    def _decide_with_id(
        self,
        transaction: Transaction,
        seen: Snapshot,
        committed: bool,
        reply: ProducerReply,
        error: ErrorCode,
        next_id: int,
    ) -> None:
        if not error and not self._table.is_current(transaction):
            error = ErrorCode.NOT_COORDINATOR
        elif not error and (transaction.is_changing or transaction.durable is not seen):
            error = ErrorCode.CONCURRENT_TRANSACTIONS
        if error:
            self._answer(reply, InitResult(error))
        else:
            self._decide(transaction, self._decision(transaction, committed, True, next_id), reply)

    def _decision(self, transaction: Transaction, committed: bool, bumps: bool, next_id: int) -> Snapshot:
        now, now_ms = transaction.durable, self._around.clock.now_ms()
        decided = replace(
            now,
            state=TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT,
            started_ms=now.started_ms if now.state is TransactionState.ONGOING else now_ms,
            updated_ms=now_ms,
            version=FIRST_BUMPING_VERSION if bumps else 0,
        )
        if not bumps:
            return decided
        return replace(
            decided,
            producer_epoch=now.producer_epoch + 1,
            last_epoch=now.producer_epoch,
            next_producer_id=next_id,
        )

    # By the coordinator

    def fence(self, transaction: Transaction, reply: ErrorReply, *, version: int = 0) -> None:
        """Aborts an open transaction whose producer is gone or given up (E2); `reply` at the decision.

        With the `version` of its client the producer may go on, if that is 2.
        """
        now = transaction.durable
        assert now.state is TransactionState.ONGOING, transaction
        assert now.producer_epoch < EPOCH_MAX, transaction
        aborted = replace(
            now,
            state=TransactionState.PREPARE_ABORT,
            producer_epoch=now.producer_epoch + 1,
            last_epoch=NO_EPOCH,
            updated_ms=self._around.clock.now_ms(),
            version=version,
        )
        self._decide(transaction, aborted, lambda result: reply(result.error))

    def abort_timed_out(self) -> None:
        """Aborts every transaction that has been open for longer than its producer allowed."""
        now_ms = self._around.clock.now_ms()
        for transaction in self._table:
            durable = transaction.durable
            if (
                durable.state is TransactionState.ONGOING
                and not transaction.is_changing
                and durable.started_ms + durable.timeout_ms < now_ms
            ):
                LOG.info("%s ran out of its %d ms and is aborted", transaction, durable.timeout_ms)
                # The highest epoch is for fencing alone: nobody goes on with it.
                version = 0 if is_exhausted(durable.producer_epoch) else durable.version
                self.fence(transaction, partial(_log_failure, transaction), version=version)

    # Both

    def _decide(self, transaction: Transaction, decision: Snapshot, reply: ProducerReply) -> None:
        self._around.reach(FaultPoint.DECIDING)
        self._writes.change(transaction, decision, partial(self._decided, transaction, decision, reply))

    def _decided(
        self, transaction: Transaction, decision: Snapshot, reply: ProducerReply, error: ErrorCode
    ) -> None:
        if error:
            self._answer(reply, InitResult(error))
            return
        after = decision.completed(decision.updated_ms)
        # The answer first: the producer need not wait for the markers.
        self._answer(reply, InitResult(ErrorCode.NONE, after.producer_id, after.producer_epoch))
        self._around.reach(FaultPoint.DECIDED)
        if transaction.durable is decision and not transaction.is_changing:
            self._completion.start(transaction)

    def _answer(self, reply: ProducerReply, result: InitResult) -> None:
        self._around.outbox.post(reply, result)
        self._around.outbox.flush()


def _is_repeated(now: Snapshot, producer: Producer) -> bool:
    """Whether this decision was made already, and its producer has not heard of the new epoch (KIP-890)."""
    if now.version < FIRST_BUMPING_VERSION:
        return False
    if now.producer_id == producer.producer_id:
        return now.producer_epoch == producer.producer_epoch + 1
    return (
        now.previous_producer_id == producer.producer_id
        and producer.producer_epoch == EPOCH_MAX - 1
        and now.producer_epoch == 0
    )


def _producer_error(now: Snapshot, producer: Producer, *, bumps: bool, repeated: bool) -> ErrorCode:
    if now.producer_id != producer.producer_id and not repeated:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    is_current = producer.producer_epoch == now.producer_epoch
    if bumps and now.state.is_decided:
        is_current = False  # the epoch that was told is not in use before the end is complete
    return (
        ErrorCode.NONE
        if is_current or (repeated and now.state is not TransactionState.ONGOING)
        else ErrorCode.PRODUCER_FENCED
    )


def _is_empty_abort(now: Snapshot, committed: bool, bumps: bool, repeated: bool) -> bool:
    """Whether a producer of version 2 aborts what it never began, to have its epoch raised."""
    return bumps and not repeated and not committed and now.state.is_idle


def _repeated_result(state: TransactionState, committed: bool, is_new: bool) -> ErrorCode:
    """What the same call gets that came before, or one that says the opposite."""
    agreed = {
        (TransactionState.COMPLETE_COMMIT, True): ErrorCode.NONE,
        (TransactionState.COMPLETE_ABORT, False): ErrorCode.NONE,
        (TransactionState.PREPARE_COMMIT, True): ErrorCode.CONCURRENT_TRANSACTIONS,
        (TransactionState.PREPARE_ABORT, False): ErrorCode.CONCURRENT_TRANSACTIONS,
    }
    return (
        ErrorCode.INVALID_TXN_STATE if is_new else agreed.get((state, committed), ErrorCode.INVALID_TXN_STATE)
    )


def _log_failure(transaction: Transaction, error: ErrorCode) -> None:
    if error:
        LOG.warning("%s could not be aborted now: %s", transaction, error.name)
