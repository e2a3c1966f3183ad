"""How fast a log appends, looks up, recovers and opens; ratios to bare system calls in the same run.

    python -m bench.macro.log [--folder F] [append] [lookup] [recovery] [open]

append    batches of one size; `bare` is a loop of os.write of the same bytes to a file of its own, in turns.
          `written`: batches that were checked elsewhere get offsets and are written; `crc`: and are checked
          by CRC; `records`: and every record is walked, as for a client's produce.
lookup    random offsets in logs of up to 10 GB (sparse files: only headers are there), and at the tail.
recovery  opening after a crash: every byte read and checked, indexes made anew.
open      cleanly closed partitions, one segment each: time and memory.
Files are in a temporary folder in `--folder` and are removed.
"""

import argparse
import os
import random
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

from barnabas.base.clock import ManualClock
from barnabas.base.types import TopicPartition
from barnabas.log.append import PreparedAppend, prepare_append
from barnabas.log.config import LogConfig
from barnabas.log.directories import LogDirectories
from barnabas.log.files import OsFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.log.producers import Origin
from barnabas.log.segment import Mark
from barnabas.records.batch import HEADER_BYTES, patch_batch, split_batches
from barnabas.records.builder import build_batch

NOW_MS = 1_700_000_000_000
PARTITION = TopicPartition("bench", 0)
FILES = OsFiles()
ROUNDS = 16


def open_log(folder: Path, config: LogConfig | None = None, *, clean: bool = True) -> PartitionLog:
    return PartitionLog.open(FILES, str(folder), PARTITION, config or LogConfig(), now_ms=NOW_MS, clean=clean)


def batch_of(size_bytes: int) -> bytearray:
    """A batch of about that size, of 100-byte records; the smallest has one."""
    count = max(1, size_bytes // 110)
    return build_batch([(NOW_MS, None, b"x" * 100, ())] * count)


def timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


# -- append ------------------------------------------------------------------------------------


def bench_append(folder: Path) -> None:
    print("| batch | bare µs | written | crc | records | bare MB/s | written/bare | records/bare |")
    print("|---|---|---|---|---|---|---|---|")
    for size_bytes, count in ((100, 5000), (65_536, 300), (1_000_000, 20)):
        data = batch_of(size_bytes)
        times: dict[str, list[float]] = {"bare": [], "written": [], "crc": [], "records": []}
        for turn in range(ROUNDS):
            kinds = [*times][turn % 4 :] + [*times][: turn % 4]
            for (
                kind
            ) in kinds:  # each removed at once, and never first twice: the kernel slows who dirties much
                target = folder / kind
                target.mkdir()
                run = bare_writes if kind == "bare" else appends
                times[kind].append(run(target / "log", data, count, kind))
                remove(target)
        each = {kind: min(rounds) / count * 1e6 for kind, rounds in times.items()}
        ratios = [
            statistics.median(b / o for b, o in zip(times["bare"], times[kind], strict=True))
            for kind in ("written", "records")
        ]
        print(
            f"| {len(data):,} B | {each['bare']:.1f} | {each['written']:.1f} | {each['crc']:.1f} "
            f"| {each['records']:.1f} | {len(data) / each['bare']:.0f} | {ratios[0]:.2f} | {ratios[1]:.2f} |"
        )


def bare_writes(path: Path, data: bytearray, count: int, kind: str) -> float:
    fd = os.open(path, os.O_RDWR | os.O_CREAT)

    def run() -> None:
        for _ in range(count):
            os.write(fd, data)

    seconds = timed(run)
    os.close(fd)
    return seconds


def appends(folder: Path, data: bytearray, count: int, kind: str) -> float:
    log = open_log(folder)
    log.start_epoch(1)  # which syncs a file, once per leader
    config = log.config
    view = memoryview(bytearray(data))
    origin = Origin.CLIENT

    def written() -> None:
        for _ in range(count):
            ready = PreparedAppend(view, split_batches(view), origin, -1)
            log.append_as_leader(ready, leader_epoch=1, now_ms=NOW_MS)

    def crc() -> None:
        for _ in range(count):
            ready = prepare_append(view, config, now_ms=NOW_MS, deep=False)
            log.append_as_leader(ready, leader_epoch=1, now_ms=NOW_MS)

    def records() -> None:
        for _ in range(count):
            log.append_as_leader(view, leader_epoch=1, now_ms=NOW_MS)

    seconds = timed({"written": written, "crc": crc, "records": records}[kind])
    log.release()
    return seconds


# -- lookup ------------------------------------------------------------------------------------


def bench_lookup(folder: Path) -> None:
    print("| log | look-up | µs |")
    print("|---|---|---|")
    for size_bytes, total_bytes in ((1_000, 2**27), (16_384, 2**30), (65_536, 10 * 2**30)):
        log = sparse_log(folder / f"lookup-{size_bytes}", size_bytes, total_bytes)
        end = log.log_end_offset
        chance = random.Random(1)
        cold = [chance.randrange(end) for _ in range(3000)]
        read_all(log, cold[:100])  # maps the indexes
        name = f"{log.size_bytes / 2**30:.1f} GB, batches of {size_bytes:,} B, {len(log.segments)} segments"
        for label, offsets in (("random offset", cold), ("newest batch", [end - 1] * 3000)):
            rounds = [timed(partial(read_all, log, offsets)) for _ in range(3)]
            print(f"| {name} | {label} | {min(rounds) / 3000 * 1e6:.1f} |")
        remove(folder / f"lookup-{size_bytes}")


def read_all(log: PartitionLog, offsets: list[int]) -> None:
    for offset in offsets:
        log.read(offset, max_bytes=1)


def sparse_log(folder: Path, size_bytes: int, total_bytes: int) -> PartitionLog:
    """A log whose files have headers where batches begin and holes in between."""
    log = open_log(folder)
    data = batch_of(size_bytes)
    size = len(data)
    per_segment = log.config.segment_bytes // size
    while log.size_bytes < total_bytes:
        active = log.segments.active
        count = min(per_segment, (total_bytes - log.size_bytes) // size + 1)
        records = split_batches(memoryview(data))[0].record_count
        offset = active.base_offset
        header = memoryview(data)[:HEADER_BYTES]
        for number in range(count):
            patch_batch(header, 0, offset, 0)
            os.pwrite(active.file.fileno(), header, number * size)
            offset += records
            if number % (max(1, active.index_interval_bytes // size + 1)) == 0 and number:
                active.offset_index.append(offset - 1, number * size)
        os.ftruncate(active.file.fileno(), count * size)
        active.size_bytes = count * size
        active._next_offset = offset
        log.log_end_offset = offset
        log.roll(NOW_MS)
    last = batch_of(size_bytes)
    patch_batch(last, 0, log.log_end_offset, 0)
    ends = log.log_end_offset + split_batches(memoryview(last))[0].last_offset_delta
    log.segments.active.append(memoryview(last), [Mark(0, ends, NOW_MS)])
    log.log_end_offset = ends + 1
    return log


# -- recovery ----------------------------------------------------------------------------------


def bench_recovery(folder: Path) -> None:
    print("| log | seconds | GB/s | bare read GB/s | ratio |")
    print("|---|---|---|---|---|")
    for size_bytes in (1_000, 16_384, 65_536, 1_048_576):
        target = folder / f"recovery-{size_bytes}"
        log = open_log(target)
        view = memoryview(batch_of(size_bytes))
        total = 512 * 2**20 if size_bytes > 5000 else 64 * 2**20
        for _ in range(total // len(view)):
            log.append_as_leader(
                PreparedAppend(view, split_batches(view), Origin.CLIENT, -1), leader_epoch=0, now_ms=NOW_MS
            )
        log.close(now_ms=NOW_MS)
        bare, ours = [], []
        for _ in range(3):
            bare.append(timed(partial(read_file, log.segments.active.path)))
            ours.append(timed(partial(recover, target)))
        rate, floor = log.size_bytes / min(ours) / 1e9, log.size_bytes / min(bare) / 1e9
        print(
            f"| {log.size_bytes / 2**20:.0f} MB, batches of {size_bytes:,} B | {min(ours):.2f} | {rate:.2f} "
            f"| {floor:.2f} | {rate / floor:.2f} |"
        )
        remove(target)


def recover(folder: Path) -> None:
    open_log(folder, clean=False).release()


def read_file(path: str) -> None:
    buffer = bytearray(1 << 20)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


# -- open --------------------------------------------------------------------------------------


def bench_open(folder: Path, partitions: int = 2000) -> None:
    paths = [str(folder / "data")]
    ids = (number.to_bytes(16, "big") for number in range(1, 10**6))

    def open_all() -> LogDirectories:
        return LogDirectories.open(
            FILES,
            paths,
            broker_id=1,
            config_of=lambda topic: config,
            clock=ManualClock(NOW_MS),
            new_id=lambda: next(ids),
        )

    config = LogConfig()
    directories = open_all()
    for number in range(partitions):
        log = directories.create(TopicPartition("bench", number), b"t" * 16, config)
        for _ in range(5):
            view = memoryview(batch_of(3000))
            log.append_as_leader(view, leader_epoch=0, now_ms=NOW_MS)
    closing = timed(directories.close)
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        directories = open_all()
        seconds.append(time.perf_counter() - began)
        directories.close()
    tracemalloc.start()
    directories = open_all()
    held = tracemalloc.get_traced_memory()[0] / partitions
    tracemalloc.stop()
    directories.close()
    print("| partitions | open s | close s | memory each |")
    print("|---|---|---|---|")
    print(f"| {partitions:,} | {min(seconds):.2f} | {closing:.2f} | {held / 1024:.1f} KB |")


def remove(folder: Path) -> None:
    FILES.remove_folder(str(folder))


BENCHES = {"append": bench_append, "lookup": bench_lookup, "recovery": bench_recovery, "open": bench_open}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", default=None, help="where the files go")
    parser.add_argument("which", nargs="*", choices=[*BENCHES, []], help="all of them by default")
    arguments = parser.parse_args()
    for name in arguments.which or BENCHES:
        with tempfile.TemporaryDirectory(prefix="bench-log-", dir=arguments.folder) as folder:
            print(f"\n### {name}\n")
            BENCHES[name](Path(folder))


if __name__ == "__main__":
    main()
