"""Which brokers get the replicas of new partitions.

P1  leaders go round the brokers one by one, so they differ by at most one per broker
P2  the followers of one broker's partitions are spread over the others: each round shifts them on
P3  when every broker has a rack, a partition covers as many racks as it has replicas, or all of them
P4  no partition has two replicas on one broker

A pure function: the caller chooses the start, at random so that small topics do not all begin at the
same broker, or fixed so that partitions added later carry on the pattern.
"""

import itertools
from collections.abc import Mapping

from barnabas.base.errors import BarnabasError

__all__ = ["InvalidPartitionCount", "InvalidReplicationFactor", "place_replicas"]


class InvalidPartitionCount(BarnabasError):
    """The number of partitions is not positive."""


class InvalidReplicationFactor(BarnabasError):
    """The replication factor is not positive, or there are too few brokers for it."""


def place_replicas(
    brokers: Mapping[int, str | None],
    partition_count: int,
    replication_factor: int,
    *,
    start_index: int,
    follower_shift: int | None = None,
    first_partition: int = 0,
) -> list[tuple[int, ...]]:
    """Replicas, leader first, of the partitions from `first_partition` on.

    `brokers` maps ids to racks; racks count only if every broker has one.  `follower_shift` is
    `start_index` unless given.
    """
    if partition_count <= 0:
        raise InvalidPartitionCount("Number of partitions was set to an invalid non-positive value.")
    if replication_factor <= 0:
        raise InvalidReplicationFactor(
            f"Invalid replication factor {replication_factor}: the replication factor must be positive."
        )
    if replication_factor > len(brokers):
        raise InvalidReplicationFactor(
            f"The target replication factor of {replication_factor} cannot be reached because only"
            f" {len(brokers)} broker(s) are registered."
        )
    shift = start_index if follower_shift is None else follower_shift
    racks = _racks(brokers)
    rack_count = len(set(racks.values()))
    ring = sorted(racks) if rack_count == len(racks) else _alternate(racks)
    # With racks, a shift moves on by whole turns of the rack order, so that neighbours stay apart.
    stride = rack_count if rack_count < len(ring) else 1
    return [
        _replicas(
            ring,
            racks,
            rack_count=rack_count,
            leader=(partition + start_index) % len(ring),
            shift=(shift + partition // len(ring)) * stride,
            count=replication_factor,
        )
        for partition in range(first_partition, first_partition + partition_count)
    ]


def _racks(brokers: Mapping[int, str | None]) -> dict[int, str]:
    """A rack for each broker; its own one each if some have none, which makes racks irrelevant."""
    racks = {broker: rack for broker, rack in brokers.items() if rack is not None}
    return racks if len(racks) == len(brokers) else {broker: str(broker) for broker in brokers}


def _alternate(racks: Mapping[int, str]) -> list[int]:
    """The brokers in an order that visits the racks in turn, so that neighbours differ in rack."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    turns = itertools.zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker for turn in turns for broker in turn if broker is not None]


def _replicas(
    ring: list[int], racks: Mapping[int, str], *, rack_count: int, leader: int, shift: int, count: int
) -> tuple[int, ...]:
    chosen = [ring[leader]]
    others = len(ring) - 1
    racks_used = {racks[chosen[0]]}
    step = 0
    while len(chosen) < count:
        broker = ring[(leader + 1 + (shift + step) % others) % len(ring)]
        step += 1
        is_new_rack = racks[broker] not in racks_used
        if broker not in chosen and (is_new_rack or len(racks_used) == rack_count):
            chosen.append(broker)
            racks_used.add(racks[broker])
    return tuple(chosen)
