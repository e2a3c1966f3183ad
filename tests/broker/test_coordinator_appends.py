"""barnabas.broker.coordinator_appends: acknowledged as acks=all is, and told of in order of appending."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from barnabas.base.clock import Clock
from barnabas.broker.coordinator_appends import CoordinatorAppends, Done
from barnabas.broker.delayed import Purgatory
from barnabas.broker.flushing import Flusher
from barnabas.broker.loop_timers import LoopTimers
from barnabas.broker.offload import Offload
from barnabas.log.errors import DiskFault
from barnabas.log.partition_log import PartitionLog
from barnabas.protocol.codes import ErrorCode
from barnabas.records.builder import build_batch
from barnabas.replication.partition import Partition
from tests.broker._parts import open_log_parts, run

NONE = ErrorCode.NONE
EVERY_SECOND = {"log.flush.interval.messages": "2"}


class GatedFlusher(Flusher):
    """A disk as slow as the test wants; `fault` is what it ends with."""

    __slots__ = ("fault", "gate")

    def __init__(self, offload: Offload, clock: Clock) -> None:
        super().__init__(offload, clock)
        self.gate = asyncio.Event()
        self.fault: Exception | None = None

    async def flush(self, log: PartitionLog) -> None:
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        await super().flush(log)


class Desk:
    """The appends of one partition, and what was told so far: (which append, its code)."""

    def __init__(
        self, partition: Partition, purgatory: Purgatory, flusher: GatedFlusher, appends: CoordinatorAppends
    ) -> None:
        self.partition = partition
        self.purgatory = purgatory
        self.flusher = flusher
        self.appends = appends
        self.told: list[tuple[int, ErrorCode]] = []
        self._news = asyncio.Event()

    def append(self, which: int, timeout_ms: int = 30_000) -> None:
        self.put(partial(self._tell, which), timeout_ms)

    def put(self, done: Done, timeout_ms: int = 30_000) -> None:
        batch = build_batch([(1, b"k", b"v", ())])
        self.appends.append(self.partition, batch, done, timeout_ms=timeout_ms)

    def _tell(self, which: int, error: ErrorCode) -> None:
        self.told.append((which, error))
        self._news.set()

    def follow(self) -> None:
        """From now on a follower has to have everything."""
        end = self.partition.log.log_end_offset
        self.partition.lead(epoch=5, replicas=[1, 2], in_sync=[1, 2], high_watermark=end)

    def fetched(self, end: int) -> None:
        self.partition.leading.follower_fetched(2, end, 0)
        self.purgatory.moved(self.partition.topic_partition)

    async def until_told(self, count: int) -> None:
        async with asyncio.timeout(20):
            while len(self.told) < count:
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def desk(folder: Path, settings: Mapping[str, str] | None = None) -> AsyncIterator[Desk]:
    async with open_log_parts(folder, settings) as parts:
        await parts.topics.ensure("t")
        partition = parts.partitions.get("t", 0)
        assert partition is not None
        offload = Offload()
        purgatory = Purgatory(LoopTimers(asyncio.get_running_loop()))
        flusher = GatedFlusher(offload, parts.clock)
        made = Desk(partition, purgatory, flusher, CoordinatorAppends(purgatory, parts.clock, flusher))
        yield made
        flusher.gate.set()
        await made.appends.drain()
        offload.close()
        assert len(purgatory) == 0


class TestOneAppend:
    def test_is_told_at_once_where_the_leader_is_alone(self, folder: Path) -> None:
        async def main() -> None:
            async with desk(folder) as at:
                at.append(1)
                assert at.told == [(1, NONE)]

        run(main())

    def test_is_told_at_once_that_it_is_refused(self, folder: Path) -> None:
        async def main() -> None:
            async with desk(folder) as at:
                at.partition.resign()
                at.append(1)
                assert at.told == [(1, ErrorCode.NOT_LEADER_OR_FOLLOWER)]

        run(main())

    def test_waits_for_the_disk_when_a_flush_is_due(self, folder: Path) -> None:
        async def main() -> None:
            async with desk(folder, {"log.flush.interval.messages": "1"}) as at:
                at.append(1)
                assert at.told == []
                at.flusher.gate.set()
                await at.appends.drain()
                assert at.told == [(1, NONE)]
                assert at.partition.log.recovery_point == 1

        run(main())

    @pytest.mark.parametrize(
        ("fault", "code"),
        [
            (DiskFault("t-0", "no sync"), ErrorCode.KAFKA_STORAGE_ERROR),
            (RuntimeError("a bug"), ErrorCode.UNKNOWN_SERVER_ERROR),
        ],
    )
    def test_is_told_when_the_disk_fails(self, folder: Path, fault: Exception, code: ErrorCode) -> None:
        async def main() -> None:
            async with desk(folder, EVERY_SECOND) as at:
                at.append(0)
                at.flusher.fault = fault
                at.append(1)
                at.append(2)
                at.flusher.gate.set()
                await at.appends.drain()
                assert at.told == [(0, NONE), (1, code), (2, code)]

        run(main())

    @pytest.mark.parametrize("flushed", [False, True])
    def test_waits_for_the_followers(self, folder: Path, flushed: bool) -> None:
        async def main() -> None:
            async with desk(folder, {"log.flush.interval.messages": "1"} if flushed else None) as at:
                at.follow()
                at.flusher.gate.set()
                at.append(1)
                await at.appends.drain()
                assert at.told == []
                at.fetched(1)
                await at.until_told(1)
                assert at.told == [(1, NONE)]

        run(main())

    def test_gives_up_on_them_after_its_time(self, folder: Path) -> None:
        async def main() -> None:
            async with desk(folder) as at:
                at.follow()
                at.append(1, timeout_ms=1)
                await at.until_told(1)
                assert at.told == [(1, ErrorCode.REQUEST_TIMED_OUT)]

        run(main())


class TestAppendsOfOnePartitionAreToldOfInOrder:
    def test_when_they_wait_for_the_disk(self, folder: Path) -> None:
        async def main() -> None:
            async with desk(folder, EVERY_SECOND) as at:
                for which in range(3):
                    at.append(which)
                assert at.told == [(0, NONE)]
                at.flusher.gate.set()
                await at.appends.drain()
                assert at.told == [(0, NONE), (1, NONE), (2, NONE)]

        run(main())

    def test_when_a_later_one_is_refused(self, folder: Path) -> None:
        async def main() -> None:
            async with desk(folder, EVERY_SECOND) as at:
                at.append(0)
                at.append(1)
                at.partition.resign()
                at.append(2)
                assert at.told == [(0, NONE)]
                at.flusher.gate.set()
                await at.appends.drain()
                lost = ErrorCode.NOT_LEADER_OR_FOLLOWER
                assert at.told == [(0, NONE), (1, lost), (2, lost)]

        run(main())

    def test_when_a_later_one_has_less_time(self, folder: Path) -> None:
        async def main() -> None:
            async with desk(folder) as at:
                at.follow()
                at.append(1)
                at.append(2, timeout_ms=0)
                await asyncio.sleep(0.001)  # a timer set after that of the append runs after it
                assert len(at.purgatory) == 1
                assert at.told == []
                at.fetched(1)
                await at.until_told(2)
                assert at.told == [(1, NONE), (2, ErrorCode.REQUEST_TIMED_OUT)]

        run(main())

    def test_when_being_told_makes_somebody_append_again(self, folder: Path) -> None:
        async def main() -> None:
            async with desk(folder, EVERY_SECOND) as at:
                at.append(0)

                def again(error: ErrorCode) -> None:
                    at.append(3)
                    at.told.append((1, error))

                at.put(again)
                at.append(2)
                at.flusher.gate.set()
                await at.until_told(4)
                assert at.told == [(0, NONE), (1, NONE), (2, NONE), (3, NONE)]

        run(main())

    def test_when_one_of_those_told_fails(self, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        async def main() -> None:
            async with desk(folder, EVERY_SECOND) as at:
                at.append(0)

                def fail(error: ErrorCode) -> None:
                    raise RuntimeError("a bug")

                at.put(fail)
                at.append(2)
                at.flusher.gate.set()
                await at.appends.drain()
                assert at.told == [(0, NONE), (2, NONE)]

        with caplog.at_level(logging.ERROR):
            run(main())
        assert "offset 1 failed" in caplog.text
