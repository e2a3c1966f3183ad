"""Writes, rolls, compacts and deletes until it is killed: `python -m tests.log._killed_cleaner FOLDER SEED`.

Prints a line after every change, so that whoever kills it does so at any point between two of them.
Continues the log it finds, so that one folder goes through many deaths.
"""

import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from barnabas.log.config import LogConfig
from tests.log._compaction import Bench

CONFIG = LogConfig(
    compact=True, delete=False, min_cleanable_dirty_ratio=0.3, segment_bytes=4000, delete_retention_ms=0
)
KEYS = 20


def record(seed: int, offset: int) -> tuple[str, str | None]:
    """What is written at an offset: the same in every life."""
    chosen = random.Random(seed * 1_000_003 + offset)
    key = f"key-{chosen.randrange(KEYS)}"
    return key, None if chosen.random() < 0.1 else f"{offset}-" + "x" * chosen.randrange(60)


def live(folder: Path, seed: int) -> None:
    bench = Bench(folder, CONFIG)
    with ThreadPoolExecutor(1) as pool:
        while True:
            for _ in range(30):
                bench.write(record(seed, bench.log.log_end_offset))
                print("written", bench.log.log_end_offset, flush=True)
            bench.roll()
            if (cleaning := bench.cleaner.pick()) is not None:
                for work in bench.cleaner.clean(cleaning):
                    done = pool.submit(work)
                    bench.write(record(seed, bench.log.log_end_offset))
                    done.result()
                    print("step", flush=True)
            bench.clock.advance(100_000)
            bench.log.purge(bench.clock.now_ms())
            print("purged", flush=True)


if __name__ == "__main__":
    live(Path(sys.argv[1]), int(sys.argv[2]))
