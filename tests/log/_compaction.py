"""A log to compact, what readers see of it, and disks that fail at a chosen moment."""

from collections.abc import Sequence
from pathlib import Path

from barnabas.base.buffers import SharedFile
from barnabas.base.clock import ManualClock
from barnabas.log.cleaner import Cleaner, CleanerSettings
from barnabas.log.cleaner_rewrite import plain_payload
from barnabas.log.config import LogConfig
from barnabas.log.files import Bytes, Files, OsFiles
from barnabas.log.partition_log import Origin, PartitionLog
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.codecs import Codec
from barnabas.records.kernel import decode
from barnabas.records.record import Record
from tests.log._make import NOW_MS, append, batch, marker, open_log, read_batches

SMALL = LogConfig(compact=True, delete=False, min_cleanable_dirty_ratio=0.0, delete_retention_ms=1000)

Pair = tuple[str, str | None]


class Bench:
    """A compacted log with its cleaner and a clock of its own; everything is replicated at once."""

    def __init__(
        self,
        folder: Path,
        config: LogConfig = SMALL,
        *,
        files: Files | None = None,
        settings: CleanerSettings | None = None,
        clean: bool = False,
    ) -> None:
        self.files = files or QuickFiles()
        self.folder = folder
        self.clock = ManualClock(NOW_MS)
        self.log = open_log(folder / "topic-0", config, files=self.files, clean=clean)
        self.high_watermark: int | None = None
        self.cleaner = Cleaner(
            self.files,
            self.clock,
            settings or CleanerSettings(),
            logs=lambda: [self.log],
            high_watermark=lambda log: (
                log.log_end_offset if self.high_watermark is None else self.high_watermark
            ),
        )
        self.sequences: dict[int, int] = {}

    def write(
        self,
        *pairs: Pair,
        codec: Codec = Codec.NONE,
        producer_id: int = -1,
        transactional: bool = False,
        timestamp: int | None = None,
    ) -> None:
        """One batch of these keys and values, None being a tombstone."""
        rows = [
            (
                self.clock.now_ms() if timestamp is None else timestamp,
                key.encode(),
                None if value is None else value.encode(),
                (),
            )
            for key, value in pairs
        ]
        sequence = self.sequences.get(producer_id, 0)
        data = build_batch(
            rows,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
            transactional=transactional,
        )
        self.sequences[producer_id] = sequence + len(rows)
        append(self.log, memoryview(data))

    def write_keyless(self, count: int) -> None:
        """Records from the time before the topic was compacted."""
        config, self.log.config = self.log.config, LogConfig()
        append(self.log, batch(count, key=None))
        self.log.config = config

    def end(self, producer_id: int, *, committed: bool) -> None:
        self.log.append_as_leader(
            marker(producer_id, 0, committed=committed, timestamp=self.clock.now_ms()),
            leader_epoch=0,
            now_ms=self.clock.now_ms(),
            origin=Origin.COORDINATOR,
        )

    def roll(self) -> None:
        self.log.roll(self.clock.now_ms())

    def clean(self) -> bool:
        """Clean once, if there is anything to clean; says whether there was."""
        if (cleaning := self.cleaner.pick()) is None:
            return False
        self.cleaner.clean_now(cleaning)
        return True

    def reopen(self, *, crashed: bool = True) -> None:
        """The log as the next process finds it."""
        if not crashed:
            self.log.close(now_ms=self.clock.now_ms())
        self.files = QuickFiles()
        self.log = open_log(self.folder / "topic-0", self.log.config, files=self.files, clean=not crashed)


def batches(log: PartitionLog) -> list[RecordBatch]:
    return read_batches(log)


def records(log: PartitionLog) -> list[Record]:
    """Every data record that a reader of uncommitted data sees."""
    return [record for each in batches(log) if not each.is_control for record in records_of(each)]


def records_of(each: RecordBatch) -> list[Record]:
    return decode(
        plain_payload(each), each.record_count, each.base_offset, each.base_timestamp, each.log_append_time
    )


def committed(log: PartitionLog) -> list[Record]:
    """What a reader of committed data keeps, given the aborted transactions that a fetch answers."""
    aborted = log.aborted_transactions(log.log_start_offset, log.log_end_offset)
    found: list[Record] = []
    ahead = sorted(aborted, key=lambda each: each.first_offset)
    aborting: set[int] = set()
    for each in batches(log):
        while ahead and ahead[0].first_offset <= each.last_offset:
            aborting.add(ahead.pop(0).producer_id)
        if each.is_control:
            aborting.discard(each.producer_id)
        elif not (each.is_transactional and each.producer_id in aborting):
            found += records_of(each)
    return found


def pairs(found: Sequence[Record]) -> list[tuple[int, str, str | None]]:
    return [
        (record.offset, (record.key or b"").decode(), None if record.value is None else record.value.decode())
        for record in found
    ]


def table(found: Sequence[Record]) -> dict[str, str]:
    """The last value of each key: what a reader of a compacted log is after."""
    last: dict[str, str] = {}
    for _, key, value in pairs(found):
        if value is None:
            last.pop(key, None)
        else:
            last[key] = value
    return last


class QuickFiles(OsFiles):
    """The real disk, believed to keep what it was given: syncs cost most of a test's time."""

    def sync(self, file: SharedFile) -> None:
        pass

    def sync_folder(self, path: str) -> None:
        pass


class Crash(BaseException):
    """The process ends here.  Not an Exception: nothing may catch it and tidy up."""


class CrashingFiles(QuickFiles):
    """The real disk until `left` changes were made; then every call ends the process."""

    def __init__(self, left: int = 10**9) -> None:
        self.left = left

    def _change(self) -> None:
        if self.left <= 0:
            raise Crash
        self.left -= 1

    def open(self, path: str, *, create: bool = False) -> SharedFile:
        if create:
            self._change()
        return super().open(path, create=create)

    def append(self, file: SharedFile, position: int, buffers: Sequence[Bytes]) -> None:
        self._change()
        super().append(file, position, buffers)

    def truncate(self, file: SharedFile, size_bytes: int) -> None:
        self._change()
        super().truncate(file, size_bytes)

    def rename(self, old: str, new: str) -> None:
        self._change()
        super().rename(old, new)

    def remove(self, path: str) -> None:
        self._change()
        super().remove(path)

    def sync(self, file: SharedFile) -> None:
        self._change()

    def sync_folder(self, path: str) -> None:
        self._change()
