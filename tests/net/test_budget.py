"""Held bytes: the limit, who waits, who passes."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from barnabas.net.budget import Budget

LIMIT = 100


class Reader:
    """A connection as the budget sees it."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.half = 0
        self.is_reading = True
        self.is_gone = False

    @property
    def is_half_received(self) -> bool:
        return self.half > 0

    def resume(self) -> None:
        assert not self.is_gone
        self.is_reading = True

    def settle(self) -> None:
        if not self.budget.may_read(self):
            self.is_reading = False
            self.budget.wait(self)


def reading(*readers: Reader) -> list[bool]:
    return [reader.is_reading for reader in readers]


def test_all_wait_at_the_limit_and_wake_below_the_mark() -> None:
    budget = Budget(LIMIT)
    first, second = Reader(budget), Reader(budget)
    budget.hold(100, 1)
    assert budget.is_full
    for reader in (first, second):
        reader.settle()
    assert reading(first, second) == [False, False]
    budget.free(10, 0)
    assert reading(first, second) == [False, False], "below the limit but above the mark"
    budget.free(20, 0)
    assert reading(first, second) == [True, True]


def test_one_half_request_passes_when_nothing_else_can_make_room() -> None:
    budget = Budget(LIMIT)
    idle, half, other = Reader(budget), Reader(budget), Reader(budget)
    half.half = other.half = 60
    budget.hold(120, 0)
    for reader in (idle, half, other):
        reader.settle()
    assert [budget.may_read(reader) for reader in (idle, half, other)] == [False, True, False]
    assert reading(idle, half, other) == [False, True, False]
    half.half = 0
    budget.hold(5, 1)
    budget.pass_on(half)
    assert budget.passer is None, "its request is complete: the answer will make room"
    budget.free(65, 1)
    assert reading(idle, other) == [True, True]


def test_a_passer_that_goes_hands_the_turn_on() -> None:
    budget = Budget(LIMIT)
    first, second = Reader(budget), Reader(budget)
    first.half = second.half = 90
    budget.hold(180, 0)
    first.settle()
    second.settle()
    assert budget.passer is first
    budget.pass_on(first)
    budget.free(90, 0)
    assert budget.passer is second
    assert second.is_reading


class BudgetMachine(RuleBasedStateMachine):
    """Somebody can always go on: a reader reads, or a request waits for its answer, or one may pass."""

    readers = Bundle("readers")
    requests = Bundle("requests")

    def __init__(self) -> None:
        super().__init__()
        self.budget = Budget(LIMIT)
        self.all: list[Reader] = []
        self.open: list[int] = []

    @rule(target=readers)
    def connect(self) -> Reader:
        self.all.append(Reader(self.budget))
        return self.all[-1]

    @rule(reader=readers, count=st.integers(1, 40))
    def receive_a_part(self, reader: Reader, count: int) -> None:
        if reader.is_gone or not reader.is_reading or not self.budget.may_read(reader):
            return
        reader.half += count
        self.budget.hold(count, 0)
        reader.settle()

    @rule(target=requests, reader=readers, count=st.integers(1, 40))
    def receive_the_rest(self, reader: Reader, count: int) -> int:
        if reader.is_gone or not reader.is_reading or not self.budget.may_read(reader):
            return 0
        size = reader.half + count
        reader.half = 0
        self.budget.hold(count, 1)
        self.budget.pass_on(reader)
        self.open.append(size)
        reader.settle()
        return size

    @rule(size=consumes(requests))
    def answer(self, size: int) -> None:
        if size:
            self.open.remove(size)
            self.budget.free(size, 1)

    @rule(reader=consumes(readers))
    def disconnect(self, reader: Reader) -> None:
        if not reader.is_gone:
            reader.is_gone = True
            self.all.remove(reader)
            self.budget.pass_on(reader)
            self.budget.free(reader.half, 0)

    @rule(reader=readers)
    def notice(self, reader: Reader) -> None:
        """A reader that is told it may read finds that it may not."""
        if not reader.is_gone and reader.is_reading:
            reader.settle()

    @invariant()
    def used_is_what_is_held(self) -> None:
        assert self.budget.used == sum(self.open) + sum(reader.half for reader in self.all)

    @invariant()
    def somebody_can_go_on(self) -> None:
        assert self.open or not self.all or any(reader.is_reading for reader in self.all)

    @invariant()
    def all_that_stopped_know_why(self) -> None:
        if self.budget.used <= LIMIT * 3 // 4:
            assert all(reader.is_reading for reader in self.all)


TestBudgetMachine = pytest.mark.slow(BudgetMachine.TestCase)
