"""Where time comes from.  The only importer of `time` below the broker.

Two readings: `now_ms` is the wall clock (record timestamps, retention), may jump;
`monotonic_ms` never goes back (timeouts).  Tests use ManualClock and never sleep.
"""

import time
from typing import Protocol

__all__ = ["Clock", "ManualClock", "SystemClock"]


class Clock(Protocol):
    """A source of both times, in whole milliseconds."""

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class ManualClock:
    """A clock that moves only when told; both readings move together."""

    __slots__ = ("_monotonic_ms", "_now_ms")

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def advance(self, ms: int) -> None:
        """Moves both readings forward by `ms`, which must not be negative."""
        assert ms >= 0, f"time went back by {-ms} ms"
        self._now_ms += ms
        self._monotonic_ms += ms
