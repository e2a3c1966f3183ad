"""Batch reads by Spark: our source beside Spark's own Kafka connector, one broker, equal sessions.

    python -m bench.macro.spark_read [--records N] [--rounds N] [--only TEXT] [--barnabas-only]

Every row reads a topic with four partitions from start to end into Spark's `noop` sink, local[2].  Rounds
alternate between two warm drivers; the first is thrown away and the median counts.  `--records` is the number
of 100-byte records; there are a tenth as many of 1 KB.  `ratio` is ours over theirs; the broker is Barnabas
for both, and its CPU is not counted.
"""

import sys
from typing import Any

from bench import _brokers, _spark

SIZES = {"100 B": (100, 1), "1 KB": (1000, 10)}
COLUMNS = {"all columns": "", "key, value": "key,value", "value": "value"}


def main() -> int:
    given = _spark.arguments(__doc__)
    print(
        "| read | "
        + " | ".join(f"{name} k rows/s" for name in given.names)
        + " | ratio | CPU s/M rows | ratio |"
    )
    print("|---|" + "---:|" * (len(given.names) + 3))
    with _spark.broker() as bootstrap, _spark.sides(bootstrap, given.names) as sides:
        for size, (value_bytes, fewer) in SIZES.items():
            count, topic = given.records // fewer, f"read-{value_bytes}"
            wanted = {name: columns for name, columns in COLUMNS.items() if given.only in f"{size}, {name}"}
            if not wanted:
                continue
            _brokers.create_topic_at(bootstrap, topic, _spark.PARTITIONS)
            _spark.fill(bootstrap, topic, value_bytes, count)
            for name, columns in wanted.items():
                print(row(f"{size}, {name}", sides, topic, columns, count, given.rounds), flush=True)
    return 0


def row(name: str, sides: dict[str, _spark.Side], topic: str, columns: str, count: int, rounds: int) -> str:
    taken: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    for _ in range(rounds + 1):
        for side, driver in sides.items():
            taken[side].append(driver.do("read", topic=topic, columns=columns))
    return _spark.measured_row(name, taken, count)


if __name__ == "__main__":
    sys.exit(main())
