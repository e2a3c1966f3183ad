"""barnabas.coordinator.txn_ending: decisions, repeated calls, fencing, timeouts, epochs of version 2."""

import pytest

from barnabas.coordinator.ports import Producer
from barnabas.coordinator.txn_calls import InitResult
from barnabas.coordinator.txn_ending import FIRST_BUMPING_VERSION
from barnabas.coordinator.txn_ports import FaultPoint
from barnabas.coordinator.txn_state import EPOCH_MAX, TransactionState
from barnabas.protocol.codes import ErrorCode
from tests.coordinator._txn_fakes import TIMEOUT_MS, A, B, TxnWorld
from tests.coordinator.test_txn_init import at_epoch

V2 = FIRST_BUMPING_VERSION
COMMIT_STATES = [TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT]
ABORT_STATES = [TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT]


@pytest.mark.parametrize("commit", [True, False])
class TestAnEnd:
    def test_is_decided_marked_and_completed(self, commit: bool) -> None:
        world = TxnWorld()
        producer = world.begin(A, B)
        assert world.end(producer, commit=commit).result == InitResult(ErrorCode.NONE, *producer)
        assert world.stored_states()[-2:] == (COMMIT_STATES if commit else ABORT_STATES)
        assert world.markers.ends(A) == world.markers.ends(B) == [(*producer, commit)]
        assert world.transaction().durable.partitions == frozenset()

    def test_is_answered_when_the_decision_is_durable_and_not_before(self, commit: bool) -> None:
        world = TxnWorld()
        producer = world.begin()
        world.log.holds = world.markers.holds = True
        answer = world.end(producer, commit=commit)
        assert answer.waits
        assert not world.markers.held
        world.log.release(count=1)
        assert answer.result.error is ErrorCode.NONE
        assert world.markers.held

    def test_repeated_gets_the_same_answer_and_the_opposite_is_refused(self, commit: bool) -> None:
        world = TxnWorld()
        producer = world.begin()
        first = world.end(producer, commit=commit).result
        assert world.end(producer, commit=commit).result == first
        assert world.end(producer, commit=not commit).result == InitResult(ErrorCode.INVALID_TXN_STATE)

    def test_in_the_middle_of_another_one_comes_again(self, commit: bool) -> None:
        world = TxnWorld()
        producer = world.begin()
        world.markers.holds = True
        world.end(producer, commit=commit)
        later = InitResult(ErrorCode.CONCURRENT_TRANSACTIONS)
        assert world.end(producer, commit=commit).result == later
        assert world.add(producer).result is ErrorCode.CONCURRENT_TRANSACTIONS

    def test_of_a_decision_left_by_a_fenced_coordinator_comes_again(self, commit: bool) -> None:
        world = TxnWorld()
        producer = world.begin()
        world.markers.holds = True
        world.end(producer, commit=commit)
        world.transaction().drop()
        assert world.end(producer, commit=commit).result.error is ErrorCode.CONCURRENT_TRANSACTIONS
        assert world.end(producer, commit=not commit).result.error is ErrorCode.INVALID_TXN_STATE

    def test_without_a_transaction_is_refused(self, commit: bool) -> None:
        world = TxnWorld()
        producer = world.producer()
        assert world.end(producer, commit=commit).result == InitResult(ErrorCode.INVALID_TXN_STATE)

    @pytest.mark.parametrize("step", [-1, 1])
    def test_by_another_epoch_is_fenced(self, commit: bool, step: int) -> None:
        world = TxnWorld()
        world.producer()
        producer = world.begin()
        other = producer._replace(producer_epoch=producer.producer_epoch + step)
        assert world.end(other, commit=commit).result == InitResult(ErrorCode.PRODUCER_FENCED)

    def test_by_another_producer_id_is_refused(self, commit: bool) -> None:
        world = TxnWorld()
        world.begin()
        refused = InitResult(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        assert world.end(Producer(7, 0), commit=commit).result == refused
        assert world.end(Producer(7, 0), commit=commit, name="unknown").result == refused
        empty = world.end(Producer(7, 0), commit=commit, name="").result
        assert empty == InitResult(ErrorCode.INVALID_REQUEST)

    def test_that_the_log_refuses_leaves_the_transaction_open(self, commit: bool) -> None:
        world = TxnWorld()
        producer = world.begin()
        world.log.failing = ErrorCode.NOT_ENOUGH_REPLICAS
        refused = InitResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert world.end(producer, commit=commit).result == refused
        assert world.state() is TransactionState.ONGOING
        world.log.failing = ErrorCode.NONE
        assert world.end(producer, commit=not commit).result.error is ErrorCode.NONE

    def test_reaches_every_point_in_order(self, commit: bool) -> None:
        world = TxnWorld()
        world.end(world.begin(), commit=commit)
        wanted = [FaultPoint.DECIDING, FaultPoint.DECIDED, FaultPoint.MARKED_ALL, FaultPoint.COMPLETED]
        assert world.reached == wanted


class TestTimeouts:
    def test_a_transaction_open_for_too_long_is_aborted_in_a_new_epoch(self) -> None:
        world = TxnWorld()
        producer = world.begin()
        world.timers.advance(TIMEOUT_MS)
        assert world.state() is TransactionState.ONGOING
        world.timers.advance(10_000)
        assert world.state() is TransactionState.COMPLETE_ABORT
        assert world.markers.ends(A) == [(producer.producer_id, 1, False)]
        assert world.end(producer, commit=True).result.error is ErrorCode.PRODUCER_FENCED
        assert world.add(producer).result is ErrorCode.PRODUCER_FENCED

    def test_the_clock_starts_with_the_first_partition_and_not_again(self) -> None:
        world = TxnWorld()
        producer = world.producer()
        world.timers.advance(TIMEOUT_MS)
        assert world.add(producer, A).result is ErrorCode.NONE
        world.timers.advance(TIMEOUT_MS - 10)
        assert world.add(producer, B).result is ErrorCode.NONE
        world.timers.advance(20_000)
        assert world.state() is TransactionState.COMPLETE_ABORT

    def test_one_that_is_changing_is_left_alone(self) -> None:
        world = TxnWorld()
        producer = world.begin()
        world.log.holds = True
        answer = world.end(producer, commit=True)
        world.timers.advance(TIMEOUT_MS * 2)
        world.log.release()
        world.log.release()
        assert answer.result.error is ErrorCode.NONE
        assert world.state() is TransactionState.COMPLETE_COMMIT

    def test_an_abort_that_fails_is_tried_again(self) -> None:
        world = TxnWorld()
        world.begin()
        world.log.failing = ErrorCode.REQUEST_TIMED_OUT
        world.timers.advance(TIMEOUT_MS + 10_000)
        assert world.state() is TransactionState.ONGOING
        world.log.failing = ErrorCode.NONE
        world.timers.advance(10_000)
        assert world.state() is TransactionState.COMPLETE_ABORT


class TestVersion2:
    """KIP-890: every end raises the epoch."""

    @pytest.mark.parametrize("commit", [True, False])
    def test_an_end_tells_the_next_epoch_which_the_markers_carry(self, commit: bool) -> None:
        world = TxnWorld(version=2)
        producer = world.begin()
        assert world.end(producer, commit=commit, version=V2).result == InitResult(ErrorCode.NONE, 1000, 1)
        assert world.markers.ends(A) == [(1000, 1, commit)]
        assert world.add(producer).result is ErrorCode.PRODUCER_FENCED
        assert world.add(Producer(1000, 1)).result is ErrorCode.NONE

    @pytest.mark.parametrize("commit", [True, False])
    def test_a_repeated_end_is_known_by_the_epoch_before(self, commit: bool) -> None:
        world = TxnWorld(version=2)
        producer = world.begin()
        first = world.end(producer, commit=commit, version=V2).result
        assert world.end(producer, commit=commit, version=V2).result == first
        refused = InitResult(ErrorCode.INVALID_TXN_STATE)
        assert world.end(producer, commit=not commit, version=V2).result == refused
        again = world.restarted()
        assert again.end(producer, commit=commit, version=V2).result == first

    def test_a_repeated_end_in_the_middle_of_the_first_comes_again(self) -> None:
        world = TxnWorld(version=2)
        producer = world.begin()
        world.markers.holds = True
        world.end(producer, commit=True, version=V2)
        later = InitResult(ErrorCode.CONCURRENT_TRANSACTIONS)
        assert world.end(producer, commit=True, version=V2).result == later
        fenced = InitResult(ErrorCode.PRODUCER_FENCED)
        assert world.end(Producer(1000, 1), commit=True, version=V2).result == fenced

    def test_a_repeated_end_after_the_next_one_began_is_fenced(self) -> None:
        world = TxnWorld(version=2)
        producer = world.begin()
        world.end(producer, commit=True, version=V2)
        world.add(Producer(1000, 1))
        assert world.end(producer, commit=True, version=V2).result == InitResult(ErrorCode.PRODUCER_FENCED)

    def test_what_was_never_begun_can_be_aborted_but_not_committed(self) -> None:
        world = TxnWorld(version=2)
        producer = world.producer()
        assert world.end(producer, commit=False, version=V2).result == InitResult(ErrorCode.NONE, 1000, 1)
        assert world.state() is TransactionState.COMPLETE_ABORT
        producer = Producer(1000, 1)
        refused = InitResult(ErrorCode.INVALID_TXN_STATE)
        assert world.end(producer, commit=True, version=V2).result == refused
        assert world.end(producer, commit=False, version=V2).result == InitResult(ErrorCode.NONE, 1000, 2)
        assert world.markers.written == []

    def test_over_the_last_epoch_another_producer_id_takes_over(self) -> None:
        world = TxnWorld(version=2)
        producer = at_epoch(world, EPOCH_MAX - 1)
        world.add(producer)
        told = world.end(producer, commit=True, version=V2).result
        assert told == InitResult(ErrorCode.NONE, 1001, 0)
        assert world.markers.ends(A) == [(1000, EPOCH_MAX, True)]
        assert world.end(producer, commit=True, version=V2).result == told
        assert world.add(Producer(1001, 0)).result is ErrorCode.NONE

    def test_a_crash_before_the_markers_keeps_the_id_that_was_told(self) -> None:
        world = TxnWorld(version=2)
        producer = at_epoch(world, EPOCH_MAX - 1)
        world.add(producer)
        world.markers.holds = True
        told = world.end(producer, commit=True, version=V2).result
        again = world.restarted()
        assert again.markers.ends(A) == [(1000, EPOCH_MAX, True)]
        assert again.end(producer, commit=True, version=V2).result == told
        assert again.add(Producer(1001, 0)).result is ErrorCode.NONE

    @pytest.mark.parametrize("trouble", ["refused", "moved", "changed"])
    def test_another_id_that_does_not_come_leaves_the_transaction_open(self, trouble: str) -> None:
        world = TxnWorld(version=2)
        producer = at_epoch(world, EPOCH_MAX - 1)
        world.add(producer)
        world.ids.holds = True
        answer = world.end(producer, commit=True, version=V2)
        wanted = ErrorCode.KAFKA_STORAGE_ERROR
        if trouble == "refused":
            world.ids.failing = wanted
        elif trouble == "moved":
            wanted = ErrorCode.NOT_COORDINATOR
            world.coordinator.unload(world.coordinator.partition_for("tx"))
        else:
            wanted = ErrorCode.CONCURRENT_TRANSACTIONS
            world.add(producer, B)
        world.ids.release()
        assert answer.result == InitResult(wanted)

    def test_a_producer_whose_time_was_over_goes_on_once_it_aborts(self) -> None:
        world = TxnWorld(version=2)
        producer = world.producer()
        world.add(producer, version=V2)
        world.timers.advance(TIMEOUT_MS + 10_000)
        assert world.state() is TransactionState.COMPLETE_ABORT
        assert world.add(producer, version=V2).result is ErrorCode.PRODUCER_FENCED
        refused = InitResult(ErrorCode.INVALID_TXN_STATE)
        assert world.end(producer, commit=True, version=V2).result == refused
        again = world.restarted()
        told = again.end(producer, commit=False, version=V2).result
        assert told == InitResult(ErrorCode.NONE, producer.producer_id, 1)
        assert again.add(Producer(*told[1:]), version=V2).result is ErrorCode.NONE

    def test_nobody_goes_on_with_the_epoch_that_is_for_fencing(self) -> None:
        world = TxnWorld(version=2)
        producer = at_epoch(world, EPOCH_MAX - 1)
        world.add(producer, version=V2)
        world.timers.advance(TIMEOUT_MS + 10_000)
        fenced = InitResult(ErrorCode.PRODUCER_FENCED)
        assert world.end(producer, commit=False, version=V2).result == fenced
        assert world.init().result == InitResult(ErrorCode.NONE, producer.producer_id + 1, 0)

    def test_a_producer_fenced_by_another_is_not_taken_for_one_that_repeats(self) -> None:
        world = TxnWorld(version=2)
        producer = world.producer()
        world.add(producer, version=V2)
        assert world.init().result == InitResult(ErrorCode.CONCURRENT_TRANSACTIONS)
        fenced = InitResult(ErrorCode.PRODUCER_FENCED)
        assert world.end(producer, commit=False, version=V2).result == fenced

    def test_a_client_of_version_1_keeps_its_epoch(self) -> None:
        world = TxnWorld(version=2)
        producer = world.begin()
        assert world.end(producer, commit=True).result == InitResult(ErrorCode.NONE, *producer)
        assert world.add(producer).result is ErrorCode.NONE
