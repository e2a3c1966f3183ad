"""What a place for offsets outside the cluster must do.

    with Consumer(settings, offset_store=SqliteOffsets(connection)) as consumer:

A consumer with a store starts where the store says, and its commits go there instead of to the cluster;
nothing is committed automatically.  The point of a store is to write results and offsets in one transaction:

    with connection:
        connection.execute("insert into results …")
        store.save("billing", consumer.positions())

O1  what `save` stored is what `load` finds, also after a crash, or none of it (one transaction)
O2  a store object notices when somebody else saved since it last loaded or saved a partition, and refuses to
    overwrite it: a member that lost its partitions without noticing cannot write its results twice
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from barnabas.base.types import TopicPartition
from barnabas.client.errors import CommitFailed
from barnabas.client.subscription import OffsetAndMetadata

__all__ = ["OffsetStore", "overtaken"]


class OffsetStore(Protocol):
    """A place for the offsets of groups."""

    def load(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """What is stored for these; those without an offset are absent."""

    def save(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Stores all of them.  Raises CommitFailed, with nothing stored, when one was overtaken (O2)."""

    def close(self) -> None:
        """Gives back what the store itself opened."""


def overtaken(group: str, tp: TopicPartition) -> CommitFailed:
    """The error for O2."""
    return CommitFailed(
        f"offsets of group {group!r} for {tp.topic}-{tp.partition} were saved by somebody else since they "
        "were loaded here; another consumer reads the partition by now"
    )
