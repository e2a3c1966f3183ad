"""One transactional id: its producer, the state of its transaction, and which state may follow which.

X1  What counts is what the log holds: `durable` is replaced only by `settle`, after the append.
X2  At most one change is on its way (`pending`); until it settles or is dropped, nothing else begins.
X3  The epoch of a producer id only rises; a new producer id begins again.
X4  An open transaction (Ongoing, Prepare*) has a start time; a finished or empty one has no partitions.

The states and their numbers are Kafka's.  Dead and PrepareEpochFence are never stored: a dead id is a
tombstone, and fencing goes straight to PrepareAbort with the raised epoch.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from barnabas.base.types import TopicPartition

__all__ = [
    "EPOCH_MAX",
    "NEXT_STATES",
    "NO_EPOCH",
    "NO_PRODUCER",
    "STATE_NAMES",
    "Snapshot",
    "Transaction",
    "TransactionState",
    "is_exhausted",
]

NO_PRODUCER: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
EPOCH_MAX: Final = 2**15 - 1


class TransactionState(IntEnum):
    """The numbers are those of the stored records."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def text(self) -> str:
        """Kafka's name of the state, as DescribeTransactions shows it."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def is_decided(self) -> bool:
        """Whether markers are still to be written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open, so that the id may expire and its producer may begin anew."""
        return self in _IDLE


_IDLE: Final = (
    TransactionState.EMPTY,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
)
STATE_NAMES: Final = {state.text: state for state in TransactionState}

_FROM_IDLE: Final = frozenset(
    {TransactionState.EMPTY, TransactionState.ONGOING, TransactionState.PREPARE_ABORT, TransactionState.DEAD}
)
NEXT_STATES: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    TransactionState.EMPTY: _FROM_IDLE,
    TransactionState.COMPLETE_COMMIT: _FROM_IDLE,
    TransactionState.COMPLETE_ABORT: _FROM_IDLE,
    TransactionState.ONGOING: frozenset(
        {TransactionState.ONGOING, TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT}
    ),
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.COMPLETE_COMMIT}),
    TransactionState.PREPARE_ABORT: frozenset({TransactionState.COMPLETE_ABORT}),
    TransactionState.DEAD: frozenset(),
    TransactionState.PREPARE_EPOCH_FENCE: frozenset(),
}


def is_exhausted(epoch: int) -> bool:
    """Whether no producer may get a higher epoch; the highest is kept for fencing the last one."""
    return epoch >= EPOCH_MAX - 1


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything a record of `__transaction_state` says of a transactional id."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NO_TIME
    updated_ms: int = NO_TIME
    last_epoch: int = NO_EPOCH
    """The epoch before a rise that its producer asked for, so that it may ask again (KIP-360)."""
    previous_producer_id: int = NO_PRODUCER
    next_producer_id: int = NO_PRODUCER
    """Takes over when the transaction is complete, because the epochs of this one are used up (KIP-890)."""
    version: int = 0
    """transaction.version of the client whose transaction it is, or was; from 2 on every end raises the
    epoch, and the producer is told."""

    def check(self) -> None:
        assert self.producer_id >= 0, f"X3: {self}"
        assert 0 <= self.producer_epoch <= EPOCH_MAX, f"X3: {self}"
        if self.state.is_idle:
            assert not self.partitions, f"X4: {self}"
        else:
            assert self.started_ms >= 0, f"X4: {self}"

    def completed(self, now_ms: int) -> "Snapshot":
        """What follows when all markers are written."""
        assert self.state.is_decided, self
        commit = self.state is TransactionState.PREPARE_COMMIT
        done = replace(
            self,
            state=TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT,
            partitions=frozenset(),
            updated_ms=now_ms,
        )
        if self.next_producer_id == NO_PRODUCER:
            return done
        return replace(
            done,
            producer_id=self.next_producer_id,
            producer_epoch=0,
            last_epoch=self.producer_epoch,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER,
        )


class Transaction:
    """One transactional id that this broker coordinates."""

    __slots__ = ("durable", "partition", "pending", "transactional_id")

    def __init__(self, transactional_id: str, partition: int, durable: Snapshot) -> None:
        self.transactional_id = transactional_id
        self.partition = partition
        """The partition of `__transaction_state` that keeps it."""
        self.durable = durable
        self.pending: Snapshot | None = None

    @property
    def state(self) -> TransactionState:
        return self.durable.state

    @property
    def is_changing(self) -> bool:
        return self.pending is not None

    def begin(self, pending: Snapshot) -> None:
        """A change is on its way to the log."""
        assert self.pending is None, f"X2: {self} is changing to {self.pending}"
        assert pending.state in NEXT_STATES[self.state], f"{self} -> {pending.state.text}"
        if pending.producer_id == self.durable.producer_id:
            assert pending.producer_epoch >= self.durable.producer_epoch, f"X3: {self} -> {pending}"
        self.pending = pending

    def settle(self) -> None:
        """The log holds the change (X1)."""
        assert self.pending is not None, f"X2: {self}"
        self.pending.check()
        self.durable = self.pending
        self.pending = None

    def drop(self) -> None:
        """The log did not take the change."""
        self.pending = None

    def __repr__(self) -> str:
        now = self.durable
        return (
            f"Transaction({self.transactional_id!r}, {now.state.text}, producer {now.producer_id} "
            f"epoch {now.producer_epoch}, {len(now.partitions)} partitions)"
        )
