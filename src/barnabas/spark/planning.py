"""Which offsets a batch reads, cut into tasks: pure values and pure functions.

P1  The tasks of a batch are a function of its ranges and the options alone, never of the cluster, the
    executors or the clock: a batch that is run again after a crash has the same tasks with the same rows.
P2  The tasks cover the ranges exactly: every offset is in one task, none in two.
P3  A partition is split only when the user asks for it (minPartitions, maxRecordsPerPartition), so that
    its records stay in order within one task.

The rules of splitting are those of Spark's own Kafka source.
"""

import heapq
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from pyspark.sql.datasource import InputPartition

__all__ = ["PACK_RECORDS", "OffsetRange", "ReadTask", "plan_tasks"]

# A task costs about as much as reading so many small records: smaller partitions share one.
PACK_RECORDS: Final = 10_000


class OffsetRange(NamedTuple):
    """Offsets start <= offset < end of one partition; some of them may have no record."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}[{self.start}, {self.end})"


class ReadTask(InputPartition):
    """What one Spark task reads, range after range.  With a `token` it also says which query it works for."""

    def __init__(self, ranges: Sequence[OffsetRange], token: str | None = None) -> None:
        self.ranges = tuple(ranges)
        self.token = token
        super().__init__(self.ranges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReadTask) and self.ranges == other.ranges

    def __hash__(self) -> int:
        return hash(self.ranges)

    def __repr__(self) -> str:
        return f"ReadTask({', '.join(map(str, self.ranges))})"


def plan_tasks(
    ranges: Iterable[OffsetRange],
    *,
    min_partitions: int | None = None,
    max_records_per_partition: int | None = None,
    pack_records: int = PACK_RECORDS,
) -> list[tuple[OffsetRange, ...]]:
    """The tasks that read these ranges; empty ranges have none.

    Ranges above `max_records_per_partition` are cut into even parts, then the largest ones until there are
    about `min_partitions`.  With neither, whole ranges are packed together until a task has about
    `pack_records` offsets (0: a task for every range).
    """
    wanted = sorted(each for each in ranges if each.size > 0)
    if min_partitions is None and max_records_per_partition is None:
        return _packed(wanted, pack_records)
    if max_records_per_partition is not None:
        wanted = [part for each in wanted for part in _cut(each, -(-each.size // max_records_per_partition))]
    if min_partitions is not None and len(wanted) < min_partitions:
        wanted = _split(wanted, min_partitions)
    return [(each,) for each in wanted]


def _cut(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    """A range in so many parts whose sizes differ by one at most, the smaller ones first."""
    small, larger = divmod(whole.size, parts)
    bounds = [whole.start + small * part + max(0, part - (parts - larger)) for part in range(parts + 1)]
    return [whole._replace(start=low, end=high) for low, high in pairwise(bounds) if high > low]


def _split(ranges: Sequence[OffsetRange], min_partitions: int) -> list[OffsetRange]:
    """Each range in parts by its share of all; small ones stay whole and do not count in the shares."""
    total = sum(each.size for each in ranges)
    small = {each for each in ranges if _parts(each.size, total, min_partitions) == 1}
    rest = total - sum(each.size for each in small)
    wanted = max(min_partitions - len(small), 1)
    return [
        part
        for each in ranges
        for part in _cut(each, 1 if each in small else _parts(each.size, rest, wanted))
    ]


def _parts(size: int, total: int, wanted: int) -> int:
    """Share of `wanted`, rounded half up in whole numbers; at least one."""
    return max((2 * size * wanted + total) // (2 * total), 1)


def _packed(ranges: Sequence[OffsetRange], pack_records: int) -> list[tuple[OffsetRange, ...]]:
    """Whole ranges in few tasks of like size: the largest first, each to the task with the least."""
    total = sum(each.size for each in ranges)
    count = len(ranges) if pack_records <= 0 else min(len(ranges), -(-total // pack_records))
    tasks: list[list[OffsetRange]] = [[] for _ in range(count)]
    loads = [(0, number) for number in range(count)]  # a heap: the least, of equals the first, is in front
    for each in sorted(ranges, key=lambda each: (-each.size, each)):
        load, number = loads[0]
        tasks[number].append(each)
        heapq.heapreplace(loads, (load + each.size, number))
    return sorted(tuple(sorted(task)) for task in tasks if task)
