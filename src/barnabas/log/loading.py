"""Opening a partition's folder: leftovers resolved, indexes and producers made whole, crash damage cut.

L1  Without a clean shutdown every byte from the recovery point's segment on is read and checked, and the
    indexes of those segments are made anew.
L2  What was synced (below the recovery point) is never dropped: damage there is CorruptSegment.  So is
    damage with whole segments behind it when no recovery point is known, since it then cannot be told from
    a torn tail.  Anything else that does not hold is the tail that a crash tore: it is cut and reported.
    A segment that ends before the next one begins is torn too: it lost whole batches.  In a compacted topic
    that is how things are, so there such a loss (of unsynced batches, by a power failure) goes unseen.
L3  A missing or ill-sized index is rebuilt from its segment, whatever the shutdown was.
L4  What recovery rebuilt or cut is synced before the log is used, so that everything in it is durable then.
L5  Leftovers as in Apache Kafka: `.deleted` and `.cleaned` go; `.swap` is complete, takes the place of the
    segments in its range and gets its own name, unless a `.cleaned` at or below it says that its set is
    not complete.

Blocking, and touches nothing but its folder: many folders may be loaded on threads at once.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from barnabas.log.config import LogConfig
from barnabas.log.epochs import EpochTable
from barnabas.log.errors import CorruptIndex, CorruptSegment
from barnabas.log.files import FileInfo, Files
from barnabas.log.layout import (
    CLEANED,
    DELETED,
    INDEX,
    LEADER_EPOCHS,
    LOG,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    offset_name,
    parse_file_name,
)
from barnabas.log.producers import ProducerStates
from barnabas.log.scan import BatchScanner
from barnabas.log.segment import RELATIVE_OFFSET_MAX, Segment
from barnabas.log.segments import Segments
from barnabas.log.snapshots import Snapshots
from barnabas.log.txn_index import AbortedTransaction
from barnabas.records.batch import RecordBatch

__all__ = ["LoadedLog", "RecoveryReport", "apply_batch", "load_log", "replay"]

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class RecoveryReport:
    """What opening had to mend.  Empty after a clean shutdown."""

    scanned_bytes: int = 0
    cut_bytes: int = 0
    cut_path: str | None = None
    cut_position: int = 0
    cut_reason: str | None = None
    missing_records: int = 0
    """Offsets below the recovery point that are not there: synced once, and lost by the disk or by hand."""
    dropped_segments: list[str] = field(default_factory=list)
    rebuilt_indexes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class LoadedLog:
    """The parts of an open log."""

    segments: Segments
    producers: ProducerStates
    snapshots: Snapshots
    epochs: EpochTable
    log_start_offset: int
    log_end_offset: int
    report: RecoveryReport


def load_log(
    files: Files,
    folder: str,
    config: LogConfig,
    *,
    clean: bool,
    recovery_point: int | None,
    log_start_offset: int = 0,
) -> LoadedLog:
    """Open the log in `folder`, which exists.

    `recovery_point` is the offset below which everything was synced, None when that is not known.
    Raises CorruptSegment (L2) or DiskFault.
    """
    names = _resolve_leftovers(files, folder, config)
    loader = _Loader(files, folder, config, names)
    if not clean:
        loader.recover(recovery_point)
    loaded = loader.finish(log_start_offset, clean)
    if not clean and recovery_point is not None and recovery_point > loaded.log_end_offset:
        loaded.report.missing_records = recovery_point - loaded.log_end_offset
        _log.error(
            "%s: ends at offset %d, but everything below %d had been synced",
            folder,
            loaded.log_end_offset,
            recovery_point,
        )
    return loaded


class _Loader:
    """One loading in progress."""

    def __init__(self, files: Files, folder: str, config: LogConfig, names: dict[str, FileInfo]) -> None:
        self.files = files
        self.folder = folder
        self.config = config
        self.report = RecoveryReport()
        self.segments = Segments()
        self.producers = ProducerStates()
        self.producers_known = False  # whether they are true up to the last recovered segment's end
        self.epochs = EpochTable(files, f"{folder}/{LEADER_EPOCHS}", exists=LEADER_EPOCHS in names)
        self.snapshots = Snapshots(files, folder, _offsets_of(names, SNAPSHOT))
        self._broken: list[Segment] = []
        self._open_segments(names)

    def _open_segments(self, names: dict[str, FileInfo]) -> None:
        logs = _offsets_of(names, LOG)
        for kind in (INDEX, TIME_INDEX, TXN_INDEX):
            for orphan in sorted(_offsets_of(names, kind) - logs):
                _log.warning("%s/%s%s has no segment and goes", self.folder, offset_name(orphan), kind)
                self.files.remove(f"{self.folder}/{offset_name(orphan)}{kind}")
        for base_offset in sorted(logs):
            stem = offset_name(base_offset)
            segment = Segment(
                self.files,
                self.folder,
                base_offset,
                size_bytes=names[stem + LOG].size_bytes,
                index_interval_bytes=self.config.index_interval_bytes,
                has_txn_index=stem + TXN_INDEX in names,
            )
            self.segments.add(segment)
            if not _whole(names, stem + INDEX, 8) or not _whole(names, stem + TIME_INDEX, 12):
                self._broken.append(segment)

    # -- after a crash -------------------------------------------------------------------------

    def recover(self, recovery_point: int | None) -> None:
        """Check all that was not surely synced (L1, L2)."""
        if not len(self.segments):
            return
        first = self.segments.floor_slot(recovery_point or 0)
        if first and self.segments[first].base_offset == recovery_point:
            first -= 1  # sealed after its records were synced, so its indexes may not be
        unsynced = self.segments.from_slot(first)
        self._restore_producers(self.segments[first].base_offset)
        self.producers_known = True
        for number, segment in enumerate(unsynced):
            file_bytes = segment.size_bytes
            later = unsynced[number + 1 :]
            fault = self._rebuild(segment) or self._gap(segment, later)
            if fault is None:
                self._sync(segment)
                continue
            synced = recovery_point is not None and segment.next_offset < recovery_point
            if synced or (recovery_point is None and later):
                raise CorruptSegment(segment.path, segment.size_bytes, fault)
            self._cut(segment, file_bytes, fault, later)
            self._sync(segment)
            break
        self.files.sync_folder(self.folder)

    def _sync(self, segment: Segment) -> None:
        for file in segment.files_to_sync():
            self.files.sync(file)

    def _gap(self, segment: Segment, later: list[Segment]) -> str | None:
        if not later or self.config.compact:
            return None
        missing = later[0].base_offset - segment.next_offset
        if not 0 < missing <= RELATIVE_OFFSET_MAX:
            return None
        return f"ends with offset {segment.next_offset - 1}, {missing} before the next segment begins"

    def _rebuild(self, segment: Segment) -> str | None:
        self.report.scanned_bytes += segment.size_bytes
        if segment in self._broken:
            self._broken.remove(segment)
            self.report.rebuilt_indexes.append(segment.path)

        def visit(batch: RecordBatch) -> None:
            if batch.leader_epoch >= 0:
                self.epochs.learn(batch.leader_epoch, batch.base_offset)
            apply_batch(self.producers, segment, batch)

        return segment.rebuild(visit)

    def _cut(self, segment: Segment, file_bytes: int, fault: str, later: Iterable[Segment]) -> None:
        report = self.report
        report.cut_bytes = file_bytes - segment.size_bytes
        report.cut_path, report.cut_position, report.cut_reason = segment.path, segment.size_bytes, fault
        segment.trim()
        for lost in later:
            report.cut_bytes += lost.size_bytes
            report.dropped_segments.append(lost.path)
            self.segments.remove(lost)
            lost.remove_files()
        _log.warning(
            "%s, position %d: %s; %d unsynced bytes from there on are cut, with %d later segments",
            segment.path,
            segment.size_bytes,
            fault,
            report.cut_bytes,
            len(report.dropped_segments),
        )

    # -- always --------------------------------------------------------------------------------

    def finish(self, log_start_offset: int, clean: bool) -> LoadedLog:
        """Make the parts agree with each other."""
        for segment in self._broken:
            if segment in self.segments:  # not dropped with a torn one before it
                self._rebuild_indexes(segment)
        if len(self.segments) and clean:
            self._check_active()
        log_end_offset = self.segments.active.next_offset if len(self.segments) else log_start_offset
        if log_end_offset < log_start_offset:
            log_end_offset = self._start_over(log_start_offset)
        if not len(self.segments):
            first = Segment(
                self.files,
                self.folder,
                log_start_offset,
                index_interval_bytes=self.config.index_interval_bytes,
            )
            first.create(self.config.segment_bytes if self.config.preallocate else 0)
            self.segments.add(first)
        log_start_offset = max(log_start_offset, self.segments[0].base_offset)
        changed = self.epochs.truncate_from_end(log_end_offset)
        changed |= self.epochs.truncate_from_start(log_start_offset)
        if changed or self.report.scanned_bytes:
            self.epochs.write()
        self.snapshots.remove_strays(self.segments.bases, log_end_offset)
        if not self.producers_known:
            self._restore_producers(log_end_offset)
        self.producers.end_offset = log_end_offset
        return LoadedLog(
            self.segments,
            self.producers,
            self.snapshots,
            self.epochs,
            log_start_offset,
            log_end_offset,
            self.report,
        )

    def _rebuild_indexes(self, segment: Segment) -> None:
        """Indexes anew for a segment that is otherwise believed (L3)."""
        self.report.rebuilt_indexes.append(segment.path)
        self.report.scanned_bytes += segment.size_bytes
        _log.warning("%s: the indexes are rebuilt", segment.path)
        # Aborted transactions that end here may have begun long before, so producers are replayed to it.
        producers = self.snapshots.newest(segment.base_offset)
        replay(self.files, self.segments, producers, segment.base_offset)
        if fault := segment.rebuild(lambda batch: apply_batch(producers, segment, batch)):
            raise CorruptSegment(segment.path, segment.size_bytes, fault)
        self._sync(segment)

    def _check_active(self) -> None:
        active = self.segments.active
        try:
            active.offset_index.check(active.size_bytes)
            active.time_index.check()
            active.txn_index.check()
            if active.size_bytes:
                _ = active.next_offset
        except (CorruptIndex, CorruptSegment) as error:
            _log.warning("%s: %s", active.path, error)
            self._rebuild_indexes(active)

    def _start_over(self, log_start_offset: int) -> int:
        _log.warning(
            "%s: ends at %d, before its start offset %d; its segments go",
            self.folder,
            self.segments.active.next_offset,
            log_start_offset,
        )
        for segment in self.segments:
            self.report.dropped_segments.append(segment.path)
            self.segments.remove(segment)
            segment.remove_files()
        self.epochs.clear()
        self.snapshots.remove_all()
        self.producers, self.producers_known = ProducerStates(log_start_offset), True
        return log_start_offset

    def _restore_producers(self, end_offset: int) -> None:
        self.producers = self.snapshots.newest(end_offset)
        replay(self.files, self.segments, self.producers, end_offset)


def apply_batch(producers: ProducerStates, segment: Segment, batch: RecordBatch) -> None:
    """Let the producer state see a batch of `segment`, and note in its index what that aborts."""
    done = producers.apply(batch)
    if done is not None and done.is_aborted:
        segment.txn_index.append(
            AbortedTransaction(done.producer_id, done.first_offset, done.last_offset, done.last_stable_offset)
        )


def replay(files: Files, segments: Segments, producers: ProducerStates, end_offset: int) -> None:
    """Bring producer state from its `end_offset` up to another, by the batches in between.

    Raises CorruptSegment.
    """
    if not len(segments):
        producers.end_offset = max(producers.end_offset, end_offset)
        return
    for segment in segments.from_slot(segments.floor_slot(producers.end_offset)):
        if segment.base_offset >= end_offset:
            break
        if segment.size_bytes == 0 or (start := segment.locate(producers.end_offset)) < 0:
            continue
        scanner = BatchScanner(files, segment.file, start, segment.size_bytes)
        for batch in scanner:
            if batch.base_offset >= end_offset:
                break
            producers.apply(batch)
        if scanner.fault:
            raise CorruptSegment(segment.path, scanner.position, scanner.fault)
    producers.end_offset = max(producers.end_offset, end_offset)


def _offsets_of(names: Iterable[str], kind: str) -> set[int]:
    parsed = (parse_file_name(name) for name in names)
    return {found[0] for found in parsed if found is not None and found[1:] == (kind, "")}


def _whole(names: dict[str, FileInfo], name: str, entry_bytes: int) -> bool:
    info = names.get(name)
    return info is not None and info.size_bytes % entry_bytes == 0


def _resolve_leftovers(files: Files, folder: str, config: LogConfig) -> dict[str, FileInfo]:
    """The files of the folder by name, once interrupted deletions and compactions are settled (L5)."""
    found = {info.name: info for info in files.list(folder) if not info.is_folder}
    marked = {name: parsed for name in found if (parsed := parse_file_name(name)) is not None and parsed[2]}
    temporary = [name for name in found if name.endswith(".tmp")]
    if not marked and not temporary:
        return found
    cleaned_from = min((offset for offset, _, mark in marked.values() if mark == CLEANED), default=None)
    swaps: list[str] = []
    for name, (offset, _, mark) in marked.items():
        incomplete = cleaned_from is not None and offset >= cleaned_from
        if mark == SWAP and not incomplete:
            swaps.append(name)
        else:
            assert mark in (DELETED, CLEANED, SWAP)
            files.remove(f"{folder}/{name}")
    for name in temporary:
        files.remove(f"{folder}/{name}")
    if swaps:
        _take_swaps(files, folder, config, found, swaps)
    return {info.name: info for info in files.list(folder) if not info.is_folder}


def _take_swaps(
    files: Files, folder: str, config: LogConfig, found: dict[str, FileInfo], swaps: list[str]
) -> None:
    first: int | None = None
    end = 0
    for name in swaps:
        parsed = parse_file_name(name)
        assert parsed is not None
        if parsed[1] != LOG:
            continue
        segment = Segment(
            files,
            folder,
            parsed[0],
            size_bytes=found[name].size_bytes,
            index_interval_bytes=config.index_interval_bytes,
            suffix=SWAP,
        )
        if f"{offset_name(parsed[0])}{INDEX}{SWAP}" not in found:
            segment.rebuild(lambda batch: None)
        first = segment.base_offset if first is None else min(first, segment.base_offset)
        end = max(end, segment.next_offset)
        segment.release()
    for name in found:
        parsed = parse_file_name(name)
        if parsed is None or parsed[2] or parsed[1] == SNAPSHOT or first is None:
            continue
        if first <= parsed[0] < end:
            files.remove(f"{folder}/{name}")
    for info in files.list(folder, sizes=False):
        if info.name.endswith(SWAP):
            files.rename(f"{folder}/{info.name}", f"{folder}/{info.name.removesuffix(SWAP)}")
    files.sync_folder(folder)
