"""What a partition remembers of its idempotent and transactional producers (KIP-98).

P1  Per producer id: the epoch, the last five data batches of that epoch, the coordinator epoch of the last
    marker, and where its open transaction began.
P2  A batch from a client is taken when its epoch is not older, and its first sequence follows the last
    one (2**31 - 1 is followed by 0), or is 0 in a new epoch, or the producer is not known at all.
P3  `end_offset` is the offset behind the last batch that this state has seen.
P4  Open transactions are ordered by first offset.  A finished one stays in `_unreplicated` until the high
    watermark has passed its marker, because a marker that is not replicated may still be lost.

`check` decides and changes nothing; `apply` changes and decides nothing, so the caller can write in
between and a failed write leaves no trace.  Snapshots: `producer_snapshot`.  Knows no files and no clock.
One caller at a time.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Final, NamedTuple

from barnabas.log.errors import (
    CoordinatorFenced,
    InvalidProducerEpoch,
    InvalidTransactionState,
    OutOfOrderSequence,
)
from barnabas.records.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, RecordBatch
from barnabas.records.builder import EndTxnMarker, read_end_txn_marker

__all__ = [
    "CompletedTransaction",
    "Origin",
    "ProducerEntry",
    "ProducerStates",
    "SeenBatch",
    "read_marker",
]

BATCHES_KEPT: Final = 5
_SEQUENCE_MAX: Final = 2**31 - 1
_NO_EPOCH: Final = -1


class Origin(Enum):
    """Who appends, and so what is checked."""

    CLIENT = "client"
    COORDINATOR = "coordinator"  # markers, group and transaction state: no sequences
    REPLICATION = "replication"  # the leader has decided: nothing is refused


class SeenBatch(NamedTuple):
    """A batch that a producer wrote."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & _SEQUENCE_MAX

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry:
    """One producer id's state; `batches` are the newest of its epoch, oldest first."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "transaction_first_offset",
    )

    def __init__(
        self,
        producer_id: int,
        epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = _NO_EPOCH,
        last_timestamp: int = NO_TIMESTAMP,
        transaction_first_offset: int = -1,
        batches: Iterable[SeenBatch] = (),
    ) -> None:
        self.producer_id: Final = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.transaction_first_offset = transaction_first_offset
        self.batches = list(batches)

    def __repr__(self) -> str:
        return (
            f"ProducerEntry({self.producer_id}, epoch={self.epoch}, last_sequence={self.last_sequence}, "
            f"transaction_first_offset={self.transaction_first_offset})"
        )

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1


class CompletedTransaction(NamedTuple):
    """A transaction that a marker ended, with the last stable offset that the abort index wants."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
    last_stable_offset: int


def read_marker(batch: RecordBatch) -> EndTxnMarker | None:
    """The marker in a control batch; None when compaction emptied it or it is of another kind.

    Raises InvalidRecord when it is malformed.
    """
    return read_end_txn_marker(batch) if batch.record_count else None


class ProducerStates:
    """All producers of one partition."""

    __slots__ = ("_ongoing", "_unreplicated", "end_offset", "producers")

    def __init__(self, end_offset: int = 0) -> None:
        self.end_offset = end_offset
        self.producers: dict[int, ProducerEntry] = {}
        self._ongoing: dict[int, int] = {}  # first offset -> producer id; insertion order is offset order
        self._unreplicated: dict[int, int] = {}  # first offset -> marker offset

    # -- checks --------------------------------------------------------------------------------

    def check(self, batch: RecordBatch, origin: Origin) -> SeenBatch | None:
        """Raise unless `batch`, which has a producer id, may be appended (P2).

        Returns the earlier batch when a client sent one again that is remembered: it is not to be
        appended, and the answer is where it went the first time.
        """
        entry = self.producers.get(batch.producer_id)
        if origin is Origin.CLIENT and entry is not None and entry.epoch == batch.producer_epoch:
            first, last = batch.base_sequence, batch.last_sequence
            for seen in entry.batches:
                if seen.last_sequence == last and seen.first_sequence == first:
                    return seen
        if entry is None:
            return None
        if batch.producer_epoch < entry.epoch:
            raise InvalidProducerEpoch(
                f"producer {batch.producer_id}: epoch {batch.producer_epoch} is older than {entry.epoch}"
            )
        if batch.is_control:
            self._check_marker(batch, entry)
            return None
        if origin is Origin.CLIENT:
            _check_sequence(batch, entry)
        if entry.transaction_first_offset >= 0 and not batch.is_transactional:
            raise InvalidTransactionState(
                f"producer {batch.producer_id} has had a transaction open since offset "
                f"{entry.transaction_first_offset}; the batch is outside of it"
            )
        return None

    def _check_marker(self, batch: RecordBatch, entry: ProducerEntry) -> None:
        marker = read_marker(batch)
        if marker is not None and marker.coordinator_epoch < entry.coordinator_epoch:
            raise CoordinatorFenced(
                f"producer {batch.producer_id}: coordinator epoch {marker.coordinator_epoch} "
                f"is older than {entry.coordinator_epoch}"
            )

    # -- changes -------------------------------------------------------------------------------

    def apply(self, batch: RecordBatch) -> CompletedTransaction | None:
        """Remember a batch that is in the log now; returns the transaction that it ended, if it did."""
        self.end_offset = batch.next_offset
        if batch.producer_id < 0:
            return None
        marker = read_marker(batch) if batch.is_control else None
        if batch.is_control and marker is None:
            return None  # compaction removed the marker: the whole transaction is gone
        entry = self.producers.get(batch.producer_id)
        if entry is None:
            entry = self.producers[batch.producer_id] = ProducerEntry(batch.producer_id)
        if entry.epoch != batch.producer_epoch:
            entry.epoch = batch.producer_epoch
            entry.batches.clear()
        if marker is not None:
            return self._end_transaction(entry, marker, batch)
        entry.last_timestamp = batch.max_timestamp
        if len(entry.batches) >= BATCHES_KEPT:
            del entry.batches[0]
        entry.batches.append(
            SeenBatch(batch.last_sequence, batch.last_offset, batch.last_offset_delta, batch.max_timestamp)
        )
        if batch.is_transactional and entry.transaction_first_offset < 0:
            entry.transaction_first_offset = batch.base_offset
            self._ongoing[batch.base_offset] = batch.producer_id
        return None

    def _end_transaction(
        self, entry: ProducerEntry, marker: EndTxnMarker, batch: RecordBatch
    ) -> CompletedTransaction | None:
        offset = batch.base_offset
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = batch.max_timestamp
        first_offset = entry.transaction_first_offset
        if first_offset < 0:
            return None  # it wrote nothing here
        entry.transaction_first_offset = -1
        del self._ongoing[first_offset]
        self._unreplicated[first_offset] = offset
        stable = next(iter(self._ongoing), offset + 1)
        return CompletedTransaction(entry.producer_id, first_offset, offset, not marker.committed, stable)

    def restore(self, entries: Iterable[ProducerEntry], end_offset: int) -> None:
        """Begin anew with the entries of a snapshot taken at `end_offset`."""
        self.end_offset = end_offset
        self.producers = {entry.producer_id: entry for entry in entries}
        open_now = [entry for entry in self.producers.values() if entry.transaction_first_offset >= 0]
        open_now.sort(key=lambda entry: entry.transaction_first_offset)
        self._ongoing = {entry.transaction_first_offset: entry.producer_id for entry in open_now}
        self._unreplicated = {}

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget the producers that were idle for `expiration_ms` and have nothing open; says how many."""
        idle = [
            entry.producer_id
            for entry in self.producers.values()
            if entry.transaction_first_offset < 0 and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in idle:
            del self.producers[producer_id]
        return len(idle)

    # -- stability -----------------------------------------------------------------------------

    @property
    def first_ongoing_offset(self) -> int | None:
        """Where the oldest open transaction began."""
        return next(iter(self._ongoing), None)

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest transaction began that is open, or whose marker may not be replicated yet."""
        if not self._unreplicated and not self._ongoing:
            return None
        offsets = [*self._unreplicated]
        if (ongoing := self.first_ongoing_offset) is not None:
            offsets.append(ongoing)
        return min(offsets, default=None)

    def replicated_to(self, high_watermark: int) -> None:
        """The high watermark moved: the transactions whose markers are below it are settled."""
        if self._unreplicated:
            self._unreplicated = {
                first: marker for first, marker in self._unreplicated.items() if marker >= high_watermark
            }

    def has_ongoing(self, producer_id: int) -> bool:
        """Whether the producer has a transaction open here."""
        entry = self.producers.get(producer_id)
        return entry is not None and entry.transaction_first_offset >= 0


def _check_sequence(batch: RecordBatch, entry: ProducerEntry) -> None:
    if batch.producer_epoch != entry.epoch:
        if batch.base_sequence != 0:
            raise OutOfOrderSequence(
                f"producer {batch.producer_id}: epoch {batch.producer_epoch} is new and must begin "
                f"with sequence 0, not {batch.base_sequence}"
            )
        return
    last = entry.last_sequence
    expected = 0 if last == _SEQUENCE_MAX else last + 1
    if batch.base_sequence != expected:
        raise OutOfOrderSequence(
            f"producer {batch.producer_id}: sequence {batch.base_sequence} instead of {expected}"
        )
