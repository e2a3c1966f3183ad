"""A transaction coordinator with stand-ins around it (log, markers, ids, time), and short ways to call it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import count

from barnabas.base.clock import ManualClock
from barnabas.base.types import TopicPartition
from barnabas.coordinator.ports import Producer
from barnabas.coordinator.transactions import TransactionCoordinator
from barnabas.coordinator.txn_calls import InitResult
from barnabas.coordinator.txn_config import TRANSACTIONS, TransactionSettings
from barnabas.coordinator.txn_ports import FaultPoint, Marker, TransactionSurroundings
from barnabas.coordinator.txn_records import decode_key, decode_value
from barnabas.coordinator.txn_state import Snapshot, Transaction, TransactionState
from barnabas.protocol.codes import ErrorCode
from tests.coordinator._fakes import Answer, FakeLog, FakeTopics, ManualTimers

PARTITION_COUNT = 4
TIMEOUT_MS = 60_000
A, B, C = (TopicPartition("t", partition) for partition in range(3))

MarkersDone = Callable[[Mapping[TopicPartition, ErrorCode]], None]


@dataclass
class FakeMarkers:
    """Partitions that take markers: at once, when `release` says so if `holds`, or not if they fail."""

    holds: bool = False
    failing: dict[TopicPartition, ErrorCode] = field(default_factory=dict)
    written: list[tuple[Marker, TopicPartition]] = field(default_factory=list)
    held: list[tuple[Marker, Collection[TopicPartition], MarkersDone]] = field(default_factory=list)

    def write(self, marker: Marker, partitions: Collection[TopicPartition], done: MarkersDone) -> None:
        assert partitions, "there is something to mark"
        if self.holds:
            self.held.append((marker, partitions, done))
        else:
            self._end(marker, partitions, done)

    def release(self) -> None:
        while self.held:
            self._end(*self.held.pop(0))

    def _end(self, marker: Marker, partitions: Collection[TopicPartition], done: MarkersDone) -> None:
        errors = {partition: self.failing.get(partition, ErrorCode.NONE) for partition in partitions}
        self.written += [(marker, partition) for partition, error in errors.items() if not error]
        done(errors)

    def ends(self, partition: TopicPartition) -> list[tuple[int, int, bool]]:
        """(producer id, epoch, committed) of every marker in the partition."""
        return [
            (marker.producer_id, marker.producer_epoch, marker.committed)
            for marker, at in self.written
            if at == partition
        ]


@dataclass
class FakeIds:
    """Ids from 1000 on; given at once, when `release` says so if `holds`, or refused."""

    holds: bool = False
    failing: ErrorCode = ErrorCode.NONE
    numbers: "count[int]" = field(default_factory=lambda: count(1000))
    held: list[Callable[[ErrorCode, int], None]] = field(default_factory=list)

    def next_id(self, done: Callable[[ErrorCode, int], None]) -> None:
        if self.holds:
            self.held.append(done)
        else:
            self._give(done)

    def release(self) -> None:
        while self.held:
            self._give(self.held.pop(0))

    def _give(self, done: Callable[[ErrorCode, int], None]) -> None:
        if self.failing:
            done(self.failing, -1)
        else:
            done(ErrorCode.NONE, next(self.numbers))


class TxnWorld:
    """A coordinator that leads every partition of `__transaction_state`."""

    def __init__(
        self,
        log: FakeLog | None = None,
        clock: ManualClock | None = None,
        *,
        version: int = 0,
        epoch: int = 0,
        **settings: str,
    ) -> None:
        self.clock = clock or ManualClock()
        self.timers = ManualTimers(self.clock)
        self.log = log or FakeLog()
        self.topics = FakeTopics()
        self.markers = FakeMarkers()
        self.ids = FakeIds()
        self.version = version
        self.reached: list[FaultPoint] = []
        given = {name.replace("_", "."): value for name, value in settings.items()}
        self.around = TransactionSurroundings(
            clock=self.clock,
            timers=self.timers,
            log=self.log,
            topics=self.topics,
            markers=self.markers,
            producer_ids=self.ids,
            settings=TransactionSettings.of(TRANSACTIONS.parse(given)),
            version=lambda: self.version,
            reach=self.reached.append,
        )
        self.coordinator = TransactionCoordinator(self.around, PARTITION_COUNT)
        self.coordinator.start()
        for partition in range(PARTITION_COUNT):
            self.load(partition, epoch)

    def load(self, partition: int, epoch: int = 0) -> None:
        load = self.coordinator.begin_load(partition, epoch)
        assert load is not None
        for record in self.log.records(partition):
            load.record(record.key, record.value)
        assert load.fault_count == 0, load.faults
        self.coordinator.finish_load(load)

    def restarted(self, epoch: int = 1) -> "TxnWorld":
        """What another broker finds in the log."""
        again = TxnWorld(self.log, self.clock, version=self.version, epoch=epoch)
        again.ids.numbers = self.ids.numbers
        return again

    # Calls

    def init(
        self, name: str = "tx", timeout_ms: int = TIMEOUT_MS, expected: Producer | None = None
    ) -> Answer[InitResult]:
        answer: Answer[InitResult] = Answer()
        self.coordinator.init_producer(name, timeout_ms, expected, answer)
        return answer

    def producer(self, name: str = "tx", timeout_ms: int = TIMEOUT_MS) -> Producer:
        error, producer_id, epoch = self.init(name, timeout_ms).result
        assert not error, error.name
        return Producer(producer_id, epoch)

    def add(
        self, producer: Producer, *partitions: TopicPartition, name: str = "tx", version: int = 0
    ) -> Answer[ErrorCode]:
        answer: Answer[ErrorCode] = Answer()
        self.coordinator.add_partitions(name, producer, partitions or (A,), answer, version)
        return answer

    def end(
        self, producer: Producer, *, commit: bool, name: str = "tx", version: int = 0
    ) -> Answer[InitResult]:
        answer: Answer[InitResult] = Answer()
        self.coordinator.end(name, producer, commit, answer, version)
        return answer

    def begin(self, *partitions: TopicPartition, name: str = "tx") -> Producer:
        """A producer with an open transaction."""
        producer = self.producer(name)
        assert self.add(producer, *(partitions or (A,)), name=name).result is ErrorCode.NONE
        return producer

    # What is known

    def transaction(self, name: str = "tx") -> Transaction:
        found = self.coordinator.table.find(name)
        assert isinstance(found, Transaction), found
        return found

    def state(self, name: str = "tx") -> TransactionState:
        return self.transaction(name).state

    def stored(self, name: str = "tx") -> list[Snapshot | None]:
        """Every record of the id in the log, oldest first; None is a tombstone."""
        return [
            None if record.value is None else decode_value(name, record.value)
            for partition in range(PARTITION_COUNT)
            for record in self.log.records(partition)
            if decode_key(record.key) == name
        ]

    def stored_states(self, name: str = "tx") -> list[TransactionState | None]:
        return [None if each is None else each.state for each in self.stored(name)]
