"""The transaction coordinator through random lives: producers, crashes and failing writes in any order.

What must hold: a transaction that was answered as committed is committed in all its partitions, one that was
answered as aborted in none; no two producers ever hold the same id and epoch; and once everything heals,
nothing is left open.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.base.types import TopicPartition
from barnabas.coordinator.ports import Producer
from barnabas.coordinator.txn_completion import RETRY_MS_MAX
from barnabas.coordinator.txn_ending import FIRST_BUMPING_VERSION
from barnabas.protocol.codes import ErrorCode
from tests.coordinator._txn_fakes import TIMEOUT_MS, A, B, C, TxnWorld

NAMES = ["red", "blue"]
PARTITIONS = [A, B, C]
FAILURES = [ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER]


class Lives(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = TxnWorld(version=2)
        self.epoch = 0
        self.producers: dict[str, Producer] = {}
        self.given: set[Producer] = set()
        self.joined: dict[str, set[TopicPartition]] = {name: set() for name in NAMES}
        self.written: list[tuple[int, int, bool, TopicPartition]] = []  # markers before the last crash

    # Producers

    @rule(name=st.sampled_from(NAMES))
    def start(self, name: str) -> None:
        error, producer_id, epoch = self.world.init(name).result
        if not error:
            producer = Producer(producer_id, epoch)
            assert producer not in self.given, "no two producers get the same id and epoch"
            self.given.add(producer)
            self.producers[name] = producer
            self.joined[name] = set()

    @precondition(lambda self: self.producers)
    @rule(name=st.sampled_from(NAMES), partition=st.sampled_from(PARTITIONS))
    def write(self, name: str, partition: TopicPartition) -> None:
        producer = self.producers.get(name)
        if producer and self.world.add(producer, partition, name=name).result is ErrorCode.NONE:
            self.joined[name].add(partition)

    @precondition(lambda self: self.producers)
    @rule(
        name=st.sampled_from(NAMES), commit=st.booleans(), version=st.sampled_from([0, FIRST_BUMPING_VERSION])
    )
    def end(self, name: str, commit: bool, version: int) -> None:
        producer = self.producers.get(name)
        if producer is None or not self.joined[name]:
            return
        error, producer_id, epoch = self.world.end(producer, commit=commit, name=name, version=version).result
        if error:
            return
        told = Producer(producer_id, epoch)
        if told != producer:
            assert told not in self.given, "an epoch is told once"
            self.given.add(told)
            self.producers[name] = told
        self._expect(producer, told, commit, self.joined[name])
        self.joined[name] = set()

    def _expect(
        self, before: Producer, told: Producer, commit: bool, partitions: set[TopicPartition]
    ) -> None:
        """What was answered holds for good: the markers say the same, now or once they can be written."""
        self._heal()
        for partition in partitions:
            ends = [end for *end, at in self._all_markers() if at == partition]
            last = [end for end in ends if end[0] == before.producer_id][-1]
            assert last[2] is commit, f"{before} was answered {commit}, {partition} says {last}"
            assert last[1] in (before.producer_epoch, told.producer_epoch)

    # Faults

    @rule(error=st.sampled_from(FAILURES))
    def log_fails(self, error: ErrorCode) -> None:
        self.world.log.failing = error

    @rule(partition=st.sampled_from(PARTITIONS), error=st.sampled_from(FAILURES))
    def marker_fails(self, partition: TopicPartition, error: ErrorCode) -> None:
        self.world.markers.failing[partition] = error

    @rule(ms=st.sampled_from([100, TIMEOUT_MS]))
    def time_passes(self, ms: int) -> None:
        self.world.timers.advance(ms)

    @rule()
    def crash(self) -> None:
        self.written = self._all_markers()
        self.epoch += 1
        self.world.log.failing = ErrorCode.NONE
        self.world = self.world.restarted(self.epoch)

    # Checks

    def _all_markers(self) -> list[tuple[int, int, bool, TopicPartition]]:
        return self.written + [
            (marker.producer_id, marker.producer_epoch, marker.committed, partition)
            for marker, partition in self.world.markers.written
        ]

    def _heal(self) -> None:
        self.world.log.failing = ErrorCode.NONE
        self.world.markers.failing.clear()
        self.world.timers.advance(RETRY_MS_MAX)

    @invariant()
    def what_is_known_is_what_is_stored(self) -> None:
        for transaction in self.world.coordinator.table:
            transaction.durable.check()
            stored = self.world.stored(transaction.transactional_id)[-1]
            assert stored is not None
            assert stored.state is transaction.state
            assert stored.producer_epoch == transaction.durable.producer_epoch

    def teardown(self) -> None:
        self._heal()
        self.world.timers.advance(TIMEOUT_MS + 20_000)
        for transaction in self.world.coordinator.table:
            assert transaction.state.is_idle, f"{transaction} is left open"


TestLives = Lives.TestCase
TestLives.settings = settings(stateful_step_count=30)
