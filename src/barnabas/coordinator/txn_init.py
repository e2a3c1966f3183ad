"""InitProducerId for transactional ids: a producer gets its id and the next epoch, older ones are fenced.

I1  no two producers ever get the same id and epoch, except one that repeats its call (KIP-360)
I2  an epoch is given only after it is durable
I3  an open transaction is aborted first, in an epoch that nobody gets; the producer asks again
"""

from dataclasses import replace
from functools import partial

from barnabas.coordinator.ports import Producer
from barnabas.coordinator.txn_calls import InitResult, ProducerReply
from barnabas.coordinator.txn_ending import Ending
from barnabas.coordinator.txn_ports import TransactionSurroundings
from barnabas.coordinator.txn_state import (
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

__all__ = ["Initialization"]


class Initialization:
    """Gives producers their ids and epochs."""

    __slots__ = ("_around", "_ending", "_table", "_writes")

    def __init__(
        self,
        around: TransactionSurroundings,
        table: TransactionTable,
        writes: TransactionWrites,
        ending: Ending,
    ) -> None:
        self._around = around
        self._table = table
        self._writes = writes
        self._ending = ending

    def init(
        self, transactional_id: str, timeout_ms: int, expected: Producer | None, reply: ProducerReply
    ) -> None:
        """`expected` is what the producer has so far, when it wants to go on after an error."""
        found = self._table.find(transactional_id)
        if isinstance(found, ErrorCode):
            self._answer(reply, InitResult(found))
        elif found is None:
            made = partial(self._create, transactional_id, timeout_ms, expected, reply)
            self._around.producer_ids.next_id(made)
        else:
            self._init(found, timeout_ms, expected, reply)

    def _create(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Producer | None,
        reply: ProducerReply,
        error: ErrorCode,
        producer_id: int,
    ) -> None:
        found = error or self._table.find(transactional_id)
        if isinstance(found, ErrorCode):
            self._answer(reply, InitResult(found))
            return
        if found is None:
            blank = Snapshot(producer_id, NO_EPOCH, timeout_ms)
            found = Transaction(transactional_id, self._table.partition_for(transactional_id), blank)
            self._table.add(found)
        self._init(found, timeout_ms, expected, reply)

    def _init(
        self, transaction: Transaction, timeout_ms: int, expected: Producer | None, reply: ProducerReply
    ) -> None:
        now = transaction.durable
        if transaction.is_changing or now.state.is_decided:
            self._answer(reply, InitResult(ErrorCode.CONCURRENT_TRANSACTIONS))
        elif expected is not None and not _may_go_on(now, expected):
            self._answer(reply, InitResult(ErrorCode.PRODUCER_FENCED))
        elif now.state is TransactionState.ONGOING:
            if expected is not None and expected.producer_epoch != now.producer_epoch:
                self._answer(reply, InitResult(ErrorCode.PRODUCER_FENCED))  # late: the answer was heard
            else:
                self._ending.fence(transaction, partial(self._fenced, reply))
        elif expected is not None and _is_repeated(now, expected):
            again = replace(
                now,
                state=TransactionState.EMPTY,
                timeout_ms=timeout_ms,
                started_ms=-1,
                updated_ms=self._around.clock.now_ms(),
            )
            self._give(transaction, again, reply)
        elif is_exhausted(now.producer_epoch):
            follow_up = partial(self._rotate, transaction, now, timeout_ms, expected is not None, reply)
            self._around.producer_ids.next_id(follow_up)
        else:
            self._give(transaction, self._next_epoch(now, timeout_ms, expected), reply)

    def _fenced(self, reply: ProducerReply, error: ErrorCode) -> None:
        self._answer(reply, InitResult(error or ErrorCode.CONCURRENT_TRANSACTIONS))

    def _next_epoch(self, now: Snapshot, timeout_ms: int, expected: Producer | None) -> Snapshot:
        return Snapshot(
            producer_id=now.producer_id,
            producer_epoch=now.producer_epoch + 1,
            timeout_ms=timeout_ms,
            updated_ms=self._around.clock.now_ms(),
            # A producer that says nothing of itself is a new instance: none before it may repeat its call.
            last_epoch=NO_EPOCH if expected is None else now.producer_epoch,
            previous_producer_id=NO_PRODUCER if expected is None else now.previous_producer_id,
        )

    def _rotate(
        self,
        transaction: Transaction,
        seen: Snapshot,
        timeout_ms: int,
        may_repeat: bool,
        reply: ProducerReply,
        error: ErrorCode,
        producer_id: int,
    ) -> None:
        """The epochs of the producer id are used up: another id takes its place."""
        if not error and not self._table.is_current(transaction):
            error = ErrorCode.NOT_COORDINATOR
        elif not error and (transaction.is_changing or transaction.durable is not seen):
            error = ErrorCode.CONCURRENT_TRANSACTIONS
        if error:
            self._answer(reply, InitResult(error))
            return
        fresh = Snapshot(
            producer_id=producer_id,
            producer_epoch=0,
            timeout_ms=timeout_ms,
            updated_ms=self._around.clock.now_ms(),
            last_epoch=seen.producer_epoch if may_repeat else NO_EPOCH,
            previous_producer_id=seen.producer_id,
        )
        self._give(transaction, fresh, reply)

    def _give(self, transaction: Transaction, snapshot: Snapshot, reply: ProducerReply) -> None:
        done = partial(self._given, transaction, snapshot, reply)
        self._writes.change(transaction, snapshot, done)

    def _given(
        self, transaction: Transaction, snapshot: Snapshot, reply: ProducerReply, error: ErrorCode
    ) -> None:
        if not error:
            self._answer(reply, InitResult(error, snapshot.producer_id, snapshot.producer_epoch))
            return
        if transaction.durable.producer_epoch == NO_EPOCH:
            self._table.remove(transaction)  # nothing of it is in the log
        self._answer(reply, InitResult(error))

    def _answer(self, reply: ProducerReply, result: InitResult) -> None:
        self._around.outbox.post(reply, result)
        self._around.outbox.flush()


def _may_go_on(now: Snapshot, expected: Producer) -> bool:
    """Whether the producer is the current one, or repeats the call that made the current one."""
    if now.producer_epoch == NO_EPOCH:
        return True  # the id was forgotten meanwhile; there is nobody to fence
    if expected.producer_id == now.producer_id:
        return expected.producer_epoch == now.producer_epoch or _is_repeated(now, expected)
    return _is_repeated(now, expected)


def _is_repeated(now: Snapshot, expected: Producer) -> bool:
    """Whether the epoch was raised for this producer, which did not hear the answer."""
    if now.last_epoch == NO_EPOCH or expected.producer_epoch != now.last_epoch:
        return False
    if expected.producer_id == now.producer_id:
        return expected.producer_epoch != now.producer_epoch
    return expected.producer_id == now.previous_producer_id and is_exhausted(expected.producer_epoch)
