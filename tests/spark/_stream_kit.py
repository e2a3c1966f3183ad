"""Stream readers asked as Spark asks them: `Memory` is a cluster of numbers, `Run` a query on it.

`LimitedRun` asks as PySpark does from 4.2 on, `PlainRun` as 4.0 and 4.1 do.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from barnabas.base.types import TopicPartition
from barnabas.client.admin_types import OffsetSpec
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.spark.lookup import Lookup
from barnabas.spark.offsets import Positions
from barnabas.spark.options import SourceOptions, parse_source
from barnabas.spark.planning import OffsetRange, ReadTask
from barnabas.spark.stream import StreamReader
from barnabas.spark.stream_limited import LimitedStreamReader
from barnabas.spark.stream_plain import PlainStreamReader

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Memory(Lookup):
    """Partitions as first and next offset; groups as what was committed."""

    def __init__(self, options: SourceOptions, logs: dict[TopicPartition, tuple[int, int]]) -> None:
        super().__init__(options)
        self.logs = logs
        self.told: list[tuple[str, dict[TopicPartition, int], str]] = []
        self.record_bytes = 100.0

    def partitions(self, *, gone_is_fine: bool = False) -> frozenset[TopicPartition]:
        return frozenset(self.logs)

    def _offsets(self, asked: Mapping[TopicPartition, OffsetSpec | int]) -> dict[TopicPartition, int]:
        side = {OffsetSpec.EARLIEST: 0, OffsetSpec.LATEST: 1}
        return {where: self.logs[where][side[OffsetSpec(what)]] for where, what in asked.items()}

    def bytes_per_offset(self, begins: Positions, ends: Positions) -> dict[TopicPartition, float]:
        return dict.fromkeys(ends, self.record_bytes)

    def committed(
        self, group: str, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        return {}

    def commit(
        self, group: str, positions: Positions, metadata: str, *, timeout_ms: int | None = None
    ) -> None:
        self.told.append((group, dict(positions), metadata))


class Run(ABC):
    """One query with its checkpoint, whose logs are kept as Spark keeps them: `restart` forgets all else."""

    reader: StreamReader

    def __init__(self, logs: dict[TopicPartition, tuple[int, int]], **options: str) -> None:
        given = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "queryName": "q", **options}
        self.options = parse_source({name: value for name, value in given.items() if value}, stream=True)
        self.cluster = Memory(self.options, logs)
        self.now_s = 0.0
        self.wal: list[str] = []
        self.committed = 0
        self.restart()

    @abstractmethod
    def restart(self) -> None:
        """A new process with a new reader."""

    @abstractmethod
    def plan(self) -> bool:
        """Write the next batch into the log, unless there is one open or nothing to do."""

    def _start(self) -> dict[str, Any]:
        if not self.committed:
            assert self.reader.initialOffset() == self.reader.initialOffset()
            return self.reader.initialOffset()
        return dict(json.loads(self.wal[self.committed - 1]))

    def tasks(self) -> list[ReadTask]:
        """What the open batch does."""
        found = self.reader.partitions(self._start(), json.loads(self.wal[self.committed]))
        return [task for task in found if isinstance(task, ReadTask)]

    def ranges(self) -> list[OffsetRange]:
        """What the open batch reads."""
        return sorted(each for task in self.tasks() for each in task.ranges)

    def batch(self) -> list[tuple[int, int, int]] | None:
        """Run one batch to its commit: partition, start, end of what it read; None if there was none."""
        if not self.plan():
            return None
        found = self.ranges()
        self.committed += 1
        return [each[1:] for each in found]


class LimitedRun(Run):
    """As Spark asks a reader that knows limits."""

    reader: LimitedStreamReader

    def restart(self, *, available_now: bool = False) -> None:
        self.reader = LimitedStreamReader(self.options, lookup=self.cluster, monotonic_s=lambda: self.now_s)
        if available_now:
            self.reader.prepareForTriggerAvailableNow()

    def plan(self) -> bool:
        if len(self.wal) > self.committed:
            return True
        start = self._start()
        end = self.reader.latestOffset(start, self.reader.getDefaultReadLimit())
        if json.dumps(end) == json.dumps(start):
            return False
        self.wal.append(json.dumps(end))
        return True


class PlainRun(Run):
    """As Spark asks a reader that it tells nothing: the first batch of a query runs whatever it is."""

    reader: PlainStreamReader

    def restart(self) -> None:
        self.reader = PlainStreamReader(self.options, lookup=self.cluster, monotonic_s=lambda: self.now_s)
        if self.wal:
            newest = json.loads(self.wal[-1])
            assert self.reader.partitions(newest, newest) == []

    def plan(self) -> bool:
        if len(self.wal) > self.committed:
            return True
        end = json.dumps(self.reader.latestOffset())
        if self.wal and end == self.wal[-1]:
            return False
        self.wal.append(end)
        return True
