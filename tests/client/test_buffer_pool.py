"""Tests of the buffer pool: its bound, its order, and a state machine against a plain model."""

import threading

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from barnabas.client.buffer_pool import BufferPool, Waiter


class TestTaking:
    def test_until_it_is_empty(self) -> None:
        pool = BufferPool(10)
        assert pool.take(6)
        assert not pool.take(5)
        assert pool.take(4)
        assert pool.available == 0

    def test_giving_back_more_than_was_taken_is_our_bug(self) -> None:
        with pytest.raises(AssertionError, match="P1"):
            BufferPool(10).give(1)


class TestWaiting:
    def test_a_waiter_is_woken_with_its_bytes(self) -> None:
        pool = BufferPool(10)
        pool.take(10)
        woken: list[str] = []
        waiter = pool.wait(4, lambda: woken.append("w"))
        pool.give(3)
        assert woken == []
        pool.give(3)
        assert (woken, waiter.has_bytes, pool.available) == (["w"], True, 2)

    def test_nobody_passes_a_waiter(self) -> None:
        pool = BufferPool(10)
        pool.take(10)
        pool.wait(8, lambda: None)
        pool.give(4)
        assert not pool.take(1)

    def test_one_that_gives_up_lets_the_next_in(self) -> None:
        pool = BufferPool(10)
        pool.take(10)
        first = pool.wait(8, lambda: None)
        second = pool.wait(2, lambda: None)
        pool.give(2)
        before = second.has_bytes
        assert pool.cancel(first)
        assert (before, second.has_bytes) == (False, True)
        assert pool.waiting == 0

    def test_one_that_was_served_cannot_be_cancelled(self) -> None:
        pool = BufferPool(10)
        waiter = pool.wait(4, lambda: None)
        assert not pool.cancel(waiter)
        assert pool.available == 6

    def test_more_than_there_is_can_never_be_waited_for(self) -> None:
        with pytest.raises(AssertionError, match="P2"):
            BufferPool(10).wait(11, lambda: None)

    def test_closing_sends_everybody_away_without_bytes(self) -> None:
        pool = BufferPool(10)
        pool.take(10)
        came = threading.Event()
        waiter = pool.wait(4, came.set)
        pool.close()
        assert came.is_set()
        assert not waiter.has_bytes
        assert pool.cancel(waiter)


class TestWaitingInTheCaller:
    def test_bytes_that_are_there_are_taken_without_a_word(self) -> None:
        pool = BufferPool(10)
        assert pool.take_within(4, 0, hasten=lambda: pytest.fail("nothing to hasten"))
        assert pool.available == 6

    def test_bytes_that_come_free_end_the_wait(self) -> None:
        pool = BufferPool(10)
        pool.take(10)
        assert pool.take_within(4, 60, hasten=lambda: pool.give(5))
        assert pool.available == 1

    def test_a_wait_that_is_over_leaves_the_queue(self) -> None:
        pool = BufferPool(10)
        pool.take(10)
        assert not pool.take_within(4, 0, hasten=lambda: None)
        assert pool.waiting == 0

    def test_closing_ends_the_wait_without_bytes(self) -> None:
        pool = BufferPool(10)
        pool.take(10)
        assert not pool.take_within(4, 60, hasten=pool.close)

    @pytest.mark.parametrize("came", [True, False])
    def test_an_interrupted_wait_keeps_no_bytes(self, came: bool) -> None:
        pool = BufferPool(10)
        pool.take(10)

        def interrupt() -> None:
            if came:
                pool.give(4)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            pool.take_within(4, 60, hasten=interrupt)
        assert (pool.waiting, pool.available) == (0, 4 if came else 0)


class PoolMachine(RuleBasedStateMachine):
    """Bytes are neither lost nor made, and waiters are served in order."""

    held = Bundle("held")
    queued = Bundle("queued")

    def __init__(self) -> None:
        super().__init__()
        self.pool = BufferPool(100)
        self.taken = 0
        self.queue: list[Waiter] = []

    def _settle(self) -> None:
        while self.queue and self.queue[0].has_bytes:
            self.taken += self.queue.pop(0).size

    @rule(target=held, size=st.integers(0, 60))
    def take(self, size: int) -> int:
        fits = not self.queue and self.taken + size <= 100
        assert self.pool.take(size) == fits
        self.taken += size if fits else 0
        return size if fits else 0

    @rule(size=consumes(held))
    def give(self, size: int) -> None:
        self.taken -= size
        self.pool.give(size)
        self._settle()

    @rule(target=queued, size=st.integers(1, 100))
    def wait(self, size: int) -> Waiter:
        waiter = self.pool.wait(size, lambda: None)
        self.queue.append(waiter)
        self._settle()
        return waiter

    @rule(waiter=consumes(queued))
    def leave(self, waiter: Waiter) -> None:
        if waiter.has_bytes:
            assert not self.pool.cancel(waiter)
            self.give(waiter.size)
        else:
            self.queue.remove(waiter)
            assert self.pool.cancel(waiter)
            self._settle()

    @invariant()
    def nothing_is_lost(self) -> None:
        assert self.pool.available == 100 - self.taken
        assert self.pool.waiting == len(self.queue)
        assert not any(waiter.has_bytes for waiter in self.queue)
        if self.queue:
            assert self.queue[0].size > self.pool.available


TestPoolAgainstItsModel = PoolMachine.TestCase
