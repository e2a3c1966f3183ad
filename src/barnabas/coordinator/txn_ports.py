"""What the transaction coordinator needs from outside, as small protocols; nothing here has behaviour.

Whoever implements them keeps these rules: every `done` is called exactly once, maybe before the call returns;
appends to one partition end in the order they were made.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

from barnabas.base.clock import Clock
from barnabas.base.types import TopicPartition
from barnabas.coordinator.outbox import Outbox
from barnabas.coordinator.ports import KeyValue, Timers, Topics
from barnabas.coordinator.txn_config import TransactionSettings
from barnabas.protocol.codes import ErrorCode

__all__ = [
    "FaultPoint",
    "Marker",
    "MarkerWriter",
    "ProducerIdSource",
    "TransactionLog",
    "TransactionSurroundings",
]


class TransactionLog(Protocol):
    """The partitions of `__transaction_state`."""

    def append(self, partition: int, records: Sequence[KeyValue], done: Callable[[ErrorCode], None]) -> None:
        """Appends one batch and calls `done` when it is replicated (NONE) or was refused (the code that a
        produce with acks=all would get)."""


class Marker(NamedTuple):
    """The end of a producer's transaction, as it is written to each of its partitions."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int


class MarkerWriter(Protocol):
    """Ends transactions in partitions, wherever these are led."""

    def write(
        self,
        marker: Marker,
        partitions: Collection[TopicPartition],
        done: Callable[[Mapping[TopicPartition, ErrorCode]], None],
    ) -> None:
        """Writes the marker to every partition; `done` gets a code for each, NONE once it is replicated."""


class ProducerIdSource(Protocol):
    """Producer ids that nobody had before."""

    def next_id(self, done: Callable[[ErrorCode, int], None]) -> None: ...


class FaultPoint(Enum):
    """Where a test may stop a transaction between its decision and its end."""

    DECIDING = "before the decision is appended"
    DECIDED = "the decision is durable, the producer has its answer"
    MARKED_ONE = "one more partition has its marker"
    MARKED_ALL = "all partitions have their markers"
    COMPLETED = "the completion is durable"


def _nothing(point: FaultPoint) -> None:
    """No fault: what everybody but a test wants."""


@dataclass(slots=True)
class TransactionSurroundings:
    """Everything from outside in one place, shared by all parts of the coordinator.

    `settings` may be replaced while the coordinator runs; the next decision reads the new ones.
    `version` gives the finalized level of the feature transaction.version.
    """

    clock: Clock
    timers: Timers
    log: TransactionLog
    topics: Topics
    markers: MarkerWriter
    producer_ids: ProducerIdSource
    settings: TransactionSettings
    version: Callable[[], int] = lambda: 0
    reach: Callable[[FaultPoint], None] = _nothing
    outbox: Outbox = field(default_factory=Outbox)
