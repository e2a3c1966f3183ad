"""Sequence numbers: what makes a repeated batch harmless and keeps the order of a partition.

A broker writes a batch of (producer id, epoch) only if its first sequence follows the last one it has, and
answers a repeat with the offset of the first time.  So the client must never use a number twice for different
records, and never leave a gap unless it starts a new epoch, whose numbers begin at 0.  The rules are those of
Java's TransactionManager for a producer without transactions:

S1  numbers are given when a batch is first drained, in the order of the partition's batches
S2  a batch that is sent again goes alone: only the first unanswered batch of a partition may be repeated, and
    no new one follows while one is, so that the five batches a broker remembers cover all unanswered ones
S3  a batch given up without knowing whether it was written leaves its partition unresolved: no new batch
    until the earlier ones are answered; if a gap remains, the epoch rises
S4  after a refusal that leaves a gap the epoch rises at once, and the unanswered batches of that partition
    are numbered anew from 0; other partitions move to the new epoch once nothing of theirs is unanswered
S5  the first batch of a partition under a new name goes alone: a broker that does not know the name takes
    any number for the first, and would write a later batch although an earlier one was refused.  In
    transactions V2 brokers take none but 0 for the first (KIP-890), so there it need not (`first_is_checked`)
S6  what lies before an acknowledged number of the same epoch is written, if it may have been at all,
    whatever the broker says later

Decides only: no clock, no network.  One caller: the event loop.
"""

import logging
from typing import Final

from barnabas.client.producer_batch import NO_ID, Identity, ProducerBatch
from barnabas.protocol.codes import ErrorCode

__all__ = ["Sequences"]

_log: Final = logging.getLogger("barnabas.client.producer")
_MASK: Final = 2**31 - 1  # behind the highest number comes 0
_EPOCH_MAX: Final = 2**15 - 1
_NONE: Final = -1


class _Partition:
    """The numbers of one partition."""

    __slots__ = ("acked", "acked_offset", "identity", "next", "unanswered", "unresolved")

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.next = 0
        self.acked = _NONE
        self.acked_offset = _NONE
        self.unanswered: list[ProducerBatch] = []  # with a number and not done, in order
        self.unresolved: int | None = None  # the number behind the batch that was given up

    def restart(self, identity: Identity) -> None:
        """Numbers everything unanswered from 0 under a new name."""
        self.identity = identity
        self.next = 0
        self.acked = _NONE
        self.unresolved = None
        for batch in self.unanswered:
            batch.set_sequence(identity, self.next)
            batch.was_reset = True
            self.next = self.next + batch.count & _MASK

    def follows_acked(self, sequence: int) -> bool:
        return sequence == (self.acked + 1 & _MASK if self.acked != _NONE else 0)


class Sequences:
    """All numbers of one producer."""

    def __init__(self) -> None:
        self.identity = NO_ID
        self.first_is_checked = False
        self._partitions: dict[tuple[str, int], _Partition] = {}
        self._restarting: set[tuple[str, int]] = set()
        self._unresolved: set[tuple[str, int]] = set()

    @property
    def has_id(self) -> bool:
        return self.identity != NO_ID

    @property
    def unanswered(self) -> int:
        return sum(len(partition.unanswered) for partition in self._partitions.values())

    def adopt(self, identity: Identity) -> None:
        """Takes the id that a broker gave."""
        assert not self.has_id, "an id is asked for when there is none"
        self.identity = identity
        self._restart()

    def renew(self, identity: Identity) -> None:
        """Counts from 0 in every partition, under the id and epoch that a transaction coordinator gave."""
        assert self.unanswered == 0, "an epoch is asked for when everything is answered"
        self.identity = identity
        self._partitions.clear()
        self._restarting.clear()
        self._unresolved.clear()

    def may_send(self, batch: ProducerBatch) -> bool:
        """Whether a batch, the first of its partition's queue, may be sent now (S2, S3, S4)."""
        if not self.has_id:
            return False
        partition = self._partitions.get((batch.topic, batch.partition))
        if partition is None:
            return True
        if not batch.has_sequence:
            is_behind = partition.identity != self.identity and bool(partition.unanswered)
            is_repeating = any(each.attempts for each in partition.unanswered)
            is_first_under_way = (
                partition.acked == _NONE and bool(partition.unanswered) and not self.first_is_checked
            )
            return not (is_behind or is_repeating or is_first_under_way or partition.unresolved is not None)
        return partition.unanswered[0] is batch

    def assign(self, batch: ProducerBatch) -> None:
        """Gives a batch its number when it is sent for the first time (S1)."""
        if batch.has_sequence:
            return
        partition = self._of(batch)
        if partition.identity != self.identity:
            assert not partition.unanswered, "S4: an epoch starts when the last one is answered"
            partition.restart(self.identity)
        batch.set_sequence(self.identity, partition.next)
        partition.next = partition.next + batch.count & _MASK
        partition.unanswered.append(batch)

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """A batch was split; the parts have its numbers."""
        if not batch.has_sequence:
            return
        unanswered = self._of(batch).unanswered
        place = unanswered.index(batch)
        unanswered[place : place + 1] = parts

    def acknowledge(self, batch: ProducerBatch, last_offset: int) -> None:
        """The batch is written."""
        partition = self._of(batch)
        _discard(partition.unanswered, batch)
        last = batch.sequence + batch.count - 1 & _MASK
        if batch.identity == partition.identity and not _is_up_to(last, partition.acked):
            partition.acked = last
        partition.acked_offset = max(partition.acked_offset, last_offset)

    def is_written(self, batch: ProducerBatch) -> bool:
        """Whether a later batch was acknowledged under the same name (S6)."""
        partition = self._of(batch)
        last = batch.sequence + batch.count - 1 & _MASK
        return (
            batch.may_be_written
            and batch.identity == partition.identity
            and not batch.was_reset
            and _is_up_to(last, partition.acked)
        )

    def sees_gap(self, batch: ProducerBatch) -> bool:
        """Whether OUT_OF_ORDER_SEQUENCE_NUMBER for this batch is about the batch itself.

        Behind a batch that was refused it is not: it only has to wait for that one.
        """
        partition = self._of(batch)
        if partition.unresolved is None:
            return not batch.was_reset and partition.follows_acked(batch.sequence)
        return partition.unresolved == batch.sequence

    def may_retry(self, batch: ProducerBatch, code: ErrorCode, log_start_offset: int) -> bool:
        """Whether a refused batch can be sent again; asks for a new epoch where the numbers have a gap."""
        if code is ErrorCode.UNKNOWN_PRODUCER_ID:
            # The broker forgot us.  Without a log start we cannot know why and ask again; a batch that was
            # numbered anew meanwhile is right already.
            if log_start_offset != _NONE and not batch.was_reset:
                self._want_restart(batch)
            return True
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            if self.sees_gap(batch):
                self._want_restart(batch)
            return True
        if code is ErrorCode.INVALID_PRODUCER_EPOCH and batch.was_reset:
            return True  # sent under the epoch that we left ourselves
        return code.retriable

    def give_up(self, batch: ProducerBatch, *, may_be_written: bool) -> None:
        """The batch failed for good (S3, S4)."""
        if not batch.has_sequence:
            return
        partition = self._of(batch)
        if not _discard(partition.unanswered, batch):
            return
        if batch.identity != partition.identity:
            return
        if may_be_written:
            partition.unresolved = batch.sequence + batch.count & _MASK
            self._unresolved.add((batch.topic, batch.partition))
        else:
            self._want_restart(batch)

    def settle(self) -> bool:
        """Draws the conclusions; true when a new id must be asked for before anything is sent."""
        for key in list(self._unresolved):
            partition = self._partitions[key]
            if partition.unresolved is None:  # it restarted
                self._unresolved.discard(key)
            elif not partition.unanswered:
                if not partition.follows_acked(partition.next):
                    self._restarting.add(key)
                partition.unresolved = None
                self._unresolved.discard(key)
        if self._restarting and self.has_id:
            if any(self._partitions[key].identity == self.identity for key in self._restarting):
                self._raise_epoch()
            else:  # the epoch rose since for another partition; these have not used the new one
                self._restart()
        return not self.has_id

    def _raise_epoch(self) -> None:
        producer_id, epoch = self.identity
        if epoch == _EPOCH_MAX:
            self.identity = NO_ID  # used up; the partitions restart under the next id
            return
        self.identity = Identity(producer_id, epoch + 1)
        _log.debug("producer %d goes to epoch %d for %s", producer_id, epoch + 1, sorted(self._restarting))
        self._restart()

    def _restart(self) -> None:
        for key in self._restarting:
            self._partitions[key].restart(self.identity)
        self._restarting.clear()

    def _want_restart(self, batch: ProducerBatch) -> None:
        key = batch.topic, batch.partition
        if batch.identity == self._partitions[key].identity:
            self._restarting.add(key)

    def _of(self, batch: ProducerBatch) -> _Partition:
        key = batch.topic, batch.partition
        partition = self._partitions.get(key)
        if partition is None:
            partition = self._partitions[key] = _Partition(self.identity)
        return partition


def _is_up_to(sequence: int, acked: int) -> bool:
    """Whether a number is not above an acknowledged one, half of all numbers being behind it."""
    return acked != _NONE and (acked - sequence & _MASK) <= _MASK // 2


def _discard(batches: list[ProducerBatch], batch: ProducerBatch) -> bool:
    if batch not in batches:
        return False
    batches.remove(batch)
    return True
