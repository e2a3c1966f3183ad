"""Topic to topic by Spark: our source and sink beside Spark's own connector, one broker, equal sessions.

    python -m bench.macro.spark_copy [--records N] [--rounds N] [--only TEXT] [--barnabas-only]

A copy reads key and value of a topic with four partitions and writes them to another, local[2].  Theirs is
at-least-once, which is all it has; ours is measured both ways, and each way beside the same figure of theirs.
`batch` is one job, `stream` a query that ends with what is there.  `micro-batch` is the time Spark gives for
a batch of 100 records from topic to topic, trigger 0 s, the first third left out.
Rounds alternate between two warm drivers; the first is thrown away and the median counts.  `--records` is the
number of 100-byte records; there are a tenth as many of 1 KB.  The CPU of the broker is not counted.
"""

import argparse
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from bench import _brokers, _spark

SIZES = {"100 B": (100, 1), "1 KB": (1000, 10)}
DELIVERIES = ("at-least-once", "exactly-once")
MICRO_BATCHES = 40


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


def targets(stem: str, bootstrap: str) -> Iterator[str]:
    """Fresh topics to copy into."""
    number = 0
    while True:
        topic = f"{stem}-{number}"
        _brokers.create_topic_at(bootstrap, topic, _spark.PARTITIONS)
        yield topic
        number += 1


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
        fresh = targets(f"to-{value_bytes}", bootstrap)
        for kind in kinds:
            taken: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
            for _ in range(given.rounds + 1):
                for side, driver in sides.items():
                    target = next(fresh)
                    chosen = options(side, kind.delivery)
                    taken[side].append(driver.do(kind.command, topic=topic, target=target, options=chosen))
            print(_spark.measured_row(f"{size}, {kind.name}", taken, count), flush=True)


def latencies(sides: dict[str, _spark.Side], bootstrap: str, given: argparse.Namespace) -> None:
    deliveries = [each for each in DELIVERIES if given.only in f"micro-batch, {each}"]
    if not deliveries:
        return
    print(
        "\n| micro-batch of 100 records, ms | "
        + " | ".join(f"{name} p50 (min)" for name in sides)
        + " | ratio |"
    )
    print("|---|" + "---:|" * (len(sides) + 1))
    fresh = targets("quick", bootstrap)
    for delivery in deliveries:
        found: dict[str, dict[str, float]] = {}
        for side, driver in sides.items():
            source, target = next(fresh), next(fresh)
            chosen = options(side, delivery)
            answer = driver.do("latency", topic=source, target=target, batches=MICRO_BATCHES, options=chosen)
            found[side] = answer["result"]
        cells = [f"{each['p50']:.0f} ({each['min']:.0f})" for each in found.values()]
        ratio = f"{found['barnabas']['p50'] / found['kafka']['p50']:.2f}" if "kafka" in found else ""
        print(f"| {delivery} | {' | '.join(cells)} | {ratio} |", flush=True)


def main() -> int:
    given = _spark.arguments(__doc__)
    with _spark.broker() as bootstrap, _spark.sides(bootstrap, given.names) as sides:
        copies(sides, bootstrap, given)
        latencies(sides, bootstrap, given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
