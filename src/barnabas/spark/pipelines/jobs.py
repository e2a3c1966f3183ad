"""What the supervisor watches: something that runs in the background and finishes batches.

`QueryJob` is a streaming query.  A kind that works otherwise (a thread, a batch job) gives its own Job.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["BatchReport", "Job", "QueryJob"]

Positions = Mapping[tuple[str, int], int]
"""(topic, partition) -> the next offset."""


@dataclass(frozen=True, slots=True)
class BatchReport:
    """One finished batch."""

    batch_id: int
    rows_in: int
    rows_out: int | None
    """None when the sink does not say."""
    batch_ms: int
    done: Positions = field(default_factory=dict)
    """Everything below was taken."""
    ends: Positions = field(default_factory=dict)
    """Where the partitions end, as far as known."""


class Job(Protocol):
    """One part of a running pipeline.  All calls return at once, but `stop`."""

    @property
    def name(self) -> str:
        """The pipeline's name, and after a dot which part of it."""

    def reports(self) -> list[BatchReport]:
        """The batches that were finished since the last call."""

    def is_active(self) -> bool: ...

    def failure(self) -> BaseException | None:
        """Why it ended; None while it runs, or when it came to its end."""

    def stop(self) -> None:
        """Ends it; nothing that was begun is lost.  May be called twice."""


class QueryJob:
    """A streaming query as a Job."""

    def __init__(self, name: str, query: "StreamingQuery", faults: Sequence[BaseException] = ()) -> None:
        """`faults` is where a function of the query leaves what it raised, whole; see sinks.Guarded."""
        self._name = name
        self._query = query
        self._faults = faults
        self._seen: set[tuple[Any, Any]] = set()

    @property
    def name(self) -> str:
        return self._name

    @property
    def query(self) -> "StreamingQuery":
        return self._query

    def settle(self, patience_s: float = 20.0) -> None:
        """Waits until the query has asked its sources, so that the next one does not start its processes too.

        Every query starts a few Python processes; Spark gives each ten seconds to come up.
        """
        until = time.monotonic() + patience_s
        while time.monotonic() < until and self._query.isActive:
            message = str(self._query.status.get("message", ""))
            if not message.startswith(("Initializing", "Getting offsets")):
                return
            time.sleep(0.1)

    def reports(self) -> list[BatchReport]:
        # A query that waits for records tells of the same batch again and again, at other times.
        recent = {(each["batchId"], each.get("timestamp")): each for each in self._query.recentProgress}
        found = [report_of(each) for key, each in recent.items() if key not in self._seen]
        self._seen = set(recent)
        return found

    def is_active(self) -> bool:
        return bool(self._query.isActive)

    def failure(self) -> BaseException | None:
        failure = self._query.exception()
        return failure if failure is None or not self._faults else self._faults[-1]

    def stop(self) -> None:
        self._query.stop()


def report_of(progress: Mapping[str, Any]) -> BatchReport:
    """What a progress of Spark says."""
    durations = progress.get("durationMs") or progress.get("batchDuration") or {}
    done: dict[tuple[str, int], int] = {}
    ends: dict[tuple[str, int], int] = {}
    for source in progress.get("sources") or ():
        done |= positions(source.get("endOffset"))
        ends |= positions(source.get("latestOffset"))
    sink = progress.get("sink") or {}
    rows_out = sink.get("numOutputRows", -1)
    return BatchReport(
        batch_id=int(progress["batchId"]),
        rows_in=int(progress.get("numInputRows") or 0),
        rows_out=int(rows_out) if rows_out is not None and rows_out >= 0 else None,
        batch_ms=int(durations.get("triggerExecution", 0)) if isinstance(durations, Mapping) else 0,
        done=done,
        ends=ends,
    )


def positions(offset: object) -> dict[tuple[str, int], int]:
    """The positions in an offset of the source; empty when it is that of another source."""
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return {}
    if not isinstance(offset, Mapping):
        return {}
    inner = offset.get("offsets", offset)
    if not isinstance(inner, Mapping):
        return {}
    return {
        (topic, int(partition)): int(number)
        for topic, partitions in inner.items()
        if isinstance(partitions, Mapping) and not str(topic).startswith("#")  # ours, not a topic's
        for partition, number in partitions.items()
        if str(partition).isdigit() and isinstance(number, int)
    }
