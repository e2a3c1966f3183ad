"""Does a reader far behind push hot data out of the page cache?  With the care and without it.

Run `python -m bench.macro.page_cache [--cold-megabytes 2048 --hot-megabytes 256 --limit-megabytes 640]`.

A cold partition is written, synced and dropped from the cache.  Then, in a process of its own that may use
only `limit` of memory (a child of the current memory cgroup, v1 or v2; the page cache counts), a hot
partition is written and read as tail readers do, the cold one is read from its beginning through
`PartitionLog.read` and sendfile, and the kernel is asked (cachestat) how much of each is cached.
Twice: with `barnabas.page.cache.*` at its defaults, and switched off.  The aim: the hot share stays.

Where no memory cgroup can be made, there is no pressure and the hot share says nothing; then only the
footprint of the reader in the cache is shown, which is the cause.  Files are removed at the end.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from barnabas.base.clock import SystemClock
from barnabas.base.types import TopicPartition
from barnabas.log.config import LogConfig
from barnabas.log.files import OsFiles
from barnabas.log.page_cache import PageCacheCare, PageCacheSettings
from barnabas.log.partition_log import PartitionLog
from barnabas.records.builder import build_batch

MEGABYTE = 2**20
FETCH_BYTES = MEGABYTE
CONFIG = LogConfig(segment_bytes=256 * MEGABYTE, max_message_bytes=2 * MEGABYTE)


def open_log(folder: str, name: str) -> PartitionLog:
    clock = SystemClock()
    return PartitionLog.open(
        OsFiles(), f"{folder}/{name}-0", TopicPartition(name, 0), CONFIG, now_ms=clock.now_ms(), clean=True
    )


def write(log: PartitionLog, megabytes: int) -> None:
    """Batches of a MB of bytes that differ, and a flush."""
    clock = SystemClock()
    value = os.urandom(MEGABYTE - 200)
    for number in range(megabytes):
        batch = build_batch([(clock.now_ms(), b"%08d" % number, value, ())])
        log.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=clock.now_ms())
        if number % 64 == 63:
            log.flush(now_ms=clock.now_ms())
    log.flush(now_ms=clock.now_ms())


def cached_share(log: PartitionLog) -> float:
    files = OsFiles()
    cached = total = 0
    for segment in log.segments:
        total += segment.size_bytes
        cached += files.cached_bytes(segment.file, 0, segment.size_bytes) or 0
    return min(1.0, cached / total)


def read_all(log: PartitionLog, care: PageCacheCare | None) -> None:
    """From the log start to its end, sent as a broker sends it."""
    sink = os.open(os.devnull, os.O_WRONLY)
    offset, behind = log.log_start_offset, log.size_bytes
    while (result := log.read(offset, max_bytes=FETCH_BYTES)).slice is not None:
        data = result.slice if care is None else care.reading(result.slice, behind)
        behind -= data.length
        position, left = data.position, data.length
        while left:
            sent = os.sendfile(sink, data.file.fileno(), position, left)
            position, left = position + sent, left - sent
        offset = result.next_offset
        del data
    os.close(sink)


def inside(folder: str, hot_megabytes: int, cared_for: bool) -> dict[str, float]:
    """What the limited process does."""
    settings = PageCacheSettings() if cared_for else PageCacheSettings(cold_bytes=0)
    care = PageCacheCare(OsFiles(), settings)
    cold = open_log(folder, "cold")
    hot = open_log(folder, f"hot{int(cared_for)}")
    write(hot, hot_megabytes)
    read_all(hot, None)
    before = cached_share(hot)
    began = time.perf_counter()
    read_all(cold, care)
    elapsed = time.perf_counter() - began
    return {
        "hot_before": before,
        "hot_after": cached_share(hot),
        "cold_after_mb": cached_share(cold) * cold.size_bytes / MEGABYTE,
        "mb_per_s": cold.size_bytes / MEGABYTE / elapsed,
        "dropped": care.stats.windows_dropped,
    }


@contextlib.contextmanager
def memory_cgroup(limit_bytes: int) -> Iterator[Path | None]:
    """A child of our own memory cgroup with a limit, removed afterwards; None where that is not possible."""
    try:
        folder = _make_cgroup(limit_bytes)
    except OSError as error:
        print(f"no memory cgroup can be made ({error}): no pressure, so only the footprint counts")
        yield None
        return
    try:
        yield folder
    finally:
        for _ in range(50):  # the process that just ended may still be listed
            with contextlib.suppress(OSError):
                folder.rmdir()
                break
            time.sleep(0.1)


def _make_cgroup(limit_bytes: int) -> Path:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            folder = Path(f"/sys/fs/cgroup/memory{path}/barnabas-bench-{os.getpid()}")
            folder.mkdir()
            (folder / "memory.limit_in_bytes").write_text(str(limit_bytes))
            return folder
        if not controllers and Path(f"/sys/fs/cgroup{path}/memory.current").exists():
            folder = Path(f"/sys/fs/cgroup{path}/barnabas-bench-{os.getpid()}")
            folder.mkdir()
            (folder / "memory.max").write_text(str(limit_bytes))
            return folder
    raise OSError("this process is in no memory cgroup")


def run_inside(folder: str, hot_megabytes: int, cared_for: bool, limit_bytes: int) -> dict[str, float]:
    with memory_cgroup(limit_bytes) as cgroup:
        command = [sys.executable, "-m", "bench.macro.page_cache", "--inside", folder]
        command += ["--hot-megabytes", str(hot_megabytes)]
        command += ["--cared-for"] if cared_for else []
        command += ["--cgroup", str(cgroup)] if cgroup else []
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise SystemExit(done.stderr)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def drop(folder: Path) -> None:
    files = OsFiles()
    for path in folder.glob("*.log"):
        files.forget(files.open_to_read(str(path)), 0, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cold-megabytes", type=int, default=2048)
    parser.add_argument("--hot-megabytes", type=int, default=256)
    parser.add_argument("--limit-megabytes", type=int, default=640)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--inside", default=None, help=argparse.SUPPRESS)
    parser.add_argument("--cared-for", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--cgroup", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        if options.cgroup:
            Path(options.cgroup, "cgroup.procs").write_text(str(os.getpid()))
        print(json.dumps(inside(options.inside, options.hot_megabytes, options.cared_for)))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        cold = open_log(folder, "cold")
        write(cold, options.cold_megabytes)
        cold.close(now_ms=SystemClock().now_ms())
        print(
            f"{'':<14}{'hot before':>12}{'hot after':>12}{'cold left MB':>14}{'read MB/s':>12}{'dropped':>10}"
        )
        for cared_for in (True, False):
            drop(Path(folder) / "cold-0")
            limit_bytes = options.limit_megabytes * MEGABYTE
            row = run_inside(folder, options.hot_megabytes, cared_for, limit_bytes)
            name = "with care" if cared_for else "without"
            print(
                f"{name:<14}{row['hot_before']:>12.0%}{row['hot_after']:>12.0%}"
                f"{row['cold_after_mb']:>14.0f}{row['mb_per_s']:>12.0f}{row['dropped']:>10.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
