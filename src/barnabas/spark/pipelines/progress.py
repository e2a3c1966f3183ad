"""How far a pipeline is: batches in, a Progress out.

Rates are those of the wall clock over the last seconds.  Lag in messages is what the partitions hold beyond
the positions taken.  Lag in seconds is how long ago the partitions ended where the pipeline stands now, as
seen by this run: None as long as they never did.  Pure; times are arguments.
"""

from collections import deque
from dataclasses import asdict, dataclass
from typing import Any, Final

from barnabas.spark.pipelines.jobs import BatchReport

__all__ = ["Meter", "Progress", "record"]

WINDOW_MS: Final = 10_000
_HISTORY_MAX: Final = 1_000

STARTING: Final = "starting"
RUNNING: Final = "running"
WAITING: Final = "waiting"
FAILED: Final = "failed"
DONE: Final = "done"
STOPPED: Final = "stopped"


@dataclass(frozen=True, slots=True)
class Progress:
    """Where one part of a pipeline stands.

    `state` is starting, running, waiting (to start again after an error), failed, done or stopped.
    """

    pipeline: str
    part: str
    """The name of the query: the pipeline's, or that with a sink's name behind a dot."""
    state: str
    batch_id: int | None = None
    rows_in: int = 0
    rows_out: int | None = None
    rows_total: int = 0
    """All rows taken since this run began."""
    rows_per_s_in: float = 0.0
    rows_per_s_out: float | None = None
    batch_ms: int = 0
    lag_messages: int | None = None
    lag_seconds: float | None = None
    eta_seconds: float | None = None
    restarts: int = 0
    last_error: str | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def record(parts: dict[str, Progress], progress: Progress) -> None:
    """Puts a progress among those of all parts; a pipeline that starts gives way when its parts are known."""
    whole = parts.get(progress.pipeline)
    if whole is not None and whole.state == STARTING:
        del parts[whole.part]
    parts[progress.part] = progress


@dataclass(frozen=True, slots=True)
class _Point:
    at_ms: int
    rows_in: int
    rows_out: int | None
    done: int
    end: int


class Meter:
    """The rates and the lag of one job."""

    def __init__(self, now_ms: int) -> None:
        self._began_ms = now_ms
        self._points: deque[_Point] = deque(maxlen=_HISTORY_MAX)
        self._ends: deque[tuple[int, int]] = deque(maxlen=_HISTORY_MAX)
        self._known: dict[tuple[str, int], int] = {}
        self._done: dict[tuple[str, int], int] = {}
        self.rows_total = 0

    def take(self, report: BatchReport, now_ms: int) -> dict[str, Any]:
        """The fields of Progress that a finished batch changes."""
        self.rows_total += report.rows_in
        self._done.update(report.done)
        self._known.update(report.ends)
        has_positions = bool(self._done) and self._done.keys() <= self._known.keys()
        done = sum(self._done.values())
        end = max(sum(self._known[where] for where in self._done), done) if has_positions else done
        if has_positions and (not self._ends or self._ends[-1][1] != end):
            self._ends.append((now_ms, end))
        self._points.append(_Point(now_ms, report.rows_in, report.rows_out, done, end))
        while len(self._points) > 1 and self._points[0].at_ms < now_ms - WINDOW_MS:
            self._points.popleft()
        lag = end - done if has_positions else None
        speed = self._speed(now_ms)
        return {
            "batch_id": report.batch_id,
            "rows_in": report.rows_in,
            "rows_out": report.rows_out,
            "rows_total": self.rows_total,
            "rows_per_s_in": round(sum(point.rows_in for point in self._points) / speed, 1),
            "rows_per_s_out": self._rows_out(speed),
            "batch_ms": report.batch_ms,
            "lag_messages": lag,
            "lag_seconds": self._lag_seconds(lag, done, now_ms),
            "eta_seconds": self._eta(lag),
        }

    def _speed(self, now_ms: int) -> float:
        """Seconds that the window covers."""
        since = max(self._began_ms, now_ms - WINDOW_MS)
        return max(now_ms - since, 1) / 1000

    def _rows_out(self, seconds: float) -> float | None:
        known = [point.rows_out for point in self._points if point.rows_out is not None]
        return round(sum(known) / seconds, 1) if known else None

    def _lag_seconds(self, lag: int | None, done: int, now_ms: int) -> float | None:
        if lag is None:
            return None
        if lag == 0:
            return 0.0
        reached = [at_ms for at_ms, end in self._ends if end <= done]
        return (now_ms - reached[-1]) / 1000 if reached else None

    def _eta(self, lag: int | None) -> float | None:
        """When the end is reached if both sides go on as they do; None when it is not."""
        if lag is None:
            return None
        if lag == 0:
            return 0.0
        first, last = self._points[0], self._points[-1]
        seconds = (last.at_ms - first.at_ms) / 1000
        gained = (last.done - first.done) - (last.end - first.end)
        return round(lag / (gained / seconds), 1) if seconds > 0 and gained > 0 else None
