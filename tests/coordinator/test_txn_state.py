"""barnabas.coordinator.txn_state: which state may follow which, and what a change keeps."""

from dataclasses import replace

import pytest

from barnabas.coordinator.txn_state import (
    NEXT_STATES,
    STATE_NAMES,
    Snapshot,
    Transaction,
    TransactionState,
    is_exhausted,
)
from tests.coordinator._txn_fakes import A

ONGOING = Snapshot(5, 0, 100, TransactionState.ONGOING, frozenset({A}), started_ms=1)


def test_names_and_numbers_are_kafka_s() -> None:
    assert [state.text for state in TransactionState] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
    assert [int(state) for state in TransactionState] == list(range(8))
    assert STATE_NAMES["CompleteAbort"] is TransactionState.COMPLETE_ABORT


def test_the_last_epoch_is_kept_for_fencing() -> None:
    assert not is_exhausted(32_765)
    assert is_exhausted(32_766)
    assert is_exhausted(32_767)


@pytest.mark.parametrize("before", TransactionState)
@pytest.mark.parametrize("after", TransactionState)
def test_only_allowed_changes_begin(before: TransactionState, after: TransactionState) -> None:
    transaction = Transaction("tx", 0, replace(ONGOING, state=before))
    change = replace(ONGOING, state=after)
    if after in NEXT_STATES[before]:
        transaction.begin(change)
        assert transaction.is_changing
    else:
        with pytest.raises(AssertionError):
            transaction.begin(change)


def test_a_decided_transaction_can_only_be_completed_as_decided() -> None:
    assert NEXT_STATES[TransactionState.PREPARE_COMMIT] == {TransactionState.COMPLETE_COMMIT}
    assert NEXT_STATES[TransactionState.PREPARE_ABORT] == {TransactionState.COMPLETE_ABORT}


def test_a_change_counts_when_it_settles_and_not_when_it_is_dropped() -> None:
    transaction = Transaction("tx", 0, ONGOING)
    decided = replace(ONGOING, state=TransactionState.PREPARE_COMMIT)
    transaction.begin(decided)
    assert transaction.state is TransactionState.ONGOING
    transaction.drop()
    assert transaction.durable is ONGOING
    transaction.begin(decided)
    transaction.settle()
    assert transaction.durable is decided
    assert not transaction.is_changing


def test_two_changes_at_once_are_our_own_mistake() -> None:
    transaction = Transaction("tx", 0, ONGOING)
    transaction.begin(ONGOING)
    with pytest.raises(AssertionError, match="X2"):
        transaction.begin(ONGOING)


def test_an_epoch_never_falls() -> None:
    transaction = Transaction("tx", 0, replace(ONGOING, producer_epoch=3))
    with pytest.raises(AssertionError, match="X3"):
        transaction.begin(replace(ONGOING, producer_epoch=2))


@pytest.mark.parametrize(
    "wrong",
    [
        replace(ONGOING, producer_id=-1),
        replace(ONGOING, producer_epoch=-1),
        replace(ONGOING, producer_epoch=32_768),
        replace(ONGOING, state=TransactionState.EMPTY),
        replace(ONGOING, started_ms=-1),
    ],
)
def test_a_snapshot_that_contradicts_itself_is_noticed(wrong: Snapshot) -> None:
    with pytest.raises(AssertionError, match=r"X[34]"):
        wrong.check()


def test_a_completion_keeps_the_producer_and_drops_the_partitions() -> None:
    decided = replace(ONGOING, state=TransactionState.PREPARE_ABORT)
    done = decided.completed(9)
    assert (done.state, done.partitions, done.updated_ms) == (TransactionState.COMPLETE_ABORT, frozenset(), 9)
    assert (done.producer_id, done.producer_epoch) == (5, 0)


def test_a_completion_hands_over_to_the_next_producer_id() -> None:
    decided = replace(
        ONGOING, state=TransactionState.PREPARE_COMMIT, producer_epoch=32_767, next_producer_id=6
    )
    done = decided.completed(9)
    assert (done.producer_id, done.producer_epoch, done.previous_producer_id) == (6, 0, 5)
    assert (done.next_producer_id, done.last_epoch) == (-1, 32_767)


def test_it_says_what_it_is() -> None:
    text = repr(Transaction("tx", 0, ONGOING))
    assert text == "Transaction('tx', Ongoing, producer 5 epoch 0, 1 partitions)"
