"""Topic to topic by Spark: our source and sink beside Spark's own connector, one broker, equal sessions.

    python -m bench.macro.spark_copy [--records N] [--rounds N] [--only TEXT] [--barnabas-only]

A copy reads key and value of a topic with four partitions and writes them to another, local[2].  Theirs is
at-least-once, which is all it has; ours is measured both ways, and each way beside the same figure of theirs.
`batch` is one job, `stream` a query that ends with what is there.
Rounds alternate between two warm drivers; the first is thrown away and the median counts.  `--records` is the
number of 100-byte records; there are a tenth as many of 1 KB.  The CPU of the broker is not counted.
"""

import argparse
import contextlib
import itertools
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from bench import _brokers, _spark

SIZES = {"100 B": (100, 1), "1 KB": (1000, 10)}
DELIVERIES = ("at-least-once", "exactly-once")
GONE_S = 2.0  # the broker deletes files a second after the topic (_brokers.SETTINGS)


class Kind(NamedTuple):
    """A row of the table: the command, and our delivery."""

    name: str
    command: str
    delivery: str


KINDS = [
    *(Kind(f"batch, {delivery}", "copy", delivery) for delivery in DELIVERIES),
    Kind("stream, exactly-once", "stream_copy", "exactly-once"),
]


def options(side: str, delivery: str) -> dict[str, str]:
    return {"delivery": delivery} if side == "barnabas" else {}


@contextlib.contextmanager
def target(bootstrap: str, name: str) -> Iterator[str]:
    """A fresh topic to copy into; gone afterwards, as it would go to the disk during the next copy."""
    _brokers.create_topic_at(bootstrap, name, _spark.PARTITIONS)
    yield name
    _brokers.delete_topic_at(bootstrap, name)
    time.sleep(GONE_S)


def copies(sides: dict[str, _spark.Side], bootstrap: str, given: argparse.Namespace) -> None:
    wanted = {size: [kind for kind in KINDS if given.only in f"{size}, {kind.name}"] for size in SIZES}
    if any(wanted.values()):
        rates = " | ".join(f"{name} k rows/s" for name in sides)
        print(f"| copy | {rates} | ratio | CPU s/M rows | ratio |")
        print("|---|" + "---:|" * (len(sides) + 3))
    for size, kinds in wanted.items():
        value_bytes, fewer = SIZES[size]
        count, topic = given.records // fewer, f"copy-{value_bytes}"
        if kinds:
            _brokers.create_topic_at(bootstrap, topic, _spark.PARTITIONS)
            _spark.fill(bootstrap, topic, value_bytes, count)
        numbers = itertools.count()
        for kind in kinds:
            taken: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
            for _ in range(given.rounds + 1):
                for side, driver in sides.items():
                    chosen = options(side, kind.delivery)
                    with target(bootstrap, f"to-{value_bytes}-{next(numbers)}") as to:
                        answer = driver.do(kind.command, topic=topic, target=to, options=chosen)
                    taken[side].append(answer)
            print(_spark.measured_row(f"{size}, {kind.name}", taken, count), flush=True)


def main() -> int:
    given = _spark.arguments(__doc__)
    with _spark.broker() as bootstrap, _spark.sides(bootstrap, given.names) as sides:
        copies(sides, bootstrap, given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
