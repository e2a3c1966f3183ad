"""Tests of the sequence rules, and a broker's memory as the judge of random histories."""

import random

import pytest

from barnabas.client.producer_batch import Compression, Identity, ProducerBatch
from barnabas.client.sequences import Sequences
from barnabas.protocol.codes import ErrorCode
from tests.client._batches import make_batch

GAP = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
UNKNOWN = ErrorCode.UNKNOWN_PRODUCER_ID


def started(producer_id: int = 9, epoch: int = 0) -> Sequences:
    sequences = Sequences()
    sequences.adopt(Identity(producer_id, epoch))
    return sequences


def assigned(sequences: Sequences, *numbers: int, partition: int = 0) -> list[ProducerBatch]:
    batches = [make_batch(number, partition=partition) for number in numbers]
    for batch in batches:
        assert sequences.may_send(batch)
        sequences.assign(batch)
    return batches


class TestNumbers:
    def test_nothing_is_sent_without_an_id(self) -> None:
        sequences = Sequences()
        assert not sequences.may_send(make_batch())
        assert sequences.settle()

    def test_they_count_records_per_partition(self) -> None:
        sequences = started()
        first, second = assigned(sequences, 1, 2)
        (other,) = assigned(sequences, 1, partition=1)
        assert [batch.sequence for batch in (first, second, other)] == [0, 2, 0]
        assert first.identity == Identity(9, 0)

    def test_a_number_once_given_stays(self) -> None:
        sequences = started()
        (batch,) = assigned(sequences, 1)
        sequences.assign(batch)
        assert batch.sequence == 0

    def test_behind_the_highest_comes_zero(self) -> None:
        sequences = started()
        (batch,) = assigned(sequences, 1)
        sequences.acknowledge(batch, 1)
        sequences._partitions["t", 0].next = 2**31 - 1
        last, first = assigned(sequences, 2, 3)
        assert (last.sequence, first.sequence) == (2**31 - 1, 1)


class TestRepeats:
    def test_only_the_first_unanswered_batch_is_repeated(self) -> None:
        sequences = started()
        first, second = assigned(sequences, 1, 2)
        assert sequences.may_send(first)
        assert not sequences.may_send(second)
        sequences.acknowledge(first, 1)
        assert sequences.may_send(second)

    def test_new_batches_go_on_while_others_are_under_way(self) -> None:
        sequences = started()
        assigned(sequences, 1, 2)
        assert sequences.may_send(make_batch(3))

    @pytest.mark.parametrize(
        ("code", "again"),
        [
            (ErrorCode.NOT_LEADER_OR_FOLLOWER, True),
            (ErrorCode.REQUEST_TIMED_OUT, True),
            (ErrorCode.INVALID_RECORD, False),
            (ErrorCode.TOPIC_AUTHORIZATION_FAILED, False),
            (ErrorCode.INVALID_PRODUCER_EPOCH, False),
        ],
    )
    def test_other_codes_are_repeated_as_the_table_says(self, code: ErrorCode, again: bool) -> None:
        sequences = started()
        (batch,) = assigned(sequences, 1)
        assert sequences.may_retry(batch, code, -1) is again
        assert not sequences.settle()
        assert sequences.identity.epoch == 0


class TestGaps:
    def test_one_behind_a_refused_batch_is_none(self) -> None:
        sequences = started()
        _, second = assigned(sequences, 1, 2)
        assert sequences.may_retry(second, GAP, 0)
        sequences.settle()
        assert (sequences.identity.epoch, second.sequence) == (0, 2)

    def test_one_right_behind_the_acknowledged_raises_the_epoch(self) -> None:
        sequences = started()
        first, second, third = assigned(sequences, 1, 2, 3)
        sequences.acknowledge(first, 1)
        assert sequences.may_retry(second, GAP, 0)
        sequences.settle()
        assert sequences.identity == Identity(9, 1)
        assert [batch.sequence for batch in (second, third)] == [0, 2]
        assert second.was_reset

    def test_the_others_of_the_partition_are_repeated_without_another_epoch(self) -> None:
        sequences = started()
        first, second = assigned(sequences, 1, 2)
        assert sequences.may_retry(first, GAP, 0)
        sequences.settle()
        assert sequences.may_retry(second, GAP, 0)
        assert sequences.may_retry(second, ErrorCode.INVALID_PRODUCER_EPOCH, 0)
        sequences.settle()
        assert sequences.identity.epoch == 1

    def test_other_partitions_follow_when_theirs_are_answered(self) -> None:
        sequences = started()
        (broken,) = assigned(sequences, 1)
        (other,) = assigned(sequences, 1, partition=1)
        sequences.may_retry(broken, GAP, 0)
        sequences.settle()
        waiting = make_batch(2, partition=1)
        assert not sequences.may_send(waiting)
        sequences.acknowledge(other, 1)
        assert sequences.may_send(waiting)
        sequences.assign(waiting)
        assert (waiting.identity, waiting.sequence) == (Identity(9, 1), 0)

    def test_a_gap_in_a_partition_of_the_epoch_before_only_moves_it(self) -> None:
        sequences = started()
        (broken,) = assigned(sequences, 1)
        (other,) = assigned(sequences, 1, partition=1)
        sequences.may_retry(broken, GAP, 0)
        sequences.settle()
        assert sequences.may_retry(other, GAP, 0)
        sequences.settle()
        assert (other.identity, other.sequence) == (Identity(9, 1), 0)

    def test_a_broker_that_forgot_us_gets_a_new_epoch(self) -> None:
        sequences = started()
        (batch,) = assigned(sequences, 1)
        assert sequences.may_retry(batch, UNKNOWN, 10)
        sequences.settle()
        assert (sequences.identity.epoch, batch.sequence) == (1, 0)

    def test_without_a_log_start_it_is_asked_again(self) -> None:
        sequences = started()
        (batch,) = assigned(sequences, 1)
        assert sequences.may_retry(batch, UNKNOWN, -1)
        sequences.settle()
        assert sequences.identity.epoch == 0

    def test_used_up_epochs_need_a_new_id(self) -> None:
        sequences = started(9, 2**15 - 1)
        first, second = assigned(sequences, 1, 2)
        sequences.acknowledge(first, 1)
        sequences.may_retry(second, GAP, 0)
        assert sequences.settle()
        assert not sequences.has_id
        sequences.adopt(Identity(10, 0))
        assert (second.identity, second.sequence) == (Identity(10, 0), 0)


class TestGivingUp:
    def test_what_was_refused_leaves_a_gap_and_raises_the_epoch(self) -> None:
        sequences = started()
        first, second = assigned(sequences, 1, 2)
        sequences.give_up(first, may_be_written=False)
        sequences.settle()
        assert (second.identity, second.sequence) == (Identity(9, 1), 0)

    def test_what_may_be_written_stops_new_batches_until_the_rest_is_answered(self) -> None:
        sequences = started()
        first, second = assigned(sequences, 1, 2)
        sequences.give_up(first, may_be_written=True)
        sequences.settle()
        assert not sequences.may_send(make_batch(3))
        assert sequences.may_send(second)

    def test_it_was_written_after_all(self) -> None:
        sequences = started()
        first, second = assigned(sequences, 1, 2)
        sequences.give_up(first, may_be_written=True)
        sequences.acknowledge(second, 3)
        sequences.settle()
        assert sequences.identity.epoch == 0
        (third,) = assigned(sequences, 3)
        assert third.sequence == 4

    def test_it_was_not(self) -> None:
        sequences = started()
        first, second = assigned(sequences, 1, 2)
        sequences.give_up(first, may_be_written=True)
        assert sequences.may_retry(second, GAP, 0)
        sequences.settle()
        assert (second.identity, second.sequence) == (Identity(9, 1), 0)

    def test_with_nothing_behind_it_the_epoch_rises(self) -> None:
        sequences = started()
        (first,) = assigned(sequences, 1)
        sequences.give_up(first, may_be_written=True)
        sequences.settle()
        assert sequences.identity.epoch == 1
        assert sequences.may_send(make_batch(2))

    def test_what_was_never_sent_leaves_nothing(self) -> None:
        sequences = started()
        sequences.give_up(make_batch(), may_be_written=False)
        sequences.settle()
        assert sequences.identity.epoch == 0
        assert sequences.unanswered == 0

    def test_a_split_batch_hands_its_numbers_on(self) -> None:
        sequences = started()
        first, second = assigned(sequences, 1, 2)
        first.seal(Compression())
        parts = [part for _, part in first.split(0)]
        sequences.replace(first, parts)
        assert sequences.may_send(parts[0])
        assert not sequences.may_send(parts[1])
        sequences.acknowledge(parts[0], 0)
        sequences.acknowledge(parts[1], 1)
        assert sequences.may_send(second)


class Judge:
    """One partition of a broker: takes a batch or says why not, and remembers what was written."""

    def __init__(self) -> None:
        self.epoch = -1
        self.last = -1
        self.written: list[tuple[int, ...]] = []
        self.recent: dict[tuple[int, int], None] = {}

    def write(self, batch: ProducerBatch) -> ErrorCode:
        epoch, sequence = batch.identity.epoch, batch.sequence
        if epoch < self.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if (epoch, sequence) in self.recent:
            return ErrorCode.NONE
        if epoch > self.epoch:
            if sequence != 0:
                return GAP
        elif sequence != self.last + 1:
            return GAP
        self.epoch, self.last = epoch, sequence + batch.count - 1
        self.recent[epoch, sequence] = None
        self.written.append(batch.number)
        return ErrorCode.NONE


@pytest.mark.parametrize("seed", range(150))
def test_random_histories_keep_order_and_write_nothing_twice(seed: int) -> None:
    """Requests are lost before or after they were written, refused for a while or for good, given up."""
    chance = random.Random(seed)
    sequences, judge = started(), Judge()
    queue = [make_batch(number) for number in range(1, 40)]
    in_flight: list[ProducerBatch] = []
    acknowledged: list[tuple[int, ...]] = []
    given_up: set[tuple[int, ...]] = set()
    for _ in range(3_000):
        if not queue and not in_flight:
            break
        sequences.settle()
        if queue and len(in_flight) < 5 and chance.random() < 0.6 and sequences.may_send(queue[0]):
            batch = queue.pop(0)
            sequences.assign(batch)
            batch.was_reset = False
            in_flight.append(batch)
        elif in_flight:
            batch = in_flight.pop(0)  # a connection keeps the order
            fate = chance.random()
            code = ErrorCode.NETWORK_EXCEPTION if fate < 0.1 else judge.write(batch)
            if fate > 0.9:
                code = ErrorCode.NETWORK_EXCEPTION  # written, and the answer lost
            if 0.1 < fate < 0.13:  # out of patience, written or not
                sequences.give_up(batch, may_be_written=True)
                given_up.add(batch.number)
            elif code is ErrorCode.NONE:
                sequences.acknowledge(batch, 0)
                acknowledged.append(batch.number)
            else:
                assert sequences.may_retry(batch, code, 0)
                queue = sorted([*queue, batch], key=lambda each: each.number)
    assert not queue
    assert not in_flight
    assert judge.written == sorted(set(judge.written))
    assert set(acknowledged) <= set(judge.written)
    assert set(acknowledged) | given_up == {(number,) for number in range(1, 40)}
