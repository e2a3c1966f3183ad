"""Batches and logs for the tests of this package."""

from pathlib import Path

from barnabas.base.types import TopicPartition
from barnabas.log.config import LogConfig
from barnabas.log.files import Files, OsFiles
from barnabas.log.partition_log import AppendResult, PartitionLog
from barnabas.records.batch import RecordBatch, iter_batches
from barnabas.records.builder import build_batch, end_txn_marker
from barnabas.records.codecs import Codec
from barnabas.records.kernel import decode

NOW_MS = 1_700_000_000_000
PARTITION = TopicPartition("topic", 0)


def batch(
    count: int = 1,
    *,
    value_bytes: int = 20,
    timestamp: int = NOW_MS,
    key: bytes | None = b"key",
    codec: Codec = Codec.NONE,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
    fill: int = 0,
) -> memoryview:
    """A writable batch of `count` equal records; `fill` makes its bytes differ from others."""
    value = bytes([fill & 0xFF]) * value_bytes
    return memoryview(
        build_batch(
            [(timestamp, key, value, ())] * count,
            codec=codec,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
    )


def marker(
    producer_id: int, epoch: int, *, committed: bool, coordinator_epoch: int = 0, timestamp: int = NOW_MS
) -> memoryview:
    return memoryview(
        end_txn_marker(
            committed=committed,
            coordinator_epoch=coordinator_epoch,
            timestamp=timestamp,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
    )


def open_log(
    folder: Path | str,
    config: LogConfig | None = None,
    *,
    files: Files | None = None,
    clean: bool = False,
    recovery_point: int | None = None,
    log_start_offset: int = 0,
    topic_id: bytes | None = None,
) -> PartitionLog:
    return PartitionLog.open(
        files or OsFiles(),
        str(folder),
        PARTITION,
        config or LogConfig(),
        now_ms=NOW_MS,
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        topic_id=topic_id,
    )


def append(log: PartitionLog, data: memoryview, *, leader_epoch: int = 0) -> AppendResult:
    return log.append_as_leader(data, leader_epoch=leader_epoch, now_ms=NOW_MS)


def fill(log: PartitionLog, batches: int, *, count: int = 1, value_bytes: int = 20) -> None:
    """Append many small batches, each with other bytes."""
    for number in range(batches):
        append(log, batch(count, value_bytes=value_bytes, fill=number, timestamp=NOW_MS + number))


def read_batches(log: PartitionLog, offset: int | None = None, max_bytes: int = 10_000) -> list[RecordBatch]:
    """Every batch from `offset` to the log end, each checked."""
    at = log.log_start_offset if offset is None else offset
    found: list[RecordBatch] = []
    while True:
        result = log.read(at, max_bytes=max_bytes)
        if result.slice is None:
            return found
        for each in iter_batches(memoryview(result.slice.read())):
            each.check()
            found.append(each)
        assert result.next_offset > at
        at = result.next_offset


def offsets(log: PartitionLog) -> list[int]:
    """The offset of every record that a reader from the log start sees."""
    return [
        record.offset
        for each in read_batches(log)
        for record in decode(each.payload, each.record_count, each.base_offset, each.base_timestamp)
        if record.offset >= log.log_start_offset
    ]
