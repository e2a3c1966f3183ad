"""barnabas.broker.flushing: logs made durable on a thread (F1)."""

import asyncio
import logging
from pathlib import Path

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.types import TopicPartition
from barnabas.broker.flushing import Flusher
from barnabas.broker.offload import Offload
from barnabas.log.config import LogConfig
from barnabas.log.errors import DiskFault
from barnabas.log.files import OsFiles
from barnabas.log.partition_log import FlushJob, PartitionLog
from barnabas.records.builder import build_batch

TP = TopicPartition("t", 0)


def open_log(folder: Path) -> PartitionLog:
    return PartitionLog.open(OsFiles(), str(folder / "t-0"), TP, LogConfig(), now_ms=0)


def append(log: PartitionLog) -> None:
    log.append_as_leader(memoryview(build_batch([(1, None, b"x", ())])), leader_epoch=0, now_ms=1)


def test_everything_in_the_log_is_durable_afterwards(folder: Path) -> None:
    async def main() -> None:
        offload = Offload()
        flusher, log = Flusher(offload, ManualClock()), open_log(folder)
        append(log)
        append(log)
        await flusher.flush(log)
        assert log.recovery_point == log.log_end_offset == 2
        offload.close()

    asyncio.run(main())


def test_who_asks_during_a_flush_gets_the_next_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        offload = Offload()
        flusher, log = Flusher(offload, ManualClock()), open_log(folder)
        jobs: list[int] = []
        run = FlushJob.run

        def counted(job: FlushJob) -> None:
            jobs.append(job.end_offset)
            run(job)

        monkeypatch.setattr(FlushJob, "run", counted)
        append(log)
        first = asyncio.ensure_future(flusher.flush(log))
        await asyncio.sleep(0)
        append(log)
        append(log)
        await asyncio.gather(first, *(flusher.flush(log) for _ in range(5)))
        assert log.recovery_point == 3
        assert jobs == [1, 3], "one flush serves all who waited"
        offload.close()

    asyncio.run(main())


def test_flushes_in_the_background_are_waited_for_at_the_end(folder: Path) -> None:
    async def main() -> None:
        offload = Offload()
        flusher, log = Flusher(offload, ManualClock()), open_log(folder)
        append(log)
        flusher.flush_soon(log)
        await flusher.drain()
        assert log.recovery_point == 1
        flusher.forget(TP)
        flusher.forget(TP)
        offload.close()

    asyncio.run(main())


def test_a_disk_that_fails_is_told_to_who_waits_and_logged_for_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        offload = Offload()
        flusher, log = Flusher(offload, ManualClock()), open_log(folder)
        append(log)

        def fail(job: FlushJob) -> None:
            raise DiskFault("/data", "broken")

        monkeypatch.setattr(FlushJob, "run", fail)
        with pytest.raises(DiskFault):
            await flusher.flush(log)
        assert log.recovery_point == 0
        with caplog.at_level(logging.ERROR):
            flusher.flush_soon(log)
            await flusher.drain()
        assert [record.getMessage().split(":")[0] for record in caplog.records] == [
            "t-0 could not be flushed"
        ]
        offload.close()

    asyncio.run(main())
