"""Which partition a record goes to, when the caller does not say.

    key given      murmur2 of the key, as Java's client and librdkafka's `murmur2_random`: the same key is in
                   the same partition whoever writes it, as long as the number of partitions stays
    no key         sticky: one partition until a batch of it is full or sent, then another at random.  Full
                   batches cost far less per record than many half-empty ones.

`partitioner.class` takes a name of PARTITIONERS or a callable `(topic, key, value, partitions, available)
-> int`, where `partitions` is how many there are and `available` lists those with a leader.

Choosing among partitions without a key looks only at those with a leader; a key never moves.
"""

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Final, cast

from barnabas.base.errors import ConfigFault, Misuse
from barnabas.client.config import ClientSettings
from barnabas.client.hot import murmur2

__all__ = [
    "PARTITIONERS",
    "STICKY",
    "Choose",
    "RoundRobin",
    "checked_choice",
    "choose_by_key",
    "choose_randomly",
    "murmur2",
    "partitioner_of",
]

Choose = Callable[[str, bytes | None, bytes | None, int, Sequence[int]], int]

STICKY: Final = None
"""What `partitioner_of` answers for the built-in behaviour, which the accumulator carries out itself."""


def choose_by_key(key: bytes, partitions: int) -> int:
    """Java's DefaultPartitioner: the hash with its sign bit cleared, modulo the number of partitions."""
    return (murmur2(key) & 0x7FFF_FFFF) % partitions


def choose_randomly(
    topic: str, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]
) -> int:
    """Any partition with a leader, each record anew."""
    return random.choice(available) if available else random.randrange(partitions)


class RoundRobin:
    """Partitions in turn, key or not; each topic has its own turn.  For even spreading of keyed records."""

    def __init__(self) -> None:
        self._turns: dict[str, itertools.count[int]] = {}

    def __call__(
        self, topic: str, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]
    ) -> int:
        # setdefault and next are single steps under the GIL: two threads never get the same turn.
        turn = next(self._turns.setdefault(topic, itertools.count()))
        return available[turn % len(available)] if available else turn % partitions


PARTITIONERS: Final[dict[str, Callable[[], Choose] | None]] = {
    "default": STICKY,
    "sticky": STICKY,
    "murmur2_random": STICKY,
    "round_robin": RoundRobin,
    "random": lambda: choose_randomly,
}


def partitioner_of(settings: ClientSettings) -> Choose | None:
    """The chooser that `partitioner.class` names, None for the built-in one.  Raises ConfigFault."""
    given = settings.instance("partitioner.class")
    if given is None:
        return STICKY
    if isinstance(given, str):
        name = given.rpartition(".")[2].lower().replace("-", "_")
        name = {"roundrobinpartitioner": "round_robin", "defaultpartitioner": "default"}.get(name, name)
        if name not in PARTITIONERS:
            raise ConfigFault(
                f"partitioner.class: {given!r} is not one of {', '.join(PARTITIONERS)}; "
                "give a callable for one of your own"
            )
        make = PARTITIONERS[name]
        return STICKY if make is None else make()
    choice = given() if isinstance(given, type) else given
    if not callable(choice):
        raise ConfigFault(f"partitioner.class: {type(given).__name__} cannot be called")
    return cast(Choose, choice)


def checked_choice(choice: object, topic: str, partitions: int) -> int:
    """The answer of a custom partitioner.  Raises Misuse when there is no such partition."""
    if not isinstance(choice, int) or not 0 <= choice < partitions:
        raise Misuse(
            f"the partitioner chose {choice!r} for {topic}, which has partitions 0 to {partitions - 1}"
        )
    return choice
