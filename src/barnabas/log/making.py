"""Making the logs of new partitions, many at once.

M1  A log is handed over when its files, its folder and the folder's own name are on disk, not before.
M2  A partition whose log cannot be made fails alone; a data folder whose names cannot be synced fails all
    that were made in it.

Nearly all of the time goes into syncs, which a file system carries out together for those who wait at the
same time: so several threads make logs, and one sync of the data folder serves them all.  `run` is for a
thread; it touches nothing but the new folders.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from barnabas.base.errors import StorageFault
from barnabas.base.types import TopicPartition, Uuid
from barnabas.log.config import LogConfig
from barnabas.log.errors import DiskFault
from barnabas.log.files import Files
from barnabas.log.partition_log import PartitionLog

__all__ = ["LogMaking", "NewPartition"]

_THREADS: Final = 8


class NewPartition(NamedTuple):
    """A partition that needs a log."""

    partition: TopicPartition
    topic_id: Uuid | None
    config: LogConfig


class LogMaking:
    """One run of making logs.  `placed` says in which data folder each goes."""

    __slots__ = ("_files", "_now_ms", "found", "placed")

    def __init__(
        self,
        files: Files,
        placed: Sequence[tuple[str, NewPartition]],
        found: dict[TopicPartition, PartitionLog | StorageFault],
        now_ms: int,
    ) -> None:
        self.placed: Final = placed
        self.found: Final = found
        """By partition: the log, or why there is none.  Complete after `run`."""
        self._files: Final = files
        self._now_ms: Final = now_ms

    def run(self) -> None:
        """Make the logs, durably; raises nothing but our own bugs."""
        if len(self.placed) <= 1:
            made = [self._make(folder, new) for folder, new in self.placed]
        else:
            with ThreadPoolExecutor(min(_THREADS, len(self.placed)), thread_name_prefix="log-making") as pool:
                made = list(pool.map(lambda each: self._make(*each), self.placed))
        faults = {folder: self._sync_names(folder) for folder in {folder for folder, _ in self.placed}}
        for (folder, new), log in zip(self.placed, made, strict=True):
            self.found[new.partition] = faults[folder] or log

    def _make(self, folder: str, new: NewPartition) -> PartitionLog | StorageFault:
        try:
            return PartitionLog.open(
                self._files,
                f"{folder}/{new.partition}",
                new.partition,
                new.config,
                now_ms=self._now_ms,
                topic_id=new.topic_id,
            )
        except StorageFault as fault:
            return fault

    def _sync_names(self, folder: str) -> DiskFault | None:
        try:
            self._files.sync_folder(folder)
        except DiskFault as fault:
            return fault
        return None
