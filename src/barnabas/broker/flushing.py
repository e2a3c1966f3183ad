"""Logs made durable on a thread: before an acknowledgement that promises it, or soon after a segment is full.

F1  One flush of a log runs at a time; whoever asks meanwhile gets the next one, which covers their append.
"""

import asyncio
import logging
from collections.abc import Callable

from barnabas.base.clock import Clock
from barnabas.base.errors import StorageFault
from barnabas.base.types import TopicPartition
from barnabas.broker.offload import Offload
from barnabas.log.errors import DiskFault
from barnabas.log.partition_log import PartitionLog

__all__ = ["Flusher"]

_log = logging.getLogger(__name__)


class Flusher:
    """Runs the logs' flush jobs.  On the event loop."""

    __slots__ = ("_clock", "_locks", "_offload", "_tasks", "on_disk_fault")

    def __init__(self, offload: Offload, clock: Clock) -> None:
        self._offload = offload
        self._clock = clock
        self._locks: dict[TopicPartition, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.on_disk_fault: Callable[[PartitionLog, StorageFault], None] | None = None
        """Hears of a log whose disk does not sync any more."""

    async def flush(self, log: PartitionLog) -> None:
        """Everything that is in the log now is durable on return.  Raises DiskFault."""
        end = log.log_end_offset
        lock = self._locks.setdefault(log.topic_partition, asyncio.Lock())
        async with lock:
            if log.recovery_point >= end:
                return
            job = log.begin_flush()
            try:
                await self._offload.run(job.run)
            except DiskFault as fault:
                # After a failed sync the kernel may have dropped the pages: the disk cannot be believed.
                if self.on_disk_fault is not None:
                    self.on_disk_fault(log, fault)
                raise
            log.finish_flush(job, now_ms=self._clock.now_ms())

    def flush_soon(self, log: PartitionLog) -> None:
        """Flushes in the background, so that a crash need not check what is full and done."""
        task = asyncio.get_running_loop().create_task(self._flush_quietly(log))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        """Waits for the flushes that are under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def forget(self, topic_partition: TopicPartition) -> None:
        self._locks.pop(topic_partition, None)

    async def _flush_quietly(self, log: PartitionLog) -> None:
        try:
            await self.flush(log)
        except StorageFault as fault:
            _log.error("%s could not be flushed: %s", log.topic_partition, fault)
