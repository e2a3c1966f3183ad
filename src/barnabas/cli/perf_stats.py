"""What a measurement keeps: sampled times with their percentiles, and counts over time.

Times are milliseconds.  Not for several threads at once.
"""

import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["MB", "Meter", "Slice", "Window", "percentile"]

MB: Final = 1024 * 1024
_SAMPLES_MAX: Final = 500_000
_SLICE_S: Final = 0.25


@dataclass(slots=True)
class Slice:
    """What happened from one moment to the next; `seconds` is since the start."""

    seconds: float
    records: int
    size_bytes: int


@dataclass(slots=True)
class Window:
    """Sums since the last report."""

    started: float
    records: int = 0
    size_bytes: int = 0
    measured: int = 0
    total_ms: float = 0.0
    max_ms: float = 0.0


class Meter:
    """Counts records, bytes and the time each took; calls `report(window, seconds)` every `every_s`.

    Of many records every n-th is kept for the percentiles, as many as fit; average and maximum see all.
    """

    def __init__(
        self,
        expected: int,
        *,
        every_s: float = 5.0,
        report: Callable[[Window, float], None] | None = None,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._now = now
        self._every_s = every_s
        self._report = report
        self._step = max(1, expected // _SAMPLES_MAX)
        self.started = now()
        self.ended = self.started
        self.records = 0
        self.size_bytes = 0
        self.measured = 0
        """How many times were measured: one per record, or per poll."""
        self.total_ms = 0.0
        self.max_ms = 0.0
        self.samples = array("d")
        self.slices: list[Slice] = []
        self._window = Window(self.started)
        self._slice_end = self.started + _SLICE_S
        self._slice_records = 0
        self._slice_bytes = 0

    def add(self, records: int, size_bytes: int, times_ms: Sequence[float], now: float | None = None) -> None:
        """Counts what has just ended, with the times that were measured for it (at least one)."""
        now = self._now() if now is None else now
        if now >= self._slice_end:
            self._end_slices(now)
        self.ended = now
        self.records += records
        self.size_bytes += size_bytes
        self._slice_records += records
        self._slice_bytes += size_bytes
        total_ms, max_ms = sum(times_ms), max(times_ms)
        self.total_ms += total_ms
        self.max_ms = max(self.max_ms, max_ms)
        self.samples.extend(times_ms[-self.measured % self._step :: self._step])
        self.measured += len(times_ms)
        window = self._window
        window.records += records
        window.size_bytes += size_bytes
        window.measured += len(times_ms)
        window.total_ms += total_ms
        window.max_ms = max(window.max_ms, max_ms)
        if now - window.started >= self._every_s:
            if self._report is not None:
                self._report(window, now - window.started)
            self._window = Window(now)

    def _end_slices(self, now: float) -> None:
        while now >= self._slice_end:
            self.slices.append(Slice(self._slice_end - self.started, self._slice_records, self._slice_bytes))
            self._slice_records = self._slice_bytes = 0
            self._slice_end += _SLICE_S

    def finish(self) -> None:
        """Ends the last slice, which may be shorter than the others."""
        if self._slice_records:
            self.slices.append(Slice(self.seconds, self._slice_records, self._slice_bytes))
            self._slice_records = self._slice_bytes = 0

    @property
    def seconds(self) -> float:
        return max(self.ended - self.started, 1e-9)

    @property
    def records_per_s(self) -> float:
        return self.records / self.seconds

    @property
    def mb_per_s(self) -> float:
        return self.size_bytes / MB / self.seconds

    def percentiles(self, *shares: float) -> list[float]:
        ordered = sorted(self.samples)
        return [percentile(ordered, share) for share in shares]

    def facts(self) -> dict[str, Any]:
        """The outcome for --json."""
        p50, p95, p99, p999 = self.percentiles(0.5, 0.95, 0.99, 0.999)
        return {
            "records": self.records,
            "bytes": self.size_bytes,
            "seconds": self.seconds,
            "records_per_second": self.records_per_s,
            "mb_per_second": self.mb_per_s,
            "latency_ms": {
                "avg": self.total_ms / self.measured if self.measured else 0.0,
                "max": self.max_ms,
                "p50": p50,
                "p95": p95,
                "p99": p99,
                "p99.9": p999,
            },
        }


def percentile(ordered: "list[float]", share: float) -> float:
    """The value below which a share of the values lies; 0 of none."""
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0
