"""How much memory the unsent records may take, and who waits for some.

P1  0 <= available <= total; what was taken and not given back is total - available
P2  waiters are served in the order they came, and nobody passes them: a large record is not starved
P3  a waiter gets its bytes and is woken once, or is cancelled, never both; `close` wakes those that are
    left without bytes

Counts only: the bytes themselves live in the batches.  Any thread may call.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

__all__ = ["BufferPool", "Waiter"]


class Waiter:
    """A place in the queue for `size` bytes."""

    __slots__ = ("has_bytes", "size", "wake")

    def __init__(self, size: int, wake: Callable[[], object]) -> None:
        self.size: Final = size
        self.wake: Final = wake
        self.has_bytes = False


class BufferPool:
    """`total` bytes to take and give back."""

    def __init__(self, total: int) -> None:
        self.total: Final = total
        self._available = total
        self._queue: deque[Waiter] = deque()
        self._lock = threading.Lock()

    @property
    def available(self) -> int:
        return self._available

    @property
    def waiting(self) -> int:
        """How many wait; while somebody does, batches are sent without lingering."""
        return len(self._queue)

    def take(self, size: int) -> bool:
        """Takes bytes now, or nothing and says False."""
        with self._lock:
            if self._queue or size > self._available:
                return False
            self._available -= size
            return True

    def wait(self, size: int, wake: Callable[[], object]) -> Waiter:
        """Queues for bytes; `wake` is called, from whichever thread gives them back, when they are taken.

        It may be called before this returns.  `size` must not pass `total`: nobody could ever serve it.
        """
        assert size <= self.total, f"P2: {size} bytes can never come free"
        waiter = Waiter(size, wake)
        with self._lock:
            self._queue.append(waiter)
            served = self._serve()
        _wake(served)
        return waiter

    def take_within(self, size: int, timeout_s: float, *, hasten: Callable[[], object]) -> bool:
        """Takes bytes, waiting for them if need be; False when they did not come in time, or after `close`.

        `hasten` is called before the wait: it lets go whatever holds bytes for no need.
        """
        came = threading.Event()
        waiter = self.wait(size, came.set)
        try:
            if not came.is_set():
                hasten()
                came.wait(max(timeout_s, 0))
        except BaseException:
            if not self.cancel(waiter):
                self.give(size)
            raise
        return waiter.has_bytes or not self.cancel(waiter)

    def cancel(self, waiter: Waiter) -> bool:
        """Leaves the queue; False when the bytes had come, which then belong to the caller (P3)."""
        with self._lock:
            if waiter.has_bytes:
                return False
            if waiter in self._queue:
                self._queue.remove(waiter)
            served = self._serve()
        _wake(served)
        return True

    def give(self, size: int) -> None:
        """Gives back what was taken."""
        with self._lock:
            self._available += size
            assert self._available <= self.total, f"P1: {self._available} of {self.total} bytes"
            served = self._serve()
        _wake(served)

    def close(self) -> None:
        """Sends everybody away who waits."""
        with self._lock:
            left, self._queue = list(self._queue), deque()
        _wake(left)

    def _serve(self) -> list[Waiter]:
        served = []
        while self._queue and self._queue[0].size <= self._available:
            waiter = self._queue.popleft()
            self._available -= waiter.size
            waiter.has_bytes = True
            served.append(waiter)
        return served


def _wake(served: list[Waiter]) -> None:
    for waiter in served:
        waiter.wake()
