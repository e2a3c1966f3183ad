"""A process that writes to a log until it is killed, and says what it can be held to.

    python -m tests.log._victim FOLDER SEED

Prints a line after each step that changes what must be found later: `flushed N` (offsets below N are on
disk), `start N` (the log start), `rolled N`.  Every record's value is its offset, so that any prefix can be
checked.
"""

import random
import sys

from barnabas.log.config import LogConfig
from barnabas.log.partition_log import PartitionLog
from barnabas.records.builder import build_batch
from tests.log._make import NOW_MS, append, open_log

CONFIG = LogConfig(segment_bytes=20_000, index_interval_bytes=200, file_delete_delay_ms=0)


def send(log: PartitionLog, chance: random.Random) -> None:
    count = chance.randint(1, 20)
    first = log.log_end_offset
    rows = [(NOW_MS, b"key", f"{offset}".zfill(20).encode(), ()) for offset in range(first, first + count)]
    append(log, memoryview(build_batch(rows)), leader_epoch=first // 1000)


def main(folder: str, seed: int) -> None:
    chance = random.Random(seed)
    log = open_log(folder, CONFIG)
    print("open", log.log_end_offset, flush=True)
    while True:
        send(log, chance)
        step = chance.random()
        if step < 0.1:
            log.flush(now_ms=NOW_MS)
            print("flushed", log.log_end_offset, flush=True)
        elif step < 0.12:
            log.roll(NOW_MS)
            print("rolled", log.log_end_offset, flush=True)
        elif step < 0.13 and log.log_end_offset > 2000:
            log.advance_log_start(log.log_end_offset - 2000)
            print("start", log.log_start_offset, flush=True)
            log.delete_segments_below(log.log_start_offset, now_ms=NOW_MS)
            log.purge(NOW_MS)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
