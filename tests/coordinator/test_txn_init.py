"""barnabas.coordinator.txn_init: ids and epochs for producers, and the fencing of older ones."""

import pytest

from barnabas.coordinator.ports import Producer
from barnabas.coordinator.txn_calls import InitResult
from barnabas.coordinator.txn_state import EPOCH_MAX, TransactionState
from barnabas.protocol.codes import ErrorCode
from tests.coordinator._txn_fakes import PARTITION_COUNT, TIMEOUT_MS, A, TxnWorld

FENCED = InitResult(ErrorCode.PRODUCER_FENCED)
LATER = InitResult(ErrorCode.CONCURRENT_TRANSACTIONS)


def at_epoch(world: TxnWorld, epoch: int) -> Producer:
    """The id's producer after so many starts."""
    producer = world.producer()
    transaction = world.transaction()
    object.__setattr__(transaction.durable, "producer_epoch", epoch)
    return producer._replace(producer_epoch=epoch)


class TestANewId:
    def test_gets_a_producer_id_in_epoch_0(self) -> None:
        world = TxnWorld()
        assert world.init().result == InitResult(ErrorCode.NONE, 1000, 0)
        (stored,) = world.stored()
        assert stored is not None
        assert (stored.producer_id, stored.producer_epoch, stored.timeout_ms) == (1000, 0, TIMEOUT_MS)
        assert stored.state is TransactionState.EMPTY

    def test_is_answered_only_when_that_is_durable(self) -> None:
        world = TxnWorld()
        world.log.holds = True
        answer = world.init()
        assert answer.waits
        assert world.init().result == LATER
        world.log.release()
        assert answer.result == InitResult(ErrorCode.NONE, 1000, 0)

    def test_is_forgotten_when_the_log_refuses_it(self) -> None:
        world = TxnWorld()
        world.log.failing = ErrorCode.NOT_ENOUGH_REPLICAS
        assert world.init().result == InitResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert world.coordinator.table.find("tx") is None
        world.log.failing = ErrorCode.NONE
        assert world.init().result == InitResult(ErrorCode.NONE, 1001, 0)

    def test_of_two_at_once_is_made_once(self) -> None:
        world = TxnWorld()
        world.ids.holds = True
        first, second = world.init(), world.init()
        world.ids.release()
        assert first.result == InitResult(ErrorCode.NONE, 1000, 0)
        assert second.result == InitResult(ErrorCode.NONE, 1000, 1)

    def test_is_refused_when_there_are_no_ids(self) -> None:
        world = TxnWorld()
        world.ids.failing = ErrorCode.KAFKA_STORAGE_ERROR
        assert world.init().result == InitResult(ErrorCode.KAFKA_STORAGE_ERROR)

    def test_is_left_to_others_when_the_partition_moved_meanwhile(self) -> None:
        world = TxnWorld()
        world.ids.holds = True
        answer = world.init()
        for partition in range(PARTITION_COUNT):
            world.coordinator.unload(partition)
        world.ids.release()
        assert answer.result == InitResult(ErrorCode.NOT_COORDINATOR)


class TestAKnownId:
    def test_gets_the_next_epoch_of_the_same_producer_id(self) -> None:
        world = TxnWorld()
        assert [world.init().result.producer_epoch for _ in range(3)] == [0, 1, 2]
        assert {world.init().result.producer_id for _ in range(3)} == {1000}

    def test_takes_the_new_timeout(self) -> None:
        world = TxnWorld()
        world.producer(timeout_ms=1_000)
        world.producer(timeout_ms=2_000)
        assert world.coordinator.describe("tx").timeout_ms == 2_000

    def test_after_a_transaction_begins_empty(self) -> None:
        world = TxnWorld()
        producer = world.begin()
        world.end(producer, commit=True)
        assert world.producer() == producer._replace(producer_epoch=1)
        assert world.state() is TransactionState.EMPTY
        assert world.transaction().durable.started_ms == -1

    def test_with_an_open_transaction_has_it_aborted_and_asks_again(self) -> None:
        world = TxnWorld()
        producer = world.begin()
        assert world.init().result == LATER
        assert world.state() is TransactionState.COMPLETE_ABORT
        assert world.markers.ends(A) == [(producer.producer_id, 1, False)]
        assert world.producer() == producer._replace(producer_epoch=2)
        assert world.end(producer, commit=True).result == FENCED

    def test_whose_abort_could_not_be_written_is_told_so_and_stays_open(self) -> None:
        world = TxnWorld()
        producer = world.begin()
        world.log.failing = ErrorCode.REQUEST_TIMED_OUT
        assert world.init().result == InitResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        world.log.failing = ErrorCode.NONE
        assert world.state() is TransactionState.ONGOING
        assert world.end(producer, commit=True).result.error is ErrorCode.NONE

    def test_that_is_finishing_asks_again(self) -> None:
        world = TxnWorld()
        producer = world.begin()
        world.markers.holds = True
        world.end(producer, commit=True)
        assert world.init().result == LATER
        world.markers.release()
        assert world.init().result.error is ErrorCode.NONE

    def test_with_all_epochs_used_up_gets_another_producer_id(self) -> None:
        world = TxnWorld()
        at_epoch(world, EPOCH_MAX - 2)
        assert world.init().result == InitResult(ErrorCode.NONE, 1000, EPOCH_MAX - 1)
        assert world.init().result == InitResult(ErrorCode.NONE, 1001, 0)
        assert world.transaction().durable.previous_producer_id == 1000

    def test_the_last_epoch_can_still_be_fenced(self) -> None:
        world = TxnWorld()
        producer = at_epoch(world, EPOCH_MAX - 1)
        assert world.add(producer).result is ErrorCode.NONE
        assert world.init().result == LATER
        assert world.markers.ends(A) == [(1000, EPOCH_MAX, False)]
        assert world.init().result == InitResult(ErrorCode.NONE, 1001, 0)

    @pytest.mark.parametrize("moved", [True, False])
    def test_that_changes_while_it_waits_for_another_id_is_left_alone(self, moved: bool) -> None:
        world = TxnWorld()
        producer = at_epoch(world, EPOCH_MAX - 1)
        world.ids.holds = True
        answer = world.init()
        if moved:
            world.coordinator.unload(world.coordinator.partition_for("tx"))
        else:
            assert world.add(producer).result is ErrorCode.NONE
        world.ids.release()
        expected = ErrorCode.NOT_COORDINATOR if moved else ErrorCode.CONCURRENT_TRANSACTIONS
        assert answer.result == InitResult(expected)


class TestAProducerThatGoesOn:
    """KIP-360: it names what it has."""

    def test_gets_the_next_epoch(self) -> None:
        world = TxnWorld()
        producer = world.producer()
        assert world.init(expected=producer).result == InitResult(ErrorCode.NONE, 1000, 1)

    def test_and_did_not_hear_the_answer_gets_it_again(self) -> None:
        world = TxnWorld()
        producer = world.producer()
        first = world.init(expected=producer).result
        assert world.init(expected=producer).result == first
        assert world.init(expected=producer).result == first

    def test_over_the_last_epoch_did_not_hear_the_answer_either(self) -> None:
        world = TxnWorld()
        producer = at_epoch(world, EPOCH_MAX - 1)
        first = world.init(expected=producer).result
        assert first == InitResult(ErrorCode.NONE, 1001, 0)
        assert world.init(expected=producer).result == first

    def test_is_fenced_once_another_instance_came(self) -> None:
        world = TxnWorld()
        producer = world.producer()
        world.init()
        assert world.init(expected=producer).result == FENCED

    def test_under_another_producer_id_is_fenced(self) -> None:
        world = TxnWorld()
        world.producer()
        assert world.init(expected=Producer(77, 0)).result == FENCED

    def test_has_its_open_transaction_aborted(self) -> None:
        world = TxnWorld()
        producer = world.begin()
        assert world.init(expected=producer).result == LATER
        assert world.state() is TransactionState.COMPLETE_ABORT

    def test_whose_call_comes_late_aborts_nothing(self) -> None:
        world = TxnWorld()
        producer = world.producer()
        heir = world.init(expected=producer).result
        world.add(Producer(heir.producer_id, heir.producer_epoch))
        assert world.init(expected=producer).result == FENCED
        assert world.state() is TransactionState.ONGOING

    def test_and_was_forgotten_gets_a_new_id(self) -> None:
        world = TxnWorld()
        assert world.init(expected=Producer(77, 5)).result == InitResult(ErrorCode.NONE, 1000, 0)


@pytest.mark.parametrize("name", ["", "x" * 40_000, "\ud800"])
def test_an_id_that_cannot_be_stored_is_refused(name: str) -> None:
    assert TxnWorld().init(name).result == InitResult(ErrorCode.INVALID_REQUEST)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_out_of_bounds_is_refused(timeout_ms: int) -> None:
    refused = InitResult(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    assert TxnWorld().init(timeout_ms=timeout_ms).result == refused


def test_the_bounds_are_those_of_the_settings() -> None:
    world = TxnWorld(transaction_max_timeout_ms="100")
    assert world.init(timeout_ms=100).result.error is ErrorCode.NONE
    assert world.init(timeout_ms=101).result.error is ErrorCode.INVALID_TRANSACTION_TIMEOUT
