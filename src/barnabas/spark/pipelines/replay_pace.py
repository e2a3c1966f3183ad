"""How far a replay may be at a moment.  Pure: times come in.

P1  Never ahead of the rate; behind it only as far as copying is slow.
P2  Partitions move together: by the same share of what each has, or to the same moment of the recording.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from barnabas.spark.pipelines.replay_plan import Rate

__all__ = ["Extent", "due_ms", "duration_s", "ends_by_count", "in_records"]


class Extent(NamedTuple):
    """Offsets [start, end) of a partition that are to be replayed."""

    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def in_records(rate: Rate, bytes_per_record: float) -> Rate:
    """A rate of bytes as one of records."""
    if rate.kind != "bytes":
        return rate
    return replace(rate, kind="records", amount=max(rate.amount / max(bytes_per_record, 1.0), 0.001))


def ends_by_count(
    extents: Mapping[int, Extent], done: Mapping[int, int], per_second: float, elapsed_s: float
) -> dict[int, int]:
    """Up to where each partition may be, `elapsed_s` after it stood at `done` (P2)."""
    left = {number: extents[number].end - done[number] for number in extents}
    total = sum(left.values())
    if not total:
        return {number: extent.end for number, extent in extents.items()}
    share = min(1.0, per_second * elapsed_s / total)
    return {number: done[number] + int(count * share) for number, count in left.items()}


def due_ms(first_ms: int, speed: float, elapsed_s: float) -> int:
    """The moment of the recording that is due: records before it may be there."""
    return first_ms + int(elapsed_s * 1000 * speed)


def duration_s(rate: Rate, records: int, size_bytes: int, span_ms: int) -> float | None:
    """How long it takes; None when it depends on the clusters alone."""
    match rate.kind:
        case "records":
            return records / rate.amount
        case "bytes":
            return size_bytes / rate.amount
        case "speed":
            return span_ms / 1000 / rate.amount
        case _:
            return None
