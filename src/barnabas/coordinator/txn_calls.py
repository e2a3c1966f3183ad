"""What goes into the transaction coordinator and comes out of it, free of wire versions."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.base.types import TopicPartition
from barnabas.coordinator.txn_state import NO_EPOCH, NO_PRODUCER, TransactionState
from barnabas.protocol.codes import ErrorCode

__all__ = [
    "ErrorReply",
    "InitResult",
    "ProducerReply",
    "TransactionDescription",
    "TransactionFilter",
    "TransactionList",
    "TransactionListing",
]


class InitResult(NamedTuple):
    """A producer's id and epoch, or why it gets none."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_EPOCH


ProducerReply = Callable[[InitResult], None]
ErrorReply = Callable[[ErrorCode], None]


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """One transactional id as DescribeTransactions shows it."""

    error: ErrorCode
    transactional_id: str
    state: str = ""
    timeout_ms: int = 0
    started_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """What ListTransactions asks for; empty means everything."""

    states: frozenset[str] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    longer_than_ms: int = -1
    matches: Callable[[str], bool] | None = None


class TransactionListing(NamedTuple):
    transactional_id: str
    producer_id: int
    state: TransactionState


@dataclass(frozen=True, slots=True)
class TransactionList:
    error: ErrorCode
    unknown_states: list[str] = field(default_factory=list)
    transactions: list[TransactionListing] = field(default_factory=list)
