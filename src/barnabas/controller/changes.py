"""A decided change of the cluster, and the reasons why a command is not carried out.

C1  The operations of a change are one transaction of the tree: all of them or none.
C2  Its deltas turn the image before the transaction into the image after it.
"""

from dataclasses import dataclass

from barnabas.base.errors import BarnabasError
from barnabas.metadata.deltas import Delta
from barnabas.store.tree import Operation

__all__ = [
    "Change",
    "CommandRefused",
    "InvalidAssignment",
    "InvalidPartitions",
    "TopicExists",
    "UnknownTopic",
]


@dataclass(frozen=True, slots=True)
class Change:
    """Writes to the tree and what they mean for the image."""

    operations: tuple[Operation, ...]
    deltas: tuple[Delta, ...]


class CommandRefused(BarnabasError):
    """Root of the reasons; nothing was changed."""


class TopicExists(CommandRefused):
    """A topic of that name is there already."""


class UnknownTopic(CommandRefused):
    """There is no topic of that name."""


class InvalidPartitions(CommandRefused):
    """The number of partitions is not possible; it never shrinks."""


class InvalidAssignment(CommandRefused):
    """The brokers named for the replicas do not fit."""
