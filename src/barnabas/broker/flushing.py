"""Logs made durable on a thread: before an acknowledgement that promises it, or soon after a segment is full.

F1  One flush of a log runs at a time; whoever asks meanwhile gets the next one, which covers their append.
"""

import asyncio
import logging

from barnabas.base.clock import Clock
from barnabas.base.errors import StorageFault
from barnabas.base.types import TopicPartition
from barnabas.broker.offload import Offload
from barnabas.log.partition_log import PartitionLog

__all__ = ["Flusher"]

_log = logging.getLogger(__name__)


class Flusher:
    """Runs the logs' flush jobs.  On the event loop."""

    __slots__ = ("_clock", "_locks", "_offload", "_tasks")

    def __init__(self, offload: Offload, clock: Clock) -> None:
        self._offload = offload
        self._clock = clock
        self._locks: dict[TopicPartition, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def flush(self, log: PartitionLog) -> None:
        """Everything that is in the log now is durable on return.  Raises DiskFault."""
        end = log.log_end_offset
        lock = self._locks.setdefault(log.topic_partition, asyncio.Lock())
        async with lock:
            if log.recovery_point >= end:
                return
            job = log.begin_flush()
            await self._offload.run(job.run)
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
