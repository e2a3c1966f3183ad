"""The committed offsets of one group.

O1  of two commits for a partition the one later in the log holds, whichever became durable first
O2  an offset is seen by others only after the log made it durable
O3  an offset of an open transaction is not seen until its commit marker; an abort forgets it
Every write gets a number at its append (`sequence`).  The numbers rise in log order, which is what O1
compares: a transaction's offset may be written before a plain one and committed after it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.base.types import TopicPartition

__all__ = ["CommittedOffset", "GroupOffsets"]

NO_TIMESTAMP = -1


class CommittedOffset(NamedTuple):
    """One commit of one partition."""

    offset: int
    leader_epoch: int  # -1: the client did not say
    metadata: str
    commit_ms: int
    expire_ms: int  # -1: by the retention of the broker
    sequence: int


class GroupOffsets:
    """What a group committed, what is being written, and what waits for a transaction to end."""

    __slots__ = ("_committed", "_pending", "_writing")

    def __init__(self) -> None:
        self._committed: dict[TopicPartition, CommittedOffset] = {}
        self._pending: dict[int, dict[TopicPartition, CommittedOffset]] = {}  # by producer id
        self._writing: dict[TopicPartition, int] = {}  # how many writes are under way

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held, being written or pending."""
        return not (self._committed or self._writing or self._pending)

    @property
    def committed(self) -> dict[TopicPartition, CommittedOffset]:
        """The visible offsets; read only."""
        return self._committed

    def get(self, partition: TopicPartition) -> CommittedOffset | None:
        return self._committed.get(partition)

    def partitions(self) -> set[TopicPartition]:
        """Every partition of which anything is held, being written or pending."""
        return self._committed.keys() | self._writing.keys() | set().union(*self._pending.values())

    def is_unstable(self, partition: TopicPartition) -> bool:
        """Whether an offset may appear without another commit: a write or a transaction is open."""
        return partition in self._writing or any(partition in held for held in self._pending.values())

    # Writing

    def begin_write(self, partitions: Iterable[TopicPartition]) -> None:
        writing = self._writing
        for partition in partitions:
            writing[partition] = writing.get(partition, 0) + 1

    def end_write(self, partitions: Iterable[TopicPartition]) -> None:
        """The write ended well or not; what was written is told by `commit` or `hold`."""
        writing = self._writing
        for partition in partitions:
            left = writing[partition] - 1
            if left:
                writing[partition] = left
            else:
                del writing[partition]

    def commit(self, partition: TopicPartition, committed: CommittedOffset) -> None:
        """Makes a durable offset visible unless a later one is (O1)."""
        current = self._committed.get(partition)
        if current is None or current.sequence < committed.sequence:
            self._committed[partition] = committed

    def remove(self, partitions: Iterable[TopicPartition], before: int) -> int:
        """Forgets what was written before the tombstone `before`; says how many were visible."""
        removed = 0
        for partition in partitions:
            for held in self._pending.values():
                if partition in held and held[partition].sequence < before:
                    del held[partition]
            current = self._committed.get(partition)
            if current is not None and current.sequence < before:
                del self._committed[partition]
                removed += 1
        if self._pending:
            self._pending = {producer_id: held for producer_id, held in self._pending.items() if held}
        return removed

    # Transactions

    def hold(self, producer_id: int, partition: TopicPartition, pending: CommittedOffset) -> None:
        """Keeps a durable offset back until the producer's transaction ends."""
        self._pending.setdefault(producer_id, {})[partition] = pending

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """The marker of the producer's transaction is durable; does nothing if no offset was held."""
        held = self._pending.pop(producer_id, {})
        if committed:
            for partition, pending in held.items():
                self.commit(partition, pending)

    @property
    def producers(self) -> Iterable[int]:
        """Producers whose open transactions hold offsets of this group."""
        return self._pending.keys()

    @property
    def pending(self) -> dict[int, dict[TopicPartition, CommittedOffset]]:
        """The held offsets by producer id; read only."""
        return self._pending
