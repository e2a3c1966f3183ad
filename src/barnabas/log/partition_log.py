"""One partition's log and all that changes it: append, roll, truncate, delete, flush.

G1  log_start_offset <= log_end_offset; offsets in the log rise strictly.
G2  recovery_point <= log_end_offset: everything below it was synced.
G3  An append that fails leaves the log as it was: nothing of it can be read, the next one takes its place.
G4  A segment begins where the one before it ended, but for what compaction removed and for jumps that
    do not fit into relative offsets.
G5  A batch that is in the log has its leader epoch in the epoch table, on disk before the batch is.

Takes the high watermark as an argument where it matters; it is replication's.  One caller at a time (the
event loop).  What blocks can go to a thread: `prepare_append`, `FlushJob.run`, `PartitionLog.open`, and
removing what `take_removals` returns.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from barnabas.base.buffers import SharedFile
from barnabas.base.types import TopicPartition, Uuid
from barnabas.log.append import PreparedAppend, prepare_append, split_runs
from barnabas.log.checkpoints import read_topic_id, write_topic_id
from barnabas.log.config import LogConfig
from barnabas.log.copied import PreparedCopy, unseen
from barnabas.log.errors import (
    DiskFault,
    FolderMismatch,
    OffsetOutOfRange,
    OffsetsKept,
    RecordTooLarge,
    UnexpectedOffset,
)
from barnabas.log.files import Files
from barnabas.log.flush import FlushJob
from barnabas.log.layout import DELETED, PARTITION_METADATA, SWAP
from barnabas.log.loading import LoadedLog, RecoveryReport, apply_batch, load_log, replay
from barnabas.log.producers import Origin, ProducerStates, SeenBatch
from barnabas.log.reading import ReadableLog, ReadResult
from barnabas.log.rolling import RollRule
from barnabas.log.segment import RELATIVE_OFFSET_MAX, Segment
from barnabas.records.batch import NO_TIMESTAMP, RecordBatch, patch_batch, split_batches

__all__ = ["AppendResult", "FlushJob", "Origin", "PartitionLog", "ReadResult"]


class AppendResult(NamedTuple):
    """What an append did.  For a duplicate the offsets are those of the first time."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int
    """Stamped on the records, or -1 under CreateTime."""
    log_start_offset: int
    size_bytes: int
    duplicate: bool = False
    flush_due: bool = False
    """flush.messages is reached: flush before acknowledging."""
    rolled: bool = False
    """The append began a new segment: flush soon, so that a crash need not check the old one."""


class PartitionLog(ReadableLog):
    """The log in `folder`.  Make one with `open`."""

    __slots__ = (
        "_config",
        "_files_made",
        "_files_synced",
        "_generation",
        "_last_flush_ms",
        "_opened_end",
        "_removals",
        "_rule",
        "_sealed",
        "_snapshots",
        "checkpointed_recovery_point",
        "folder",
        "on_truncated",
        "recovery",
        "recovery_point",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        files: Files,
        folder: str,
        topic_partition: TopicPartition,
        topic_id: Uuid | None,
        config: LogConfig,
        loaded: LoadedLog,
        *,
        now_ms: int,
        clean: bool,
    ) -> None:
        super().__init__(files, loaded)
        self.folder = folder
        self.topic_partition: Final = topic_partition
        self.topic_id = topic_id
        self._config = config
        self.recovery_point = loaded.log_end_offset  # it was closed and synced, or recovered and synced
        self.checkpointed_recovery_point = 0
        """What the data folder has written down; a log must not be cut below it without a new one."""
        self.on_truncated: Callable[[], None] | None = None
        """Writes the recovery points down; called when a cut made the written one too high."""
        self.recovery: RecoveryReport | None = loaded.report
        self._snapshots: Final = loaded.snapshots
        self._rule = RollRule(loaded.segments.active, config, since_ms=now_ms)
        self._last_flush_ms = now_ms
        self._files_made = 1  # counts changes of the folder,
        self._files_synced = 0  # and how many of them a flush has made durable
        self._opened_end = loaded.log_end_offset if clean else -1
        self._generation = 0  # counts truncations: a flush begun before one proves nothing
        self._removals: list[tuple[int, list[str]]] = []
        self._sealed: list[tuple[Segment, str]] = []  # rolled since the last flush, with their snapshots

    @classmethod
    def open(
        cls,
        files: Files,
        folder: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        *,
        now_ms: int,
        topic_id: Uuid | None = None,
        clean: bool = False,
        recovery_point: int | None = None,
        log_start_offset: int = 0,
    ) -> "PartitionLog":
        """Open the log in `folder`, or make it.

        `clean` promises that the log was closed; else all behind `recovery_point` is checked.
        Raises CorruptSegment, FolderMismatch when the folder belongs to another topic id, or DiskFault.
        """
        files.make_folder(folder)
        metadata = f"{folder}/{PARTITION_METADATA}"
        known_id = read_topic_id(files, metadata)
        if known_id is None and topic_id is not None:
            write_topic_id(files, metadata, topic_id)
        elif topic_id is not None and known_id != topic_id:
            raise FolderMismatch(f"{folder} belongs to another topic of the same name")
        loaded = load_log(
            files,
            folder,
            config,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )
        return cls(
            files,
            folder,
            topic_partition,
            known_id or topic_id,
            config,
            loaded,
            now_ms=now_ms,
            clean=clean and not loaded.report.scanned_bytes,
        )

    def __repr__(self) -> str:
        return f"PartitionLog({self.folder!r}, {self.log_start_offset}, {self.log_end_offset})"

    # -- what it holds -------------------------------------------------------------------------

    @property
    def config(self) -> LogConfig:
        """The topic's settings; new ones hold from the next append on."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self.segments.active.index_interval_bytes = config.index_interval_bytes
        self._rule = RollRule(self.segments.active, config, since_ms=self._rule.since_ms)

    # -- appending -----------------------------------------------------------------------------

    def append_as_leader(
        self,
        batches: memoryview | PreparedAppend,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
    ) -> AppendResult:
        """Give the batches the next offsets and write them.

        Bytes that are not prepared are checked first, here and now: see `prepare_append` for what that
        raises.  Raises also OutOfOrderSequence, InvalidProducerEpoch, InvalidTransactionState,
        CoordinatorFenced, RecordTooLarge, and DiskFault or DiskFull when writing failed (G3).
        """
        if not isinstance(batches, PreparedAppend):
            batches = prepare_append(batches, self.config, now_ms=now_ms, origin=origin)
        data, checked, origin, log_append_time = batches
        first = checked[0]
        if self._config.offsets_kept:
            return self._not_ours(first)
        if first.producer_id >= 0 and (seen := self.producers.check(first, origin)) is not None:
            return self._duplicate(seen, log_append_time)
        size_bytes = len(data)
        if size_bytes > self._config.segment_bytes:
            raise RecordTooLarge(
                f"{size_bytes} bytes are more than segment.bytes={self._config.segment_bytes}"
            )
        base_offset = offset = self.log_end_offset
        max_timestamp = NO_TIMESTAMP
        marks: list[tuple[int, int, int]] = []
        for batch in checked:
            patch_batch(data, batch.position, offset, leader_epoch)
            batch.base_offset = offset
            batch.leader_epoch = leader_epoch
            last_offset = offset + batch.last_offset_delta
            marks.append((batch.position, last_offset, batch.max_timestamp))
            if batch.max_timestamp > max_timestamp:
                max_timestamp = batch.max_timestamp
            offset = last_offset + 1
        rolled = self._roll_if_due(size_bytes, base_offset, offset - 1, max_timestamp, now_ms)
        if leader_epoch != self.epochs.latest_epoch:
            self.epochs.assign(leader_epoch, base_offset)
        self._write(data, marks, checked)
        return AppendResult(
            base_offset,
            offset - 1,
            max_timestamp,
            log_append_time,
            self.log_start_offset,
            size_bytes,
            False,
            offset - self.recovery_point >= self._config.flush_messages,
            rolled,
        )

    def _duplicate(self, seen: SeenBatch, log_append_time: int) -> AppendResult:
        stamped = seen.timestamp if log_append_time != NO_TIMESTAMP else NO_TIMESTAMP
        return AppendResult(
            seen.first_offset,
            seen.last_offset,
            seen.timestamp,
            stamped,
            self.log_start_offset,
            0,
            duplicate=True,
        )

    def _not_ours(self, first: RecordBatch) -> AppendResult:
        """In a log that keeps offsets nothing may take one of its own.

        No producer wrote here, so a transaction's marker has nothing to end and is left out.
        """
        if not first.is_control:
            raise OffsetsKept(f"{self.topic_partition} keeps the offsets of another cluster")
        end = self.log_end_offset
        return AppendResult(
            end, end - 1, NO_TIMESTAMP, NO_TIMESTAMP, self.log_start_offset, 0, duplicate=True
        )

    def append_copy(self, copy: PreparedCopy, *, leader_epoch: int, now_ms: int) -> AppendResult:
        """Write the batches of a run that are not here yet, at the offsets they have (copied.K2).

        Raises OffsetsKept if the topic is no copy any more, PositionMismatch, or DiskFault; after the last
        one batches before the one that failed may be in the log.
        """
        if not self._config.offsets_kept:
            raise OffsetsKept(
                f"{self.topic_partition} gives offsets of its own: barnabas.offsets.kept is false"
            )
        fresh = unseen(copy, self.log_end_offset, leader_epoch)
        if not fresh:
            first, last = copy.batches[0], copy.batches[-1]
            return AppendResult(
                first.base_offset,
                last.last_offset,
                NO_TIMESTAMP,
                NO_TIMESTAMP,
                self.log_start_offset,
                0,
                duplicate=True,
            )
        return self._append_where_they_are(copy.data, fresh, now_ms)

    def append_as_follower(self, data: memoryview, *, now_ms: int) -> AppendResult | None:
        """Write batches that a leader sent, with the offsets they have; None when there are none.

        The CRC of each is checked.  Raises CorruptBatch, UnexpectedOffset for offsets that are not behind
        the log end, or DiskFault; batches before the one that failed may be in the log then.
        """
        batches = split_batches(data)
        if not batches:
            return None
        expected = self.log_end_offset
        for batch in batches:
            batch.check()
            if batch.base_offset < expected or batch.last_offset_delta < 0:
                raise UnexpectedOffset(
                    f"{self.topic_partition}: {batch!r} came where offset {expected} or more is due"
                )
            expected = batch.next_offset
        return self._append_where_they_are(data, batches, now_ms)

    def _append_where_they_are(
        self, data: memoryview, batches: list[RecordBatch], now_ms: int
    ) -> AppendResult:
        rolled = False
        for run in split_runs(batches, self.config.segment_bytes):
            rolled |= self._append_run(data, run, now_ms)
        return AppendResult(
            batches[0].base_offset,
            batches[-1].last_offset,
            max(batch.max_timestamp for batch in batches),
            NO_TIMESTAMP,
            self.log_start_offset,
            batches[-1].position + batches[-1].size_bytes - batches[0].position,
            False,
            self.log_end_offset - self.recovery_point >= self.config.flush_messages,
            rolled,
        )

    def _append_run(self, data: memoryview, run: list[RecordBatch], now_ms: int) -> bool:
        start, end = run[0].position, run[-1].position + run[-1].size_bytes
        marks = [(batch.position - start, batch.last_offset, batch.max_timestamp) for batch in run]
        max_timestamp = max(batch.max_timestamp for batch in run)
        rolled = self._roll_if_due(
            end - start, run[0].base_offset, run[-1].last_offset, max_timestamp, now_ms
        )
        for batch in run:
            if batch.leader_epoch >= 0 and batch.leader_epoch != self.epochs.latest_epoch:
                self.epochs.assign(batch.leader_epoch, batch.base_offset)
        self._write(data[start:end], marks, run)
        return rolled

    def _write(self, data: memoryview, marks: list[tuple[int, int, int]], batches: list[RecordBatch]) -> None:
        active = self.segments.active
        active.append(data, marks)
        self.log_end_offset = end = marks[-1][1] + 1
        producers = self.producers
        for batch in batches:
            if batch.producer_id >= 0:
                apply_batch(producers, active, batch)
        producers.end_offset = end

    # -- rolling -------------------------------------------------------------------------------

    def _roll_if_due(
        self, size_bytes: int, first_offset: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> bool:
        if not self._rule.due(size_bytes, last_offset, max_timestamp, now_ms):
            return False
        far = last_offset - self.log_end_offset > RELATIVE_OFFSET_MAX
        self.roll(now_ms, first_offset if far else None)
        return True

    def roll(self, now_ms: int, base_offset: int | None = None) -> None:
        """Begin a new active segment, unless the active one is empty.

        It begins at the log end (G4), or at `base_offset` if that is further on.
        """
        base_offset = max(base_offset or 0, self.log_end_offset)
        active = self.segments.active
        if not active.size_bytes and active.base_offset == base_offset:
            return
        fresh = self._new_segment(base_offset)
        try:
            fresh.create(self.config.segment_bytes if self.config.preallocate else 0)
            active.seal()
            self.producers.end_offset = base_offset
            snapshot = self._snapshots.write(self.producers, base_offset, sync=False)
        except DiskFault:
            fresh.remove_files()
            raise
        if not active.size_bytes:
            self.segments.remove(active)
            active.remove_files()
        self.segments.add(fresh)
        self._sealed.append((active, snapshot))
        self._rule = RollRule(self.segments.active, self._config, since_ms=now_ms)
        self._files_made += 1

    def _new_segment(self, base_offset: int) -> Segment:
        return Segment(
            self._files,
            self.folder,
            base_offset,
            index_interval_bytes=self.config.index_interval_bytes,
        )

    def start_epoch(self, epoch: int) -> None:
        """A leader begins `epoch` at the log end; durable on return."""
        self.epochs.assign(epoch, self.log_end_offset)

    # -- cutting -------------------------------------------------------------------------------

    def truncate_to(self, offset: int, *, now_ms: int) -> None:
        """Drop every record from `offset` on, durably; nothing happens when it is not below the log end.

        What was dropped must not come back after a crash: it may contradict what is written next.
        A batch that straddles `offset` goes whole, and the log then ends before it; in a gap of a compacted
        log it ends with the batch before the gap.
        """
        if offset >= self.log_end_offset:
            return
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset, now_ms=now_ms)
            return
        self._generation += 1
        slot = self.segments.floor_slot(offset)
        for segment in reversed(self.segments.from_slot(slot + 1)):
            self.segments.remove(segment)
            self._bury(segment, now_ms)
        self._files.sync_folder(self.folder)
        self.segments.active.truncate_to(offset)
        end = self.segments.active.next_offset
        self._end_at(end)
        self.log_start_offset = min(self.log_start_offset, end)
        if self.epochs.truncate_from_end(end):
            self.epochs.write()
        self._snapshots.remove_above(end)
        self.producers = self._snapshots.newest(end)
        replay(self._files, self.segments, self.producers, end)
        self._check_point()
        self._rule = RollRule(self.segments.active, self._config, since_ms=now_ms)

    def truncate_fully_and_start_at(self, offset: int, *, now_ms: int) -> None:
        """Drop everything; the log is empty and begins at `offset`."""
        self._generation += 1
        fresh = self._new_segment(offset)
        for segment in self.segments:
            self.segments.remove(segment)
            self._bury(segment, now_ms)
        fresh.create(self.config.segment_bytes if self.config.preallocate else 0)
        self._files.sync_folder(self.folder)
        self.segments.add(fresh)
        self._sealed = []
        self._end_at(offset)
        self.recovery_point = offset
        self.log_start_offset = offset
        self.epochs.clear()
        self._snapshots.remove_all()
        self.producers = ProducerStates(offset)
        self._check_point()
        self._rule = RollRule(self.segments.active, self._config, since_ms=now_ms)
        self._files_made += 1

    def _check_point(self) -> None:
        """Never leave a recovery point on disk that is behind what was synced: loading would believe it."""
        if self.on_truncated is not None and self.checkpointed_recovery_point > self.recovery_point:
            self.on_truncated()

    def _end_at(self, offset: int) -> None:
        self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)

    def advance_log_start(self, offset: int, *, high_watermark: int | None = None) -> bool:
        """Hide the records below `offset`; says whether that changed anything.

        Whole segments below it can then go: `delete_segments_below`.
        Raises OffsetOutOfRange above the high watermark, or the log end when none is given.
        """
        bound = self.log_end_offset if high_watermark is None else min(high_watermark, self.log_end_offset)
        if offset > bound:
            raise OffsetOutOfRange(offset, self.log_start_offset, bound)
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.epochs.truncate_from_start(offset)  # written with the next flush: opening does the same
        return True

    def delete_segments_below(self, offset: int, *, now_ms: int) -> int:
        """Drop the segments that lie wholly below `offset`, never the active one; returns their bytes.

        Raises the log start to the first segment that stays.  The files are renamed now and removed
        after file.delete.delay.ms, by `purge`.
        """
        deleted = 0
        while len(self.segments) > 1 and self.segments[1].base_offset <= offset:
            segment = self.segments[0]
            self.segments.remove(segment)
            deleted += segment.size_bytes
            self._snapshots.remove(segment.base_offset)
            self._bury(segment, now_ms)
        if deleted:
            self.advance_log_start(max(self.segments[0].base_offset, self.log_start_offset))
        return deleted

    def replace_segments(self, fresh: Sequence[Segment], old: Sequence[Segment], *, now_ms: int) -> None:
        """Put compacted segments, complete and synced under `.cleaned`, in the place of the originals.

        A crash at any point leaves either the originals or the replacement (loading's L5): changes of
        names last in order.  Only renames happen here; the caller syncs the folder afterwards, on a thread.
        """
        for segment in sorted(fresh, key=lambda each: each.base_offset, reverse=True):
            segment.rename(SWAP)
        for segment in old:
            self.segments.remove(segment)
            self._bury(segment, now_ms)
        for segment in fresh:
            segment.rename("")
            self.segments.add(segment)

    def _bury(self, segment: Segment, now_ms: int) -> None:
        segment.rename(DELETED)
        self._removals.append((now_ms + self.config.file_delete_delay_ms, segment.paths))

    def take_removals(self, now_ms: int) -> list[str]:
        """The files of deleted segments whose time has come; the caller removes them."""
        due = [removal for removal in tuple(self._removals) if removal[0] <= now_ms]
        for removal in due:
            self._removals.remove(removal)  # and not a new list: `purge` may run on a thread
        return [path for _, paths in due for path in paths]

    def purge(self, now_ms: int) -> int:
        """Remove the files of deleted segments whose time has come; says how many."""
        due = self.take_removals(now_ms)
        for path in due:
            self._files.remove(path)
        return len(due)

    # -- durability ----------------------------------------------------------------------------

    def flush_due(self, now_ms: int) -> bool:
        """Whether flush.messages or flush.ms asks for a flush."""
        unflushed = self.log_end_offset - self.recovery_point
        if unflushed <= 0:
            return False
        config = self.config
        return unflushed >= config.flush_messages or now_ms - self._last_flush_ms >= config.flush_ms

    def begin_flush(self) -> FlushJob:
        """What to sync so that all that is in the log now is durable; call `finish_flush` after its `run`."""
        to_sync: list[SharedFile] = []
        active = self.segments.active
        for segment in self.segments.from_slot(self.segments.floor_slot(self.recovery_point)):
            # Recovery makes the indexes of the recovery point's segment anew: they need not last.
            to_sync += segment.files_to_sync(indexes=segment is not active)
        for sealed, snapshot in self._sealed:
            if sealed in self.segments:
                to_sync += sealed.files_to_sync()
            if self._files.exists(snapshot):
                to_sync.append(self._files.open(snapshot))
        return FlushJob(
            self._files,
            to_sync,
            self.folder if self._files_made > self._files_synced else None,
            end_offset=self.log_end_offset,
            generation=self._generation,
            sealed=len(self._sealed),
            files_made=self._files_made,
        )

    def finish_flush(self, job: FlushJob, *, now_ms: int) -> None:
        """The job ran: move the recovery point, unless the log was truncated meanwhile."""
        self._last_flush_ms = now_ms
        self._files_synced = max(self._files_synced, job.files_made)
        if job.generation == self._generation:
            self.recovery_point = max(self.recovery_point, job.end_offset)
            del self._sealed[: job.sealed]

    def flush(self, *, now_ms: int) -> None:
        """Make everything durable.  Raises DiskFault."""
        job = self.begin_flush()
        job.run()
        self.finish_flush(job, now_ms=now_ms)

    def expire_producers(self, now_ms: int, expiration_ms: int) -> int:
        """Forget idle producers; says how many."""
        return self.producers.expire(now_ms, expiration_ms)

    def close(self, *, now_ms: int) -> None:
        """Make everything durable and let go of all files; what was deleted is removed.

        After this the log opens again with `clean`.  Raises DiskFault.
        """
        untouched = self._generation == 0 and self._files_made == 1 and not self._removals
        if untouched and self._opened_end == self.log_end_offset:
            self.release()  # as it was found, and it was found clean
            return
        self.segments.active.seal()
        self.flush(now_ms=now_ms)
        for file in self.segments.active.files_to_sync():
            self._files.sync(file)
        self.epochs.write()
        # Even if there is one of this offset: a crash in between may have forgotten what it remembers.
        self._snapshots.write(self.producers, self.log_end_offset, sync=True)
        self.release()
        for _, paths in self._removals:
            for path in paths:
                self._files.remove(path)
        self._removals = []

    def release(self) -> None:
        """Let go of file descriptors and mappings; the next use opens them again."""
        for segment in self.segments:
            segment.release()
