"""barnabas.broker.replay: a partition read back in chunks."""

import asyncio
from pathlib import Path

from barnabas.base.buffers import FileSlice
from barnabas.base.types import TopicPartition
from barnabas.broker.offload import Offload
from barnabas.broker.replay import replay
from barnabas.log.config import LogConfig
from barnabas.log.files import OsFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.records.batch import iter_batches
from barnabas.records.builder import build_batch


def offsets_fed(folder: Path, *, end_offset: int, chunk_bytes: int) -> list[list[int]]:
    """The base offsets of each chunk of a log of five one-record batches that starts at offset 1."""
    log = PartitionLog.open(OsFiles(), str(folder / "t-0"), TopicPartition("t", 0), LogConfig(), now_ms=0)
    for _ in range(5):
        batch = memoryview(build_batch([(1, b"k", b"v", ())]))
        log.append_as_leader(batch, leader_epoch=0, now_ms=1)
    log.advance_log_start(1)
    chunks: list[list[int]] = []

    def feed(piece: FileSlice) -> None:
        chunks.append([batch.base_offset for batch in iter_batches(memoryview(piece.read()))])

    async def main() -> None:
        offload = Offload()
        await replay(log, feed, end_offset=end_offset, chunk_bytes=chunk_bytes, offload=offload)
        offload.close()

    asyncio.run(main())
    return chunks


def test_everything_from_the_log_start_to_the_end_comes_once_and_in_order(folder: Path) -> None:
    assert offsets_fed(folder, end_offset=5, chunk_bytes=1_000_000) == [[1, 2, 3, 4]]


def test_a_chunk_is_at_least_one_batch(folder: Path) -> None:
    assert offsets_fed(folder, end_offset=5, chunk_bytes=1) == [[1], [2], [3], [4]]


def test_nothing_at_or_above_the_end_is_read(folder: Path) -> None:
    assert offsets_fed(folder, end_offset=3, chunk_bytes=1_000_000) == [[1, 2]]
