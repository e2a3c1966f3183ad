"""What a broker does by the clock: flush, checkpoint, retention, compaction, forgetting idle producers.

M1  A failing round is logged and the next one is tried; nothing here stops the broker.
M2  Blocking work (fsync, removing files, compaction) runs on threads; state changes on the loop.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from barnabas.base.errors import BarnabasError, StorageFault
from barnabas.broker.services import Services
from barnabas.log.directories import LogDirectories
from barnabas.log.files import Files
from barnabas.log.retention import enforce_retention
from barnabas.replication.partition import Partition

__all__ = ["Maintenance"]

_log = logging.getLogger(__name__)

FLUSH_CHECK_MS = 1_000
Round = Callable[[], Awaitable[None]]


class Maintenance:
    """The periodic tasks of one broker, from `start` to `stop`."""

    __slots__ = ("_directories", "_files", "_services", "_tasks")

    def __init__(self, services: Services, directories: LogDirectories, files: Files) -> None:
        self._services = services
        self._directories = directories
        self._files = files
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        rounds: tuple[tuple[str, Round], ...] = (
            ("replica.high.watermark.checkpoint.interval.ms", self.checkpoint_high_watermarks),
            ("log.flush.offset.checkpoint.interval.ms", self.checkpoint_logs),
            ("log.retention.check.interval.ms", self.retain),
            ("producer.id.expiration.check.interval.ms", self.expire_producers),
        )
        for setting, work in rounds:
            self._tasks.append(asyncio.create_task(self._every(partial(self._interval, setting), work)))
        self._tasks.append(asyncio.create_task(self._every(lambda: FLUSH_CHECK_MS, self.flush)))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    def _interval(self, setting: str) -> int:
        return self._services.settings.integer(setting)

    async def _every(self, interval_ms: Callable[[], int], work: Round) -> None:
        while True:
            await asyncio.sleep(interval_ms() / 1000)
            try:
                await work()
            except BarnabasError as error:
                _log.error("%s: %s", work.__name__, error)
            except Exception:
                _log.exception("%s failed", work.__name__)

    async def flush(self) -> None:
        """Syncs the logs that flush.ms or flush.messages says are due."""
        now_ms = self._services.clock.now_ms()
        for partition in self._services.partitions:
            if partition.log.flush_due(now_ms):
                await self.flush_log(partition)

    async def flush_log(self, partition: Partition) -> None:
        job = partition.log.begin_flush()
        await self._services.offload.run(job.run)
        partition.log.finish_flush(job, now_ms=self._services.clock.now_ms())

    async def checkpoint_high_watermarks(self) -> None:
        marks = {
            partition.topic_partition: partition.state.high_watermark
            for partition in self._services.partitions
            if partition.state is not None
        }
        await self._services.offload.run(partial(self._directories.write_high_watermarks, marks))

    async def checkpoint_logs(self) -> None:
        await self._services.offload.run(self._directories.checkpoint)

    async def retain(self) -> None:
        """Deletes what is too old, too much, or below the log start; removes what was deleted before."""
        for partition in self._services.partitions:
            if partition.state is None:
                continue
            try:
                enforce_retention(
                    partition.log,
                    self._files,
                    high_watermark=partition.high_watermark,
                    now_ms=self._services.clock.now_ms(),
                )
            except StorageFault as fault:
                _log.error("retention of %s: %s", partition.topic_partition, fault)
            await asyncio.sleep(0)
        await self._services.offload.run(self._directories.purge)

    async def expire_producers(self) -> None:
        expiration_ms = self._services.settings.integer("producer.id.expiration.ms")
        now_ms = self._services.clock.now_ms()
        for partition in self._services.partitions:
            partition.log.expire_producers(now_ms, expiration_ms)
