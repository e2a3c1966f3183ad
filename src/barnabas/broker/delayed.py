"""Operations that wait for partitions to move on, or for their time to run out; no polling, no threads.

D1  An operation completes exactly once: by an attempt that succeeds, by its deadline, or by `hurry`.
D2  A completed operation is registered nowhere.
D3  An attempt that fails is a bug of ours: it is logged, the operation ends, the other waiters go on.
D4  A partition that moved wakes its waiters once per turn of the event loop, however often it moved,
    so that one answer carries all that one turn of the loop appended.

Time and turns of the loop come in through `Timers`; one caller at a time.
"""

import logging
from collections.abc import Callable, Hashable, Iterable
from typing import Protocol

__all__ = ["DelayedOperation", "Purgatory", "Scheduled", "Timers"]

_log = logging.getLogger(__name__)


class Scheduled(Protocol):
    """A call to come that can be taken back."""

    def cancel(self) -> None: ...


class Timers(Protocol):
    """Calls back later on the caller's thread."""

    def call_after(self, ms: int, callback: Callable[[], None]) -> Scheduled: ...

    def call_soon(self, callback: Callable[[], None]) -> object: ...


class DelayedOperation:
    """One waiting operation.  `attempt(expired)` says whether it is done; with `expired` it must be."""

    __slots__ = ("_attempt", "_purgatory", "_timer", "keys")

    def __init__(
        self, purgatory: "Purgatory", keys: Iterable[Hashable], wait_ms: int, attempt: Callable[[bool], bool]
    ) -> None:
        self._purgatory: Purgatory | None = purgatory
        self._attempt = attempt
        self.keys = tuple(keys)
        self._timer = purgatory.timers.call_after(max(wait_ms, 0), self.expire)

    def wake(self) -> None:
        """Something it waits for moved."""
        if self._purgatory is not None and self._try(expired=False):
            self._forget()

    def cancel(self) -> None:
        """Whoever waited is gone; nothing more is attempted."""
        self._forget()

    def expire(self) -> None:
        """Its time is up, or nobody wants it to wait any longer."""
        if self._purgatory is None:
            return
        done = self._try(expired=True)
        self._forget()
        assert done, "D1: an expired operation completes"

    def _try(self, *, expired: bool) -> bool:
        try:
            return self._attempt(expired)
        except Exception:
            _log.exception("an operation that waited for %s failed", self.keys)
            return True

    def _forget(self) -> None:
        if self._purgatory is not None:
            self._timer.cancel()
            self._purgatory.remove(self)
            self._purgatory = None


class Purgatory:
    """All waiting operations, by the keys (partitions, connections) that can complete them."""

    __slots__ = ("_hurried", "_moved", "_scheduled", "_waiting", "timers")

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self._waiting: dict[Hashable, dict[DelayedOperation, None]] = {}
        self._moved: dict[Hashable, None] = {}
        self._hurried: dict[Hashable, None] = {}
        self._scheduled = False

    def __len__(self) -> int:
        return len({id(operation) for waiters in self._waiting.values() for operation in waiters})

    def park(
        self, keys: Iterable[Hashable], wait_ms: int, attempt: Callable[[bool], bool]
    ) -> DelayedOperation:
        """Registers an operation that was attempted and could not complete yet."""
        operation = DelayedOperation(self, keys, wait_ms, attempt)
        for key in operation.keys:
            self._waiting.setdefault(key, {})[operation] = None
        return operation

    def moved(self, key: Hashable) -> None:
        """What `key` names moved on; its waiters are attempted at the end of this turn of the loop."""
        if key in self._waiting:
            self._moved[key] = None
            self._schedule()

    def hurry(self, key: Hashable) -> None:
        """Whoever waits for `key` completes at the end of this turn, as if its time were up."""
        if key in self._waiting:
            self._hurried[key] = None
            self._schedule()

    def remove(self, operation: DelayedOperation) -> None:
        for key in operation.keys:
            waiters = self._waiting.get(key)
            if waiters is not None:
                waiters.pop(operation, None)
                if not waiters:
                    del self._waiting[key]

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self.timers.call_soon(self._wake)

    def _wake(self) -> None:
        self._scheduled = False
        moved, self._moved = self._moved, {}
        hurried, self._hurried = self._hurried, {}
        for operation in self._waiters(hurried):
            operation.expire()
        for operation in self._waiters(moved):
            operation.wake()

    def _waiters(self, keys: Iterable[Hashable]) -> dict[DelayedOperation, None]:
        return {operation: None for key in keys for operation in self._waiting.get(key, ())}
