"""Idempotence and transactions of one partition (KIP-98)."""

import pytest

from barnabas.log.errors import (
    CoordinatorFenced,
    InvalidProducerEpoch,
    InvalidTransactionState,
    OutOfOrderSequence,
)
from barnabas.log.producers import CompletedTransaction, Origin, ProducerStates, SeenBatch, read_marker
from barnabas.records.batch import RecordBatch
from tests.log._make import NOW_MS, batch, marker

LAST = 2**31 - 1


def sent(
    sequence: int,
    count: int = 1,
    *,
    offset: int = 0,
    epoch: int = 0,
    producer_id: int = 7,
    transactional: bool = False,
) -> RecordBatch:
    return RecordBatch(
        batch(
            count,
            base_offset=offset,
            producer_id=producer_id,
            epoch=epoch,
            sequence=sequence,
            transactional=transactional,
        )
    )


def ended(
    offset: int, *, committed: bool, epoch: int = 0, producer_id: int = 7, coordinator_epoch: int = 0
) -> RecordBatch:
    data = marker(producer_id, epoch, committed=committed, coordinator_epoch=coordinator_epoch)
    control = RecordBatch(data)
    control.base_offset = offset
    return control


def states(*batches: RecordBatch) -> ProducerStates:
    producers = ProducerStates()
    for each in batches:
        producers.apply(each)
    return producers


def check(producers: ProducerStates, each: RecordBatch, origin: Origin = Origin.CLIENT) -> SeenBatch | None:
    return producers.check(each, origin)


class TestSequences:
    def test_an_unknown_producer_may_begin_anywhere(self) -> None:
        assert check(ProducerStates(), sent(1234)) is None

    def test_the_next_sequence_is_taken(self) -> None:
        assert check(states(sent(0, 3)), sent(3)) is None

    @pytest.mark.parametrize("sequence", [2, 4, 100])
    def test_any_other_is_out_of_order(self, sequence: int) -> None:
        with pytest.raises(OutOfOrderSequence, match=f"producer 7: sequence {sequence} instead of 3"):
            check(states(sent(0, 3)), sent(sequence))

    def test_zero_follows_the_last_sequence_there_is(self) -> None:
        producers = states(sent(LAST))
        assert check(producers, sent(0)) is None
        with pytest.raises(OutOfOrderSequence):
            check(producers, sent(1))

    def test_a_batch_may_wrap_inside(self) -> None:
        producers = states(sent(LAST - 1, 4))
        assert check(producers, sent(2)) is None
        duplicate = check(producers, sent(LAST - 1, 4))
        assert duplicate is not None
        assert duplicate.first_sequence == LAST - 1

    def test_a_new_epoch_begins_with_zero(self) -> None:
        producers = states(sent(0), sent(1))
        assert check(producers, sent(0, epoch=1)) is None
        with pytest.raises(OutOfOrderSequence, match="epoch 1 is new and must begin with sequence 0, not 2"):
            check(producers, sent(2, epoch=1))

    def test_an_old_epoch_is_fenced(self) -> None:
        with pytest.raises(InvalidProducerEpoch, match="producer 7: epoch 2 is older than 3"):
            check(states(sent(0, epoch=3)), sent(1, epoch=2))

    def test_after_a_marker_alone_the_epoch_begins_with_zero(self) -> None:
        producers = states(ended(0, committed=True))
        assert check(producers, sent(0)) is None
        with pytest.raises(OutOfOrderSequence):
            check(producers, sent(5))

    def test_a_coordinator_needs_no_sequence(self) -> None:
        assert check(states(sent(0)), sent(99), Origin.COORDINATOR) is None


class TestDuplicates:
    def test_the_last_five_batches_are_remembered(self) -> None:
        producers = states(*(sent(number, offset=100 + number) for number in range(7)))
        for sequence in range(2, 7):
            seen = check(producers, sent(sequence))
            assert seen is not None
            assert (seen.first_offset, seen.last_offset) == (100 + sequence, 100 + sequence)
        with pytest.raises(OutOfOrderSequence):
            check(producers, sent(1))

    def test_only_the_same_range_is_a_duplicate(self) -> None:
        with pytest.raises(OutOfOrderSequence):
            check(states(sent(0, 5)), sent(0, 4))

    def test_the_first_offset_is_answered(self) -> None:
        seen = check(states(sent(0, 5, offset=40)), sent(0, 5))
        assert seen == SeenBatch(4, 44, 4, NOW_MS)
        assert seen.first_offset == 40

    def test_a_new_epoch_forgets_the_batches(self) -> None:
        producers = states(sent(0, offset=1), sent(0, epoch=1, offset=2))
        seen = check(producers, sent(0, epoch=1))
        assert seen is not None
        assert seen.first_offset == 2


class TestTransactions:
    def test_the_first_open_one_bounds_stability(self) -> None:
        producers = states(
            sent(0, offset=10, transactional=True),
            sent(0, offset=11, producer_id=8, transactional=True),
            sent(1, offset=12, transactional=True),
        )
        assert producers.first_unstable_offset == producers.first_ongoing_offset == 10
        assert producers.has_ongoing(7)
        assert not producers.has_ongoing(9)

    def test_a_marker_below_the_high_watermark_settles_it(self) -> None:
        producers = states(sent(0, offset=10, transactional=True), ended(12, committed=True))
        assert producers.first_ongoing_offset is None
        assert producers.first_unstable_offset == 10
        producers.replicated_to(12)
        assert producers.first_unstable_offset == 10
        producers.replicated_to(13)
        assert producers.first_unstable_offset is None

    def test_an_abort_reports_what_the_index_needs(self) -> None:
        producers = states(
            sent(0, offset=10, transactional=True), sent(0, offset=11, producer_id=8, transactional=True)
        )
        assert producers.apply(ended(12, committed=False)) == CompletedTransaction(7, 10, 12, True, 11)
        assert producers.apply(ended(13, committed=False, producer_id=8)) == CompletedTransaction(
            8, 11, 13, True, 14
        )

    def test_a_marker_without_data_ends_nothing(self) -> None:
        assert states().apply(ended(5, committed=False)) is None

    def test_a_plain_batch_inside_a_transaction_is_refused(self) -> None:
        with pytest.raises(InvalidTransactionState, match="open since offset 10"):
            check(states(sent(0, offset=10, transactional=True)), sent(1))

    def test_an_old_coordinator_is_fenced(self) -> None:
        producers = states(sent(0, transactional=True), ended(1, committed=True, coordinator_epoch=5))
        with pytest.raises(CoordinatorFenced, match="coordinator epoch 4 is older than 5"):
            check(producers, ended(0, committed=True, coordinator_epoch=4), Origin.COORDINATOR)
        assert check(producers, ended(0, committed=True, coordinator_epoch=5), Origin.COORDINATOR) is None

    def test_a_marker_of_an_old_epoch_is_fenced(self) -> None:
        producers = states(sent(0, epoch=3, transactional=True))
        with pytest.raises(InvalidProducerEpoch):
            check(producers, ended(1, committed=True, epoch=2), Origin.COORDINATOR)

    def test_a_marker_with_a_raised_epoch_fences_the_producer(self) -> None:
        producers = states(sent(0, transactional=True), ended(1, committed=False, epoch=1))
        with pytest.raises(InvalidProducerEpoch):
            check(producers, sent(1, transactional=True))
        assert check(producers, sent(0, epoch=1)) is None

    def test_an_emptied_control_batch_says_nothing(self) -> None:
        control = ended(5, committed=True)
        control.record_count = 0
        assert read_marker(control) is None
        producers = states(sent(0, offset=4, transactional=True))
        assert producers.apply(control) is None
        assert producers.end_offset == 6


class TestExpiry:
    def test_idle_producers_go_unless_something_is_open(self) -> None:
        producers = states(sent(0), sent(0, producer_id=8, transactional=True))
        assert producers.expire(NOW_MS + 999, 1000) == 0
        assert producers.expire(NOW_MS + 1000, 1000) == 1
        assert list(producers.producers) == [8]
        assert check(producers, sent(77)) is None
