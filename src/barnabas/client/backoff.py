"""How long to wait before the next try: twice as long each time, up to a limit, spread by chance.

The spread keeps a thousand clients that lost the same broker from coming back in the same millisecond.
"""

import random
from typing import Final

__all__ = ["Backoff"]

_SPREAD: Final = 0.2  # each wait is within this part of its nominal length
_DOUBLINGS_MAX: Final = 30


class Backoff:
    """Waits after failures in a row; `reset` after a success."""

    __slots__ = ("_failures", "_first_ms", "_most_ms", "_random")

    def __init__(self, first_ms: int, most_ms: int, *, chance: random.Random | None = None) -> None:
        self._first_ms = first_ms
        self._most_ms = max(first_ms, most_ms)
        self._random = chance or random.Random()
        self._failures = 0

    @property
    def failures(self) -> int:
        """How many failures came since the last success."""
        return self._failures

    def next_ms(self) -> float:
        """Counts a failure; the result is how long to wait now."""
        nominal = min(self._first_ms << min(self._failures, _DOUBLINGS_MAX), self._most_ms)
        self._failures += 1
        return nominal * self._random.uniform(1 - _SPREAD, 1 + _SPREAD)

    def reset(self) -> None:
        self._failures = 0
