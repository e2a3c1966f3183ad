"""Checking data folders without a broker: every batch, every record, every index entry, every small file.

What must hold, and is reported with file and position where it does not:

V1  batches follow each other without rubbish, their CRC is right, their offsets rise from batch to batch and
    from segment to segment, and none is below its segment's base
V2  the records of a batch are well formed, rise in offset and end within the batch's last offset
V3  an offset-index entry names the first byte of a batch and its last offset; a time-index entry names an
    offset and the time of its batch; an aborted transaction ends at an abort marker of its producer
V4  leader epochs never fall and are in the epoch table; snapshots and checkpoints can be read and name
    nothing behind the end of the log

A torn tail after a crash is a fault here as well: opening the log would cut it.  Files marked `.deleted`,
`.cleaned` and `.swap` are work in progress and passed over.  Reads only, around the page cache; a folder
that a broker is writing to may show faults at its very end.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

from barnabas.base.errors import StorageFault
from barnabas.base.types import TopicPartition
from barnabas.log.checkpoints import read_meta_properties, read_offsets, read_topic_id
from barnabas.log.cleaner_rewrite import plain_payload
from barnabas.log.epochs import EpochTable
from barnabas.log.files import FileInfo, Files
from barnabas.log.layout import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    INDEX,
    LEADER_EPOCHS,
    LOG,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    offset_name,
    parse_file_name,
    parse_folder_name,
)
from barnabas.log.producer_snapshot import decode_snapshot
from barnabas.log.stored_batches import LegacyEntry, StoredBatches, crc_fault
from barnabas.log.stored_indexes import load_aborted, load_offset_index, load_time_index, sanity_fault
from barnabas.records import kernel
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import read_end_txn_marker
from barnabas.records.errors import RecordError

__all__ = ["Fault", "Verifier", "VerifyStats"]

_Entry = TypeVar("_Entry")
_INDEX_BYTES: Final = 8
_TIME_INDEX_BYTES: Final = 12
_ABORTED_BYTES: Final = 34
_OFFSET_CHECKPOINTS: Final = (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_START_OFFSETS, CLEANER_OFFSETS)


class Fault(NamedTuple):
    """One thing that does not hold."""

    path: str
    position: int | None
    reason: str

    def __str__(self) -> str:
        place = self.path if self.position is None else f"{self.path}, position {self.position}"
        return f"{place}: {self.reason}"


class VerifyStats:
    """How much was looked at."""

    __slots__ = ("batches", "bytes_read", "files", "partitions", "records", "segments")

    def __init__(self) -> None:
        self.partitions = self.segments = self.files = self.batches = self.records = self.bytes_read = 0


class Verifier:
    """Checks data folders and partition folders; `progress` is told how many bytes of segments were read."""

    def __init__(self, files: Files, progress: Callable[[int], None] = lambda count: None) -> None:
        self.stats = VerifyStats()
        self._files: Final = files
        self._progress: Final = progress

    def size_bytes(self, folder: str) -> int:
        """How much `verify` will read, for a progress bar.  Raises DiskFault."""
        names = self._files.list(folder)
        folders = [info.name for info in names if info.is_folder and _is_live(info.name)]
        return _log_bytes(names) + sum(_log_bytes(self._files.list(f"{folder}/{name}")) for name in folders)

    def verify(self, folder: str) -> Iterator[Fault]:
        """The faults of a data folder, or of one partition's folder.  Raises DiskFault if it is not there."""
        folder = folder.rstrip("/")
        names = self._files.list(folder)
        if _is_partition(names):
            yield from self._partition(folder)
            return
        ends: dict[TopicPartition, int] = {}
        for info in sorted(names, key=lambda each: each.name):
            parsed = parse_folder_name(info.name) if info.is_folder else None
            if parsed is not None and _is_live(info.name):
                ends[parsed[0]] = yield from self._partition(f"{folder}/{info.name}")
        yield from self._data_folder(folder, ends)

    # -- the data folder -----------------------------------------------------------------------

    def _data_folder(self, folder: str, ends: dict[TopicPartition, int]) -> Iterator[Fault]:
        try:
            read_meta_properties(self._files, f"{folder}/{META_PROPERTIES}")
        except StorageFault as error:
            yield _fault_of(f"{folder}/{META_PROPERTIES}", error)
        for name in _OFFSET_CHECKPOINTS:
            path = f"{folder}/{name}"
            self.stats.files += 1
            try:
                offsets = read_offsets(self._files, path)
            except StorageFault as error:
                yield _fault_of(path, error)
                continue
            for partition, offset in offsets.items():
                if partition in ends and offset > ends[partition]:
                    yield Fault(path, None, f"{partition} is at {offset}, its log ends at {ends[partition]}")

    # -- a partition ---------------------------------------------------------------------------

    def _partition(self, folder: str) -> Generator[Fault, None, int]:
        """The faults of one log; returns its end offset."""
        self.stats.partitions += 1
        names = {info.name for info in self._files.list(folder, sizes=False)}
        epochs = yield from self._epochs(folder, names)
        try:
            read_topic_id(self._files, f"{folder}/{PARTITION_METADATA}")
        except StorageFault as error:
            yield _fault_of(f"{folder}/{PARTITION_METADATA}", error)
        walk = _Walk(epochs)
        bases = sorted(
            parsed[0] for name in names if (parsed := parse_file_name(name)) and parsed[1:] == (LOG, "")
        )
        for base_offset in bases:
            if base_offset < walk.next_offset:
                yield Fault(
                    f"{folder}/{offset_name(base_offset)}{LOG}",
                    None,
                    f"begins at {base_offset}, the segment before it ends at {walk.next_offset}",
                )
            walk.next_offset = max(walk.next_offset, base_offset)
            yield from self._segment(folder, base_offset, names, walk)
        for name in sorted(names):
            parsed = parse_file_name(name)
            if parsed is not None and parsed[1:] == (SNAPSHOT, ""):
                yield from self._snapshot(f"{folder}/{name}", parsed[0], walk.next_offset)
        if epochs and bases and epochs[-1][1] > walk.next_offset:
            yield Fault(
                f"{folder}/{LEADER_EPOCHS}",
                None,
                f"epoch {epochs[-1][0]} begins at {epochs[-1][1]}, the log ends at {walk.next_offset}",
            )
        return walk.next_offset

    def _epochs(self, folder: str, names: set[str]) -> Generator[Fault, None, list[tuple[int, int]]]:
        path = f"{folder}/{LEADER_EPOCHS}"
        try:
            table = EpochTable(self._files, path, exists=LEADER_EPOCHS in names)
        except StorageFault as error:
            yield _fault_of(path, error)
            return []
        return [(entry.epoch, entry.start_offset) for entry in table.entries]

    def _snapshot(self, path: str, offset: int, log_end_offset: int) -> Iterator[Fault]:
        self.stats.files += 1
        try:
            entries = decode_snapshot(path, self._files.load(path) or b"")
        except StorageFault as error:
            yield _fault_of(path, error)
            return
        if offset > log_end_offset:
            yield Fault(path, None, f"is of offset {offset}, the log ends at {log_end_offset}")
        for entry in entries:
            if entry.last_offset >= offset:
                yield Fault(
                    path,
                    None,
                    f"producer {entry.producer_id} wrote offset {entry.last_offset} after the snapshot",
                )

    # -- a segment -----------------------------------------------------------------------------

    def _segment(self, folder: str, base_offset: int, names: set[str], walk: "_Walk") -> Iterator[Fault]:
        self.stats.segments += 1
        stem = f"{folder}/{offset_name(base_offset)}"
        path = stem + LOG
        indexes = _Indexes(
            self._files, stem, base_offset, aborted=offset_name(base_offset) + TXN_INDEX in names
        )
        self.stats.files += 3
        batches = StoredBatches(self._files, self._files.open_to_read(path))
        for position, batch in batches:
            self.stats.batches += 1
            self.stats.bytes_read += batch.size_bytes
            self._progress(batch.size_bytes)
            if isinstance(batch, LegacyEntry):
                if not batch.is_valid:
                    yield Fault(path, position, f"the CRC of the message at offset {batch.offset} is wrong")
                indexes.see(position, batch.offset, batch.timestamp, None)
                continue
            for reason in walk.faults_of(batch, base_offset):
                yield Fault(path, position, reason)
            self.stats.records += batch.record_count
            indexes.see(position, batch.last_offset, batch.max_timestamp, _aborted_producer(batch))
        if batches.fault is not None:
            yield Fault(path, batches.position, batches.fault)
            self._progress(batches.size_bytes - batches.position)
        yield from indexes.faults()


class _Indexes:
    """What the indexes of one segment claim, ticked off batch by batch (V3)."""

    def __init__(self, files: Files, stem: str, base_offset: int, *, aborted: bool) -> None:
        self._faults: list[Fault] = []
        self._stem: Final = stem
        offsets = self._loaded(stem + INDEX, lambda path: load_offset_index(files, path, base_offset))
        times = self._loaded(stem + TIME_INDEX, lambda path: load_time_index(files, path, base_offset))
        ends = self._loaded(stem + TXN_INDEX, lambda path: load_aborted(files, path)) if aborted else []
        for path, fault in ((stem + INDEX, sanity_fault(offsets)), (stem + TIME_INDEX, sanity_fault(times))):
            if fault is not None:
                self._faults.append(Fault(path, None, f"does not rise: {fault}"))
        for before, after in pairwise(ends):
            if after.last_offset <= before.last_offset:
                reason = f"an abort at {after.last_offset} comes after one at {before.last_offset}"
                self._faults.append(Fault(stem + TXN_INDEX, None, reason))
        self._positions = {each.position: (slot, each.offset) for slot, each in enumerate(offsets)}
        self._times = deque(enumerate(times))
        self._ends = {each.last_offset: (slot, each.producer_id) for slot, each in enumerate(ends)}

    def _loaded(self, path: str, load: Callable[[str], list[_Entry]]) -> list[_Entry]:
        try:
            return load(path)
        except StorageFault as error:
            self._faults.append(_fault_of(path, error))
            return []

    def see(self, position: int, last_offset: int, max_timestamp: int, aborts: int | None) -> None:
        """A batch; `aborts` is the producer whose transaction it aborts."""
        slot, offset = self._positions.pop(position, (0, last_offset))
        if offset != last_offset:
            reason = f"has offset {offset} at position {position}; the batch there ends with {last_offset}"
            self._faults.append(Fault(self._stem + INDEX, slot * _INDEX_BYTES, reason))
        while self._times and self._times[0][1].offset <= last_offset:
            slot, (timestamp, offset) = self._times.popleft()
            if timestamp != max_timestamp:
                reason = f"has time {timestamp} for offset {offset}; the batch there has {max_timestamp}"
                self._faults.append(Fault(self._stem + TIME_INDEX, slot * _TIME_INDEX_BYTES, reason))
        if last_offset in self._ends and self._ends[last_offset][1] == aborts:
            del self._ends[last_offset]

    def faults(self) -> Iterator[Fault]:
        """Everything wrong, once all batches were seen."""
        yield from self._faults
        for position, (slot, offset) in self._positions.items():
            reason = f"has offset {offset} at position {position}; no batch begins there"
            yield Fault(self._stem + INDEX, slot * _INDEX_BYTES, reason)
        for slot, (_, offset) in self._times:
            reason = f"has offset {offset}, behind the last batch"
            yield Fault(self._stem + TIME_INDEX, slot * _TIME_INDEX_BYTES, reason)
        for offset, (slot, producer_id) in self._ends.items():
            reason = f"has an abort of producer {producer_id} at {offset}; no such marker is there"
            yield Fault(self._stem + TXN_INDEX, slot * _ABORTED_BYTES, reason)


class _Walk:
    """What carries over from batch to batch of a partition."""

    def __init__(self, epochs: list[tuple[int, int]]) -> None:
        self.next_offset = 0
        self._epoch = -1
        self._epochs: Final = epochs

    def faults_of(self, batch: RecordBatch, base_offset: int) -> Iterator[str]:
        damaged = crc_fault(batch)
        if damaged is not None:
            yield damaged
        if batch.base_offset < max(self.next_offset, base_offset):
            yield (
                f"the batch begins at offset {batch.base_offset}, "
                f"{max(self.next_offset, base_offset)} or more is due"
            )
        if batch.last_offset_delta < 0:
            yield f"the batch's last offset delta is {batch.last_offset_delta}"
        elif damaged is None:
            yield from self._faults_inside(batch)
        if batch.leader_epoch < -1:
            yield f"leader epoch {batch.leader_epoch} does not exist"
        elif 0 <= batch.leader_epoch < self._epoch:
            yield f"leader epoch {batch.leader_epoch} comes after {self._epoch}"
        elif batch.leader_epoch > self._epoch and not any(
            epoch == batch.leader_epoch for epoch, _ in self._epochs
        ):
            yield f"leader epoch {batch.leader_epoch} is not in the epoch table"
        self._epoch = max(self._epoch, batch.leader_epoch)
        if damaged is None:
            self.next_offset = max(self.next_offset, batch.next_offset)

    def _faults_inside(self, batch: RecordBatch) -> Iterator[str]:
        try:
            payload = plain_payload(batch)
            kernel.check(payload, batch.record_count, batch.base_timestamp, consecutive=False)
            rows = kernel.keys(payload, batch.record_count, batch.base_offset)
        except RecordError as error:
            yield str(error)
            return
        if rows and rows[-1][0] > batch.last_offset:
            yield f"its last record has offset {rows[-1][0]}, the batch ends with {batch.last_offset}"


def _aborted_producer(batch: RecordBatch) -> int | None:
    if not batch.is_control or batch.record_count == 0:
        return None
    try:
        marker = read_end_txn_marker(batch)
    except RecordError:
        return None  # reported with the batch's records
    return batch.producer_id if marker is not None and not marker.committed else None


def _fault_of(path: str, error: StorageFault) -> Fault:
    return Fault(path, None, str(error).removeprefix(f"{path}: ").removeprefix(f"{path}, "))


def _is_live(name: str) -> bool:
    """Whether a folder is that of a partition, and not on its way out or in."""
    parsed = parse_folder_name(name)
    return parsed is not None and not parsed[1]


def _is_partition(names: list[FileInfo]) -> bool:
    return any(parse_file_name(info.name) is not None for info in names)


def _log_bytes(names: list[FileInfo]) -> int:
    parsed = ((parse_file_name(info.name), info.size_bytes) for info in names)
    return sum(size for name, size in parsed if name is not None and name[1:] == (LOG, ""))
