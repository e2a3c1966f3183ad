"""Tests of the sequence rules, and a broker's memory as the judge of random histories."""

import random

import pytest

from barnabas.client.doubts import is_covered
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
    """Batches with numbers, as if all had been sent."""
    batches = [make_batch(number, partition=partition) for number in numbers]
    for batch in batches:
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

    def test_they_start_anew_under_the_epoch_of_a_coordinator(self) -> None:
        sequences = started()
        for batch in assigned(sequences, 1, 2):
            sequences.acknowledge(batch, 0)
        sequences.renew(Identity(9, 1))
        (batch,) = assigned(sequences, 3)
        assert (batch.identity, batch.sequence) == (Identity(9, 1), 0)

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
        first, _ = assigned(sequences, 1, 2)
        sequences.acknowledge(first, 1)
        assert sequences.may_send(make_batch(3))

    def test_but_the_first_of_a_partition_goes_alone(self) -> None:
        sequences = started()
        (first,) = assigned(sequences, 1)
        assert not sequences.may_send(make_batch(2))
        assert sequences.may_send(make_batch(1, partition=1))
        sequences.acknowledge(first, 1)
        assert sequences.may_send(make_batch(2))

    def test_unless_brokers_take_none_but_0_for_the_first(self) -> None:
        sequences = started()
        sequences.first_is_checked = True
        (first,) = assigned(sequences, 1)
        assert sequences.may_send(make_batch(2))
        first.attempts = 1
        assert not sequences.may_send(make_batch(2))

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
    """One partition of a broker: takes a batch or says why not, and remembers the last five."""

    def __init__(self) -> None:
        self.epoch = -1
        self.last = -1
        self.written: list[tuple[int, ...]] = []
        self.recent: list[tuple[int, int]] = []

    def write(self, batch: ProducerBatch) -> ErrorCode:
        epoch, sequence = batch.identity.epoch, batch.sequence
        if epoch < self.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if (epoch, sequence) in self.recent:
            return ErrorCode.NONE
        if self.epoch == -1:
            pass  # whoever is not known may begin anywhere
        elif epoch > self.epoch:
            if sequence != 0:
                return GAP
        elif sequence != self.last + 1:
            return GAP
        self.epoch, self.last = epoch, sequence + batch.count - 1
        self.recent = [*self.recent[-4:], (epoch, sequence)]
        self.written.append(batch.number)
        return ErrorCode.NONE

    def restart(self) -> None:
        self.recent = self.recent[-1:]


class History:
    """A producer of one partition and its broker under random losses; decides as the sender does."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.sequences, self.judge = started(), Judge()
        self.queue = [make_batch(number) for number in range(1, 60)]
        self.in_flight: list[ProducerBatch] = []
        self.acknowledged: set[tuple[int, ...]] = set()
        self.given_up: set[tuple[int, ...]] = set()

    def step(self) -> None:
        self.sequences.settle()
        fate = self.chance.random()
        if fate < 0.05:
            self.lose_connection()
        elif fate < 0.08:
            self.lose_connection()
            self.judge.restart()
        elif fate < 0.6 and self.queue and len(self.in_flight) < 5:
            if self.sequences.may_send(self.queue[0]):
                batch = self.queue.pop(0)
                self.sequences.assign(batch)
                batch.was_reset = False
                self.in_flight.append(batch)
        elif self.in_flight:
            batch = self.in_flight.pop(0)  # a connection keeps the order
            is_refused = self.chance.random() < 0.1
            self.take(batch, ErrorCode.NOT_LEADER_OR_FOLLOWER if is_refused else self.judge.write(batch))

    def lose_connection(self) -> None:
        """What was sent is written up to some point, and no answer comes back."""
        for batch in self.in_flight[: self.chance.randint(0, 5)]:
            self.judge.write(batch)
        lost, self.in_flight = self.in_flight, []
        for batch in lost:
            batch.may_be_written = True
            if self.chance.random() < 0.03:  # out of patience, written or not
                self.sequences.give_up(batch, may_be_written=True)
                self.given_up.add(batch.number)
            else:
                self.take(batch, ErrorCode.NETWORK_EXCEPTION)

    def take(self, batch: ProducerBatch, code: ErrorCode) -> None:
        is_gap = code is GAP
        if (
            code is ErrorCode.NONE
            or (is_gap and self.sequences.is_written(batch))
            or (is_gap and batch.may_be_written and self.sequences.sees_gap(batch) and self.is_found(batch))
        ):
            self.sequences.acknowledge(batch, 0)
            self.acknowledged.add(batch.number)
            return
        assert self.sequences.may_retry(batch, code, 0)
        batch.attempts += 1
        self.queue = sorted([*self.queue, batch], key=lambda each: each.number)

    def is_found(self, batch: ProducerBatch) -> bool:
        return is_covered(batch, self.judge.epoch, self.judge.last)


@pytest.mark.parametrize("seed", range(300))
def test_random_histories_keep_order_and_write_nothing_twice(seed: int) -> None:
    history = History(seed)
    for _ in range(5_000):
        if not history.queue and not history.in_flight:
            break
        history.step()
    assert not history.queue
    assert not history.in_flight
    written = history.judge.written
    assert written == sorted(set(written))
    assert history.acknowledged <= set(written)
    assert history.acknowledged | history.given_up == {(number,) for number in range(1, 60)}


class TestWhatIsKnownToBeWritten:
    def test_what_lies_before_an_acknowledged_batch(self) -> None:
        sequences = started()
        first, second = assigned(sequences, 1, 2)
        first.may_be_written = True
        assert not sequences.is_written(first)
        sequences.acknowledge(second, 3)
        assert sequences.is_written(first)
        first.may_be_written = False  # it was refused, so it is not
        assert not sequences.is_written(first)
        sequences.acknowledge(first, -1)
        (third,) = assigned(sequences, 3)
        assert sequences.sees_gap(third)  # the older answer did not take anything back
        assert not sequences.is_written(third)

    def test_but_not_under_another_epoch(self) -> None:
        sequences = started()
        first, second = assigned(sequences, 1, 2)
        sequences.may_retry(first, GAP, 0)
        sequences.settle()
        sequences.acknowledge(second, 3)
        first.may_be_written = True
        assert not sequences.is_written(first)  # renumbered since

    def test_no_new_batch_follows_a_repeated_one(self) -> None:
        sequences = started()
        (first,) = assigned(sequences, 1)
        first.attempts = 1
        assert not sequences.may_send(make_batch(2))
        sequences.acknowledge(first, 1)
        assert sequences.may_send(make_batch(2))
