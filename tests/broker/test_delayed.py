"""barnabas.broker.delayed: operations that wait."""

import logging
from collections.abc import Callable

import pytest

from barnabas.broker.delayed import Purgatory


class Timer:
    def __init__(self, at_ms: int, callback: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualTimers:
    """Time and turns of the loop that move only when told."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.timers: list[Timer] = []
        self.soon: list[Callable[[], None]] = []

    def call_after(self, ms: int, callback: Callable[[], None]) -> Timer:
        timer = Timer(self.now_ms + ms, callback)
        self.timers.append(timer)
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def turn(self) -> None:
        callbacks, self.soon = self.soon, []
        for callback in callbacks:
            callback()

    def advance(self, ms: int) -> None:
        self.now_ms += ms
        due = [timer for timer in self.timers if timer.at_ms <= self.now_ms and not timer.cancelled]
        self.timers = [timer for timer in self.timers if timer not in due]
        for timer in due:
            timer.callback()


class Operation:
    """Completes at its `needs`-th attempt, or when time runs out."""

    def __init__(self, needs: int = 1) -> None:
        self.needs = needs
        self.attempts: list[bool] = []

    def __call__(self, expired: bool) -> bool:
        self.attempts.append(expired)
        return expired or len(self.attempts) >= self.needs


class TestWaking:
    def test_a_move_completes_the_operation_in_the_same_turn_of_the_loop(self) -> None:
        timers, operation = ManualTimers(), Operation()
        purgatory = Purgatory(timers)
        purgatory.park(["a"], 500, operation)
        purgatory.moved("a")
        assert operation.attempts == []
        timers.turn()
        assert operation.attempts == [False]
        assert len(purgatory) == 0

    def test_many_moves_of_many_keys_are_one_attempt(self) -> None:
        timers, operation = ManualTimers(), Operation(needs=2)
        purgatory = Purgatory(timers)
        purgatory.park(["a", "b"], 500, operation)
        for key in "abab":
            purgatory.moved(key)
        timers.turn()
        assert operation.attempts == [False]
        assert len(purgatory) == 1

    def test_a_key_that_nobody_waits_for_schedules_nothing(self) -> None:
        timers = ManualTimers()
        Purgatory(timers).moved("a")
        assert timers.soon == []

    def test_an_operation_that_completes_while_others_are_woken_is_not_attempted_again(self) -> None:
        timers, second = ManualTimers(), Operation()
        purgatory = Purgatory(timers)
        parked = purgatory.park(["a"], 500, second)
        purgatory.moved("a")
        parked.cancel()
        timers.turn()
        assert second.attempts == []


class TestDeadline:
    def test_time_that_runs_out_completes_it_once(self) -> None:
        timers, operation = ManualTimers(), Operation(needs=9)
        purgatory = Purgatory(timers)
        purgatory.park(["a"], 500, operation)
        timers.advance(499)
        assert operation.attempts == []
        timers.advance(1)
        assert operation.attempts == [True]
        purgatory.moved("a")
        timers.turn()
        timers.advance(1_000)
        assert operation.attempts == [True]

    def test_a_completed_operation_leaves_no_timer(self) -> None:
        timers, operation = ManualTimers(), Operation()
        purgatory = Purgatory(timers)
        purgatory.park(["a"], 500, operation)
        purgatory.moved("a")
        timers.turn()
        timers.advance(1_000)
        assert operation.attempts == [False]

    def test_a_negative_wait_is_none(self) -> None:
        timers, operation = ManualTimers(), Operation(needs=9)
        Purgatory(timers).park(["a"], -5, operation)
        timers.advance(0)
        assert operation.attempts == [True]


class TestHurry:
    def test_completes_whoever_waits_for_the_key_once_as_if_time_were_up(self) -> None:
        timers, operation, other = ManualTimers(), Operation(needs=9), Operation(needs=9)
        purgatory = Purgatory(timers)
        purgatory.park(["a", "c"], 500, operation)
        purgatory.park(["a"], 500, other)
        purgatory.hurry("c")
        assert operation.attempts == []
        timers.turn()
        assert operation.attempts == [True]
        assert other.attempts == []
        timers.advance(500)
        assert operation.attempts == [True]

    def test_who_moves_at_the_same_time_is_attempted_once(self) -> None:
        timers, operation = ManualTimers(), Operation(needs=9)
        purgatory = Purgatory(timers)
        purgatory.park(["a", "c"], 500, operation)
        purgatory.moved("a")
        purgatory.hurry("c")
        timers.turn()
        assert operation.attempts == [True]

    def test_an_attempt_that_hurries_its_own_key_is_not_made_twice(self) -> None:
        timers, attempts = ManualTimers(), []
        purgatory = Purgatory(timers)

        def attempt(expired: bool) -> bool:
            attempts.append(expired)
            purgatory.hurry("c")
            return True

        purgatory.park(["a", "c"], 500, attempt)
        purgatory.moved("a")
        timers.turn()
        timers.turn()
        assert attempts == [False]

    def test_nobody_there_schedules_nothing(self) -> None:
        timers = ManualTimers()
        Purgatory(timers).hurry("c")
        assert timers.soon == []


class TestABugInOneAttempt:
    def broken(self, expired: bool) -> bool:
        raise RuntimeError("a bug of ours")

    def test_is_logged_and_the_other_waiters_go_on(self, caplog: pytest.LogCaptureFixture) -> None:
        timers = ManualTimers()
        purgatory, operation = Purgatory(timers), Operation()
        purgatory.park(["p"], 100, self.broken)
        purgatory.park(["p"], 100, operation)
        purgatory.moved("p")
        with caplog.at_level(logging.ERROR):
            timers.turn()
        assert operation.attempts == [False]
        assert len(purgatory) == 0
        assert [record.getMessage() for record in caplog.records] == [
            "an operation that waited for ('p',) failed"
        ]

    def test_ends_the_operation_when_its_time_is_up_too(self, caplog: pytest.LogCaptureFixture) -> None:
        timers = ManualTimers()
        purgatory = Purgatory(timers)
        purgatory.park(["p"], 100, self.broken)
        with caplog.at_level(logging.ERROR):
            timers.advance(100)
        assert len(purgatory) == 0
        assert len(caplog.records) == 1
