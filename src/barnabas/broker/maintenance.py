"""What a broker does by the clock: flush, checkpoint, retention, compaction, forgetting idle producers.

M1  A failing round is logged and the next one is tried; nothing here stops the broker.
M2  Blocking work (fsync, removing files, compaction) runs on threads; state changes on the loop.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from barnabas.base.errors import BarnabasError, StorageFault
from barnabas.broker.services import Services
from barnabas.log.cleaner import Cleaner, CleanerSettings
from barnabas.log.directories import LogDirectories
from barnabas.log.errors import DiskFault
from barnabas.log.files import Files
from barnabas.log.page_cache import PageCacheSettings
from barnabas.log.partition_log import PartitionLog
from barnabas.log.retention import enforce_retention
from barnabas.metadata.deltas import ConfigChanged, Delta
from barnabas.metadata.image import ClusterImage
from barnabas.replication.partition import Partition

__all__ = ["Maintenance"]

_log = logging.getLogger(__name__)

FLUSH_CHECK_MS = 1_000
Round = Callable[[], Awaitable[None]]


class Maintenance:
    """The periodic tasks of one broker, from `start` to `stop`."""

    __slots__ = ("_directories", "_files", "_services", "_tasks", "cleaner", "on_disk_fault")

    def __init__(self, services: Services, directories: LogDirectories, files: Files) -> None:
        self._services = services
        self._directories = directories
        self._files = files
        self.cleaner = Cleaner(
            files,
            services.clock,
            CleanerSettings.of(services.settings),
            logs=lambda: [partition.log for partition in services.partitions if partition.state is not None],
            high_watermark=self._high_watermark,
        )
        self._tasks: list[asyncio.Task[None]] = []
        self.on_disk_fault: Callable[[PartitionLog, StorageFault], None] | None = None
        """Hears of a log whose disk failed."""

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
        if self._services.settings.boolean("log.cleaner.enable"):
            backoff = partial(self._interval, "log.cleaner.backoff.ms")
            self._tasks.append(asyncio.create_task(self._every(backoff, self.compact)))

    async def stop(self) -> None:
        self.cleaner.abort_all()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    def _high_watermark(self, log: PartitionLog) -> int:
        partition = self._services.partitions.get(*log.topic_partition)
        return partition.high_watermark if partition is not None and partition.state is not None else 0

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
                await self._services.flusher.flush(partition.log)

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
                self._failed(partition.log, fault)
            await asyncio.sleep(0)
        await self._services.offload.run(self._directories.purge)

    async def follow(self, image: ClusterImage, deltas: Sequence[Delta]) -> None:
        """Takes over settings of the broker that changed while it runs."""
        if any(isinstance(delta, ConfigChanged) for delta in deltas):
            settings = self._services.settings
            self.cleaner.configure(CleanerSettings.of(settings))
            self._services.page_cache.configure(PageCacheSettings.of(settings))

    async def compact(self) -> None:
        """Compacts one log after the other, the filthiest first, until none is worth it."""
        while (cleaning := self.cleaner.pick()) is not None:
            with contextlib.closing(self.cleaner.clean(cleaning)) as steps:
                try:
                    for work in steps:
                        await self._services.offload.run(work)
                except StorageFault as fault:
                    self._failed(cleaning.log, fault)
                    return

    def _failed(self, log: PartitionLog, fault: StorageFault) -> None:
        _log.error("%s: %s", log.topic_partition, fault)
        if self.on_disk_fault is not None and isinstance(fault, DiskFault):
            self.on_disk_fault(log, fault)

    def forget(self, partition: Partition) -> None:
        """The partition is about to be deleted or closed: whatever compacts it gives up."""
        self.cleaner.abort(partition.topic_partition)
        self._services.flusher.forget(partition.topic_partition)

    async def expire_producers(self) -> None:
        expiration_ms = self._services.settings.integer("producer.id.expiration.ms")
        now_ms = self._services.clock.now_ms()
        for partition in self._services.partitions:
            partition.log.expire_producers(now_ms, expiration_ms)
