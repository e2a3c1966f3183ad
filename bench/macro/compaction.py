"""How fast a log is compacted: bytes of records per second, with the ratio to a bare copy of the file.

Run `python -m bench.macro.compaction [--megabytes M]`.  One core.  A log of records in batches of 64 KB is
written, rolled and cleaned once; keys repeat, so that a part of the records goes.  `copy` reads the same
file into memory and writes it to another one, with a sync, in the same turn: the floor.
A clean reads every dirty byte twice (map, rewrite) and syncs what it wrote; rates count each byte once, as
it is uncompressed.  CPU seconds are those of the process, since the machine may be shared; the aim is
100 MB/s of 1-KB records on one core.  Files are in a temporary folder in `--folder` and are removed.
"""

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from barnabas.base.clock import SystemClock
from barnabas.base.types import TopicPartition
from barnabas.log.cleaner import Cleaner, CleanerSettings
from barnabas.log.cleaner_jobs import CleaningStats
from barnabas.log.config import LogConfig
from barnabas.log.files import OsFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.records.builder import build_batch
from barnabas.records.codecs import Codec

MEGABYTE = 10**6
BATCH_BYTES = 64 * 1024
RECORD_OVERHEAD = 25  # key and framing


class Shape(NamedTuple):
    name: str
    value_bytes: int
    distinct_share: float  # of the keys; the rest are written again
    codec: Codec = Codec.NONE


SHAPES = (
    Shape("1 KB, every key once", 1000, 1.0),
    Shape("1 KB, each key 2 times", 1000, 0.5),
    Shape("1 KB, each key 10 times", 1000, 0.1),
    Shape("1 KB, lz4, each key 2 times", 1000, 0.5, Codec.LZ4),
    Shape("100 B, each key 2 times", 80, 0.5),
)


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def write_log(folder: Path, shape: Shape, size_bytes: int) -> PartitionLog:
    clock = SystemClock()
    config = LogConfig(compact=True, delete=False, min_cleanable_dirty_ratio=0)
    log = PartitionLog.open(
        OsFiles(), str(folder), TopicPartition("bench", 0), config, now_ms=clock.now_ms(), clean=True
    )
    per_batch = max(1, BATCH_BYTES // (shape.value_bytes + RECORD_OVERHEAD))
    count = size_bytes // (shape.value_bytes + RECORD_OVERHEAD)
    keys = max(1, int(count * shape.distinct_share))
    filler = os.urandom(shape.value_bytes // 2) + bytes(shape.value_bytes - shape.value_bytes // 2)
    now = clock.now_ms()
    for first in range(0, count, per_batch):
        rows = [
            (now, b"key-%012d" % (number % keys), filler, ()) for number in range(first, first + per_batch)
        ]
        batch = memoryview(build_batch(rows, codec=shape.codec))
        log.append_as_leader(batch, leader_epoch=0, now_ms=now)
    log.roll(now)
    log.flush(now_ms=now)
    return log


def copy_cost(source: str, target: str) -> tuple[float, float]:
    """Wall and CPU seconds of copying a file through a buffer, with a sync."""
    began, cpu = time.perf_counter(), cpu_seconds()
    with open(source, "rb", buffering=0) as reader, open(target, "wb", buffering=0) as writer:
        buffer = memoryview(bytearray(2**20))
        while size := reader.readinto(buffer):
            writer.write(buffer[:size])
        os.fdatasync(writer.fileno())
    return time.perf_counter() - began, cpu_seconds() - cpu


def clean_cost(log: PartitionLog) -> tuple[float, float, CleaningStats]:
    cleaner = Cleaner(
        OsFiles(),
        SystemClock(),
        CleanerSettings(),
        logs=lambda: [log],
        high_watermark=lambda each: each.log_end_offset,
    )
    began, cpu = time.perf_counter(), cpu_seconds()
    cleaning = cleaner.pick()
    assert cleaning is not None, "the log is dirty"
    cleaner.clean_now(cleaning)
    return time.perf_counter() - began, cpu_seconds() - cpu, cleaning.stats


def measure(shape: Shape, folder: Path, size_bytes: int) -> str:
    log = write_log(folder / "bench-0", shape, size_bytes)
    file_size = log.size_bytes / MEGABYTE
    copy_wall, copy_cpu = copy_cost(log.segments[0].path, str(folder / "copy"))
    wall, cpu, stats = clean_cost(log)
    log.close(now_ms=SystemClock().now_ms())
    size = stats.records_read * (shape.value_bytes + RECORD_OVERHEAD) / MEGABYTE
    copied, copied_cpu = file_size / copy_wall, file_size / copy_cpu
    return (
        f"{shape.name:<30}{size / wall:>8.0f}{size / cpu:>10.0f}{copied:>8.0f}{copied_cpu:>10.0f}"
        f"{size / cpu / copied_cpu:>8.2f}{stats.records_read / cpu / 1000:>12.0f}"
        f"{100 * stats.bytes_written / stats.bytes_read:>6.0f} %"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    print(
        f"{'':<30}{'MB/s':>8}{'MB/cpu s':>9}{'copy':>9}{'cpu s':>9}{'ratio':>8}{'krec/cpu s':>11}{'left':>10}"
    )
    for shape in SHAPES:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            print(measure(shape, Path(folder), options.megabytes * MEGABYTE), flush=True)


if __name__ == "__main__":
    main()
