"""barnabas.coordinator.txn_completion: markers everywhere, again and again if need be, then the end."""

import pytest

from barnabas.coordinator.txn_completion import RETRY_MS, RETRY_MS_MAX
from barnabas.coordinator.txn_ports import FaultPoint, Marker
from barnabas.coordinator.txn_state import TransactionState
from barnabas.protocol.codes import ErrorCode
from tests.coordinator._txn_fakes import A, B, C, TxnWorld


def test_the_completion_is_written_after_all_markers() -> None:
    world = TxnWorld()
    producer = world.begin(A, B)
    world.markers.holds = True
    world.end(producer, commit=True)
    assert world.stored_states()[-1] is TransactionState.PREPARE_COMMIT
    world.markers.release()
    assert world.stored_states()[-1] is TransactionState.COMPLETE_COMMIT


def test_a_marker_carries_the_leader_epoch_of_the_transaction_s_partition() -> None:
    world = TxnWorld(epoch=7)
    producer = world.begin()
    world.end(producer, commit=True)
    assert world.markers.written == [(Marker(*producer, committed=True, coordinator_epoch=7), A)]


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
    ],
)
def test_only_the_markers_that_failed_are_written_again(error: ErrorCode) -> None:
    world = TxnWorld()
    producer = world.begin(A, B)
    world.markers.failing[B] = error
    world.end(producer, commit=True)
    world.timers.advance(RETRY_MS)
    assert world.state() is TransactionState.PREPARE_COMMIT
    world.markers.failing.clear()
    world.timers.advance(RETRY_MS * 2)
    assert world.state() is TransactionState.COMPLETE_COMMIT
    assert world.markers.ends(A) == world.markers.ends(B) == [(*producer, True)]


def test_a_partition_that_stays_away_is_tried_ever_more_rarely() -> None:
    world = TxnWorld()
    world.markers.failing[A] = ErrorCode.KAFKA_STORAGE_ERROR
    world.end(world.begin(A), commit=True)
    before = world.timers.made
    world.timers.advance(60_000)
    assert world.timers.made - before < 30
    world.markers.failing.clear()
    world.timers.advance(RETRY_MS_MAX)
    assert world.state() is TransactionState.COMPLETE_COMMIT


@pytest.mark.parametrize(
    "error", [ErrorCode.TRANSACTION_COORDINATOR_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH]
)
def test_a_partition_that_knows_a_newer_coordinator_ends_the_attempt(error: ErrorCode) -> None:
    world = TxnWorld()
    producer = world.begin(A, B)
    world.markers.failing = {A: error, B: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    world.end(producer, commit=True)
    world.markers.failing.clear()
    world.timers.advance(RETRY_MS * 10)
    assert world.state() is TransactionState.PREPARE_COMMIT
    assert world.markers.written == []


def test_partitions_of_deleted_topics_need_no_marker() -> None:
    world = TxnWorld()
    producer = world.begin(A, B)
    world.topics.gone.add("t")
    world.end(producer, commit=True)
    assert world.state() is TransactionState.COMPLETE_COMMIT
    assert world.markers.written == []


def test_a_topic_deleted_while_its_marker_is_tried_again_needs_none_either() -> None:
    world = TxnWorld()
    producer = world.begin(A)
    world.markers.failing[A] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.end(producer, commit=True)
    world.topics.gone.add("t")
    world.timers.advance(RETRY_MS)
    assert world.state() is TransactionState.COMPLETE_COMMIT


def test_a_completion_that_the_log_refuses_is_written_again() -> None:
    world = TxnWorld()
    producer = world.begin()
    world.markers.holds = True
    world.end(producer, commit=True)
    world.log.failing = ErrorCode.NOT_ENOUGH_REPLICAS
    world.markers.release()
    assert world.state() is TransactionState.PREPARE_COMMIT
    world.log.failing = ErrorCode.NONE
    world.timers.advance(RETRY_MS)
    assert world.state() is TransactionState.COMPLETE_COMMIT
    assert world.reached.count(FaultPoint.COMPLETED) == 1


@pytest.mark.parametrize("where", ["markers", "retry", "completion"])
def test_a_partition_that_moves_away_takes_the_rest_of_the_work_along(where: str) -> None:
    world = TxnWorld()
    producer = world.begin(A, B, C)
    if where == "retry":
        world.markers.failing[A] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.markers.holds = where == "markers"
    if where == "completion":
        world.log.holds = True
        world.end(producer, commit=True)
        world.log.release(count=1)
    else:
        world.end(producer, commit=True)
    before = world.stored_states()
    world.coordinator.unload(world.coordinator.partition_for("tx"))
    world.markers.release()
    world.timers.advance(RETRY_MS * 2)
    if where == "completion":
        world.log.release()
    else:
        assert world.stored_states() == before
    world.markers.holds = world.log.holds = False
    world.markers.failing.clear()
    world.load(world.coordinator.partition_for("tx"), epoch=5)
    assert world.state() is TransactionState.COMPLETE_COMMIT
    assert world.markers.ends(A)[-1] == (*producer, True)
