"""What the coordinator needs from outside, as small protocols; nothing here has behaviour.

Whoever implements them keeps these rules: no callback runs inside `call_after`; `append` may call
`done` before it returns; `done` is called exactly once, and in the order of the appends to a partition.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple, Protocol

from barnabas.base.clock import Clock
from barnabas.coordinator.config import GroupSettings
from barnabas.coordinator.outbox import Outbox
from barnabas.protocol.codes import ErrorCode

__all__ = ["KeyValue", "OffsetsLog", "Producer", "Surroundings", "TimerHandle", "Timers", "Topics"]


class TimerHandle(Protocol):
    """One call to come."""

    def cancel(self) -> None:
        """The callback will not run; nothing happens if it ran."""


class Timers(Protocol):
    """Calls back later, on the caller's thread."""

    def call_after(self, ms: int, callback: Callable[[], None]) -> TimerHandle: ...


class Topics(Protocol):
    """Which partitions exist in the cluster."""

    def has_partition(self, topic: str, partition: int) -> bool: ...


class KeyValue(NamedTuple):
    """A record to append; no value means a tombstone."""

    key: bytes
    value: bytes | None


class Producer(NamedTuple):
    """Who writes a transactional batch."""

    producer_id: int
    producer_epoch: int


class OffsetsLog(Protocol):
    """The partitions of `__consumer_offsets`."""

    def append(
        self,
        partition: int,
        records: Sequence[KeyValue],
        done: Callable[[ErrorCode], None],
        producer: Producer | None = None,
    ) -> None:
        """Appends one batch, transactional if `producer` is given, and calls `done` when it is
        replicated (NONE) or was refused (the code that a produce with acks=all would get)."""


@dataclass(slots=True)
class Surroundings:
    """Everything from outside in one place, shared by all parts of the coordinator.

    `settings` may be replaced while the coordinator runs; the next decision reads the new ones.
    `new_id` gives text that was never given before (Kafka: a random UUID).
    """

    clock: Clock
    timers: Timers
    log: OffsetsLog
    topics: Topics
    new_id: Callable[[], str]
    settings: GroupSettings
    outbox: Outbox = field(default_factory=Outbox)
    sequence: Iterator[int] = field(default_factory=lambda: count(1))
