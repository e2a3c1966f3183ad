"""The data folders of a broker (`log.dirs`) and the logs in them.

D1  A folder is locked by one process and belongs to one broker of one cluster; meta.properties says which.
D2  A partition lives in one folder, the one that had the fewest when it was made.
D3  The clean-shutdown marker is written after every log of the folder was closed, and removed before any is
    opened, so that a crash at any point leads to recovery.
D4  A folder that fails takes only its own partitions offline; a log that is damaged only itself.

Opening and closing block (threads do the work of several logs at once); the rest is for one caller at a
time, but for what the broker calls by the clock: `purge`, `checkpoint` and `write_high_watermarks` may run
on a thread beside it, and so may the `LogMaking` between `begin_making` and `finish_making`.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from barnabas.base.clock import Clock
from barnabas.base.errors import StorageFault
from barnabas.base.types import TopicPartition, Uuid
from barnabas.log.checkpoints import (
    MetaProperties,
    read_clean_shutdown,
    read_meta_properties,
    read_offsets,
    write_clean_shutdown,
    write_meta_properties,
    write_offsets,
)
from barnabas.log.config import LogConfig
from barnabas.log.errors import CorruptCheckpoint, DiskFault, FolderMismatch, PartitionOffline
from barnabas.log.files import Files, FolderLock
from barnabas.log.layout import (
    CLEAN_SHUTDOWN,
    FOLDER_DELETE,
    FOLDER_FUTURE,
    FOLDER_STRAY,
    HIGH_WATERMARKS,
    LOCK,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    RECOVERY_POINTS,
    marked_folder_name,
    parse_folder_name,
)
from barnabas.log.making import LogMaking, NewPartition
from barnabas.log.partition_log import PartitionLog

__all__ = ["DataFolder", "LogDirectories"]

_log = logging.getLogger(__name__)
_Item = TypeVar("_Item")


class DataFolder:
    """One entry of log.dirs: its lock, its owner, what it remembers, the logs in it."""

    __slots__ = (
        "_doomed",
        "_files",
        "_lock",
        "_writing",
        "broker_epoch",
        "directory_id",
        "failure",
        "future_folders",
        "high_watermarks",
        "logs",
        "path",
        "stray_folders",
        "was_clean",
    )

    def __init__(self, files: Files, path: str) -> None:
        self.path: Final = path
        self.failure: StorageFault | None = None
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.was_clean = False
        self.broker_epoch = -1
        self.directory_id: Uuid | None = None
        self.stray_folders: list[str] = []
        self.future_folders: list[str] = []
        self._files: Final = files
        self._lock: FolderLock | None = None
        self._doomed: list[tuple[int, str]] = []
        self._writing: Final = threading.Lock()

    def take(self, broker_id: int, cluster_id: str | None, new_id: Callable[[], Uuid]) -> str | None:
        """Lock the folder and check whose it is (D1); returns the cluster id it belongs to.

        Raises FolderInUse, FolderMismatch, CorruptCheckpoint or DiskFault.
        """
        files = self._files
        files.make_folder(self.path)
        self._lock = files.lock(f"{self.path}/{LOCK}")
        path = f"{self.path}/{META_PROPERTIES}"
        meta = read_meta_properties(files, path)
        if meta is not None and meta.broker_id != broker_id:
            raise FolderMismatch(f"{path}: belongs to broker {meta.broker_id}, this is {broker_id}")
        known = None if meta is None else meta.cluster_id
        if None not in (known, cluster_id) and known != cluster_id:
            raise FolderMismatch(f"{path}: belongs to cluster {known}, this is {cluster_id}")
        if meta is None or meta.directory_id is None or known is None:
            meta = MetaProperties(broker_id, known or cluster_id, new_id())
            write_meta_properties(files, path, meta)
        self.directory_id = meta.directory_id
        return meta.cluster_id

    def load(
        self, config_of: Callable[[str], LogConfig], clock: Clock, threads: int
    ) -> dict[TopicPartition, StorageFault]:
        """Open every log; returns the damaged ones.  Raises DiskFault."""
        files = self._files
        marker = f"{self.path}/{CLEAN_SHUTDOWN}"
        epoch = read_clean_shutdown(files, marker)
        self.was_clean = epoch is not None
        self.broker_epoch = -1 if epoch is None else epoch
        if self.was_clean:
            files.remove(marker)
            files.sync_folder(self.path)
        recovery_points = self._read_checkpoint(RECOVERY_POINTS)
        start_offsets = self._read_checkpoint(LOG_START_OFFSETS)
        self.high_watermarks = self._read_checkpoint(HIGH_WATERMARKS)
        damaged: dict[TopicPartition, StorageFault] = {}

        def open_one(partition: TopicPartition) -> None:
            folder = f"{self.path}/{partition}"
            try:
                self.logs[partition] = PartitionLog.open(
                    files,
                    folder,
                    partition,
                    config_of(partition.topic),
                    now_ms=clock.now_ms(),
                    clean=self.was_clean,
                    recovery_point=recovery_points.get(partition),
                    log_start_offset=start_offsets.get(partition, 0),
                )
                self._adopt(self.logs[partition], recovery_points.get(partition, 0))
            except DiskFault:
                raise
            except StorageFault as error:
                _log.error("%s stays offline: %s", folder, error)
                damaged[partition] = error

        found = self._find_partitions(clock.now_ms())
        _on_threads(open_one, found, 1 if self.was_clean else threads)
        return damaged

    def _adopt(self, log: PartitionLog, recovery_point: int = 0) -> None:
        log.checkpointed_recovery_point = recovery_point
        log.on_truncated = self.checkpoint

    def add(self, log: PartitionLog) -> None:
        """A new log in this folder."""
        self.logs[log.topic_partition] = log
        self._adopt(log)

    def _read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self._files, f"{self.path}/{name}")
        except CorruptCheckpoint as error:
            # Losing a recovery point costs time, and a log start or high watermark is found again.
            _log.warning("%s; starting without it", error)
            return {}

    def _find_partitions(self, now_ms: int) -> list[TopicPartition]:
        found: list[TopicPartition] = []
        for info in self._files.list(self.path, sizes=False):
            if not info.is_folder or (parsed := parse_folder_name(info.name)) is None:
                continue
            partition, mark = parsed
            if mark == "":
                found.append(partition)
            elif mark == FOLDER_DELETE:
                self._doomed.append((now_ms, f"{self.path}/{info.name}"))
            elif mark == FOLDER_STRAY:
                self.stray_folders.append(info.name)
            else:
                assert mark == FOLDER_FUTURE
                self.future_folders.append(info.name)
        return sorted(found)

    def move_aside(self, partition: TopicPartition, mark: str, unique: str) -> str:
        """Take a log out of service by renaming its folder; returns the new path."""
        log = self.logs.pop(partition)
        log.release()
        target = f"{self.path}/{marked_folder_name(partition, unique, mark)}"
        self._files.rename(log.folder, target)
        self._files.sync_folder(self.path)
        return target

    def doom(self, path: str, due_ms: int) -> None:
        """Remove the folder `path` when `due_ms` has come."""
        self._doomed.append((due_ms, path))

    def purge(self, now_ms: int) -> int:
        """Remove deleted segments and partitions whose time has come; says how many files and folders."""
        count = sum(log.purge(now_ms) for log in tuple(self.logs.values()))
        for due_ms, path in tuple(self._doomed):
            if due_ms <= now_ms:
                self._files.remove_folder(path)
                self._doomed.remove((due_ms, path))
                count += 1
        return count

    def checkpoint(self) -> None:
        """Write down recovery points and log start offsets, durably."""
        with self._writing:  # a truncation may ask for it while the clock does
            logs = tuple(self.logs.items())
            recovery = {partition: log.recovery_point for partition, log in logs}
            write_offsets(self._files, f"{self.path}/{RECOVERY_POINTS}", recovery)
            for partition, log in logs:
                log.checkpointed_recovery_point = recovery[partition]
            starts = {
                partition: log.log_start_offset
                for partition, log in logs
                if log.log_start_offset > log.segments[0].base_offset
            }
            write_offsets(self._files, f"{self.path}/{LOG_START_OFFSETS}", starts)

    def write_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write down the high watermarks of the partitions that live here."""
        here = {tp: offset for tp, offset in high_watermarks.items() if tp in self.logs}
        with self._writing:
            write_offsets(self._files, f"{self.path}/{HIGH_WATERMARKS}", here)

    def close(self, clock: Clock, threads: int, broker_epoch: int) -> None:
        """Close every log, then leave the marker (D3), then unlock."""
        _on_threads(lambda log: log.close(now_ms=clock.now_ms()), self.logs.values(), threads)
        self.checkpoint()
        write_clean_shutdown(self._files, f"{self.path}/{CLEAN_SHUTDOWN}", broker_epoch)
        self.release()

    def release(self) -> None:
        """Unlock without a clean shutdown."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


class LogDirectories:
    """All data folders of the broker, and its logs by partition.  Make one with `open`."""

    __slots__ = ("_clock", "_files", "_new_id", "_threads", "cluster_id", "folders", "offline")

    def __init__(
        self, files: Files, paths: Sequence[str], clock: Clock, new_id: Callable[[], Uuid], threads: int
    ) -> None:
        self._files: Final = files
        self.folders: Final = tuple(DataFolder(files, path) for path in paths)
        self.cluster_id: str | None = None
        self.offline: dict[TopicPartition, StorageFault] = {}
        self._clock: Final = clock
        self._new_id: Final = new_id
        self._threads: Final = threads

    @classmethod
    def open(
        cls,
        files: Files,
        paths: Sequence[str],
        *,
        broker_id: int,
        config_of: Callable[[str], LogConfig],
        clock: Clock,
        new_id: Callable[[], Uuid],
        cluster_id: str | None = None,
        recovery_threads: int = 2,
    ) -> "LogDirectories":
        """Lock the folders and open all logs in them, with recovery after a crash.

        `config_of` gives a topic's settings, `new_id` random ids.  A folder that fails is offline; when all
        do, the first failure is raised.  Raises FolderInUse and FolderMismatch at once, with nothing held.
        """
        directories = cls(files, paths, clock, new_id, recovery_threads)
        try:
            directories._take(broker_id, cluster_id)
        except StorageFault:
            directories.release()
            raise
        for folder in directories.folders:
            if folder.failure is None:
                directories._load(folder, config_of)
        failures = [folder.failure for folder in directories.folders if folder.failure is not None]
        if failures and len(failures) == len(directories.folders):
            directories.release()
            raise failures[0]
        return directories

    def _take(self, broker_id: int, cluster_id: str | None) -> None:
        for folder in self.folders:
            try:
                found = folder.take(broker_id, cluster_id, self._new_id)
            except DiskFault as error:
                self._fail(folder, error)
                continue
            cluster_id = cluster_id or found
        self.cluster_id = cluster_id

    def _load(self, folder: DataFolder, config_of: Callable[[str], LogConfig]) -> None:
        try:
            damaged = folder.load(config_of, self._clock, self._threads)
        except DiskFault as error:
            self._fail(folder, error)
            return
        self.offline.update(damaged)
        for partition in tuple(folder.logs):
            if (other := self._folder_of(partition)) is not folder:
                assert other is not None
                folder.logs.pop(partition)
                self.offline[partition] = FolderMismatch(
                    f"{partition} is in {other.path} and in {folder.path}"
                )

    def _fail(self, folder: DataFolder, error: StorageFault) -> None:
        _log.error("data folder %s is offline: %s", folder.path, error)
        folder.failure = error
        for partition in folder.logs:
            self.offline[partition] = error
        folder.logs.clear()

    # -- logs ----------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[PartitionLog]:
        for folder in self.folders:
            yield from tuple(folder.logs.values())

    def __len__(self) -> int:
        return sum(len(folder.logs) for folder in self.folders)

    def _folder_of(self, partition: TopicPartition) -> DataFolder | None:
        return next((folder for folder in self.folders if partition in folder.logs), None)

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        """The log of a partition, None when there is none here.  Raises PartitionOffline."""
        for folder in self.folders:
            if (log := folder.logs.get(partition)) is not None:
                return log
        if (error := self.offline.get(partition)) is not None:
            raise PartitionOffline(f"{partition} is offline: {error}") from error
        return None

    def create(self, partition: TopicPartition, topic_id: Uuid | None, config: LogConfig) -> PartitionLog:
        """The log of a partition, made when there is none (D2).

        Raises PartitionOffline, FolderMismatch when it is of another topic id, or DiskFault.
        """
        making = self.begin_making([NewPartition(partition, topic_id, config)])
        making.run()
        found = self.finish_making(making)[partition]
        if isinstance(found, StorageFault):
            raise found
        return found

    def begin_making(self, wanted: Sequence[NewPartition]) -> LogMaking:
        """Decides where the logs go that are not there yet; their making can then `run` on a thread."""
        counts = {folder: len(folder.logs) for folder in self._online()}
        placed: list[tuple[str, NewPartition]] = []
        found: dict[TopicPartition, PartitionLog | StorageFault] = {}
        for new in wanted:
            partition = new.partition
            try:
                log = self.get(partition)
            except PartitionOffline as fault:
                found[partition] = fault
                continue
            if log is not None:
                is_other = None not in (new.topic_id, log.topic_id) and new.topic_id != log.topic_id
                text = f"{log.folder} belongs to another topic of the same name"
                found[partition] = FolderMismatch(text) if is_other else log
            elif not counts:
                found[partition] = PartitionOffline(f"{partition}: no data folder is online")
            else:
                folder = min(counts, key=counts.__getitem__)
                counts[folder] += 1
                placed.append((folder.path, new))
        return LogMaking(self._files, placed, found, self._clock.now_ms())

    def finish_making(self, making: LogMaking) -> dict[TopicPartition, PartitionLog | StorageFault]:
        """Takes over what `making` has made; says for each wanted partition its log, or why there is none."""
        by_path = {folder.path: folder for folder in self.folders}
        for path, new in making.placed:
            folder, made = by_path[path], making.found[new.partition]
            if isinstance(made, PartitionLog):
                if folder.failure is None:
                    folder.add(made)
                else:  # it failed while the log was made
                    making.found[new.partition] = folder.failure
        return making.found

    def delete(self, partition: TopicPartition, *, delay_ms: int | None = None) -> bool:
        """Delete a partition: out of sight now, off the disk after file.delete.delay.ms, by `purge`.

        Says whether there was one.
        """
        if (folder := self._folder_of(partition)) is None:
            return False
        delay_ms = folder.logs[partition].config.file_delete_delay_ms if delay_ms is None else delay_ms
        path = folder.move_aside(partition, FOLDER_DELETE, self._new_id().hex())
        folder.doom(path, self._clock.now_ms() + delay_ms)
        return True

    def set_stray(self, partition: TopicPartition) -> str | None:
        """Put a partition aside that the cluster does not assign to this broker; returns its new path.

        Nothing is removed: an operator decides.
        """
        if (folder := self._folder_of(partition)) is None:
            return None
        path = folder.move_aside(partition, FOLDER_STRAY, self._new_id().hex())
        folder.stray_folders.append(path.rpartition("/")[2])
        return path

    def fail(self, log: PartitionLog, error: StorageFault) -> list[TopicPartition]:
        """The disk of `log` failed: its whole folder goes offline (D4).  Returns the partitions lost."""
        folder = self._folder_of(log.topic_partition)
        if folder is None:
            return []
        lost = list(folder.logs)
        self._fail(folder, error)
        return lost

    # -- time-driven ---------------------------------------------------------------------------

    def purge(self) -> int:
        """Remove from disk what was deleted long enough ago; says how many files and folders."""
        now_ms = self._clock.now_ms()
        return sum(folder.purge(now_ms) for folder in self._online())

    def checkpoint(self) -> None:
        """Write down recovery points and log start offsets; a folder that fails goes offline."""
        for folder in self._online():
            try:
                folder.checkpoint()
            except DiskFault as error:
                self._fail(folder, error)

    @property
    def high_watermarks(self) -> dict[TopicPartition, int]:
        """The high watermarks as they were last written down before this start."""
        return {tp: offset for folder in self.folders for tp, offset in folder.high_watermarks.items()}

    def write_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write down high watermarks; a folder that fails goes offline."""
        for folder in self._online():
            try:
                folder.write_high_watermarks(high_watermarks)
            except DiskFault as error:
                self._fail(folder, error)

    def _online(self) -> list[DataFolder]:
        return [folder for folder in self.folders if folder.failure is None]

    def close(self, *, broker_epoch: int = -1) -> None:
        """Shut down cleanly; a folder that fails is left for recovery, and its failure raised at the end."""
        for folder in self._online():
            try:
                folder.close(self._clock, self._threads, broker_epoch)
            except StorageFault as error:
                self._fail(folder, error)
        self.release()
        for folder in self.folders:
            if folder.failure is not None:
                raise folder.failure

    def release(self) -> None:
        """Unlock everything without a clean shutdown."""
        for folder in self.folders:
            folder.release()


def _on_threads(work: Callable[[_Item], None], items: Iterable[_Item], threads: int) -> None:
    """Do `work` on every item, on several threads when asked; raises the first error once all are done."""
    todo = list(items)
    if threads <= 1 or len(todo) <= 1:
        for item in todo:
            work(item)
        return
    with ThreadPoolExecutor(min(threads, len(todo)), thread_name_prefix="log-folder") as pool:
        for done in [pool.submit(work, item) for item in todo]:
            done.result()
