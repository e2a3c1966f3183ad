"""The numbers of the demo at one moment, and rates from numbers that only grow."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

__all__ = ["Backlog", "Facts", "Flow", "Landing", "landed", "remember"]

_RATE_OVER_S: Final = 3.0
_HISTORY: Final = 28


@dataclass(frozen=True, slots=True)
class Landing:
    """What lies in a folder of Parquet files."""

    files: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """One moment; what the screen, the lines and the summary are drawn from."""

    address: str
    engine: str
    state: str
    seconds: float
    """Since the first order."""
    left_s: float | None
    """Until orders stop; None while the job starts."""
    total_s: float
    orders: int = 0
    orders_per_s: float = 0.0
    orders_bytes: int = 0
    rows_in: int = 0
    rows_in_per_s: float = 0.0
    rows_out: int = 0
    rows_out_per_s: float = 0.0
    batches: int = 0
    batch_ms: float = 0.0
    lag_messages: int = 0
    lag_seconds: float | None = None
    landing: Landing | None = None
    """None where nothing is written to files."""
    results: Sequence[dict[str, Any]] = ()
    latest: Sequence[dict[str, Any]] = ()
    history: Sequence[tuple[float, int]] = ()
    """Orders per second and lag in messages, the newest last."""


@dataclass(slots=True)
class Flow:
    """The rate of a number that only grows, over the last seconds."""

    _points: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, now: float, count: int) -> float:
        """Takes what the number is now, and gives how much it grows per second."""
        points = self._points
        points.append((now, count))
        while len(points) > 2 and now - points[0][0] > _RATE_OVER_S:
            points.popleft()
        (then, before), (_, _) = points[0], points[-1]
        return (count - before) / (now - then) if now > then else 0.0


@dataclass(slots=True)
class Backlog:
    """When orders came in, so that the age of the oldest that was not taken yet is known."""

    _points: deque[tuple[float, int]] = field(default_factory=deque)

    def age(self, now: float, orders: int, taken: int) -> float:
        """How long ago the first of `orders` came that is not among those `taken`."""
        points = self._points
        points.append((now, orders))
        while len(points) > 1 and points[1][1] <= taken:
            points.popleft()
        return now - points[0][0] if taken < orders else 0.0


def remember(history: "deque[tuple[float, int]]", facts: Facts) -> None:
    """Appends the moment to the history that the sparklines are drawn from."""
    history.append((facts.orders_per_s, facts.lag_messages))
    while len(history) > _HISTORY:
        history.popleft()


def landed(folder: Path) -> Landing:
    """What lies in the folder and below; files that are still being written do not count."""
    sizes = []
    for path in folder.rglob("*.parquet"):
        if any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts):
            continue
        try:
            sizes.append(path.stat().st_size)
        except OSError:  # moved in between
            continue
    return Landing(len(sizes), sum(sizes))
