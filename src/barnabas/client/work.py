"""Records handed to many workers, and how far each partition is done: the bookkeeping of `run`.

W1  the offset to commit for a partition is that of its first unfinished record: a commit never passes one
W2  order="key": records with the same key of one partition are handled one after the other, in their order;
    order="partition": all records of a partition are; order="none": no order at all
W3  records of a partition that went are not started; those under way end, and no longer count
W4  a record counts as finished when the handler returned, or when `on_error` took it over

Plain data; the pools call it from one thread (or the loop), workers only read `Item.is_void`.
"""

import zlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.records.record import Record

__all__ = ["Item", "Order", "Progress", "Retry", "RunReport", "Work"]


class Order(Enum):
    """Which records wait for each other."""

    KEY = "key"
    PARTITION = "partition"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a failing handler is called again, and how long to wait before: twice as long each time."""

    attempts: int = 3
    first_ms: int = 100
    most_ms: int = 10_000

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.first_ms < 0:
            raise Misuse(f"a record is tried at least once, and waits are not negative: {self}")


@dataclass(slots=True)
class RunReport:
    """What a run did."""

    processed: int = 0
    retried: int = 0
    skipped: int = 0


class Progress:
    """How far one partition is done, in one assignment."""

    __slots__ = ("_done", "_epoch", "_next", "_open", "is_void", "topic_partition")

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition: Final = topic_partition
        self.is_void = False
        self._open: deque[int] = deque()  # offsets of unfinished records, and of finished ones behind them
        self._done: set[int] = set()
        self._next = -1
        self._epoch = -1

    @property
    def unfinished(self) -> int:
        return len(self._open) - len(self._done)

    def begin(self, record: Record) -> None:
        assert record.offset >= self._next, "records of a partition come in order"
        self._open.append(record.offset)
        self._next, self._epoch = record.offset + 1, record.leader_epoch

    def finish(self, offset: int) -> None:
        self._done.add(offset)
        while self._open and self._open[0] in self._done:
            self._done.remove(self._open.popleft())

    @property
    def watermark(self) -> OffsetAndMetadata | None:
        """What may be committed (W1), or None before the first record."""
        if self._next < 0:
            return None
        return OffsetAndMetadata(self._open[0] if self._open else self._next, "", self._epoch)


class Item:
    """A record on its way through a worker."""

    __slots__ = ("progress", "record")

    def __init__(self, progress: Progress, record: Record) -> None:
        self.progress = progress
        self.record = record

    @property
    def is_void(self) -> bool:
        return self.progress.is_void


class Work:
    """All records under way, by partition, and which lane each goes to."""

    def __init__(self, lanes: int, order: Order | str) -> None:
        if lanes < 1:
            raise Misuse(f"at least one worker is needed, not {lanes}")
        try:
            self._order = Order(order)
        except ValueError:
            raise Misuse(f"order is one of key, partition and none, not {order!r}") from None
        self._lanes = lanes
        self._turn = 0
        self._partitions: dict[TopicPartition, Progress] = {}
        self._committed: dict[TopicPartition, OffsetAndMetadata] = {}
        self.outstanding = 0

    @property
    def is_unordered(self) -> bool:
        """Whether any worker may take any record."""
        return self._order is Order.NONE

    def admit(self, records: Iterable[Record]) -> list[tuple[int, list[Item]]]:
        """Takes records that poll returned; the result says which lane gets which, in order."""
        lanes: dict[int, list[Item]] = {}
        alone: list[tuple[int, list[Item]]] = []
        for record in records:
            tp = TopicPartition(record.topic or "", record.partition)
            progress = self._partitions.get(tp)
            if progress is None:
                progress = self._partitions[tp] = Progress(tp)
            progress.begin(record)
            self.outstanding += 1
            item = Item(progress, record)
            if self.is_unordered:
                alone.append((0, [item]))
            else:
                lanes.setdefault(self._lane(tp, record), []).append(item)
        return alone or list(lanes.items())

    def _lane(self, tp: TopicPartition, record: Record) -> int:
        if self._order is Order.PARTITION:
            return zlib.crc32(b"%s-%d" % (tp.topic.encode(), tp.partition)) % self._lanes
        key: object = record.key
        if isinstance(key, bytes):
            return zlib.crc32(key) % self._lanes
        if key is not None:  # a deserialised one; equal keys have equal hashes
            return hash(key) % self._lanes
        self._turn += 1
        return self._turn % self._lanes

    def finish(self, item: Item) -> None:
        self.outstanding -= 1
        if not item.is_void:
            item.progress.finish(item.record.offset)

    def drop(self, item: Item) -> None:
        """The item was not handled: the run ends, or its partition went."""
        self.outstanding -= 1

    def unfinished_of(self, partitions: Iterable[TopicPartition]) -> int:
        return sum(self._partitions[tp].unfinished for tp in partitions if tp in self._partitions)

    def give_up(self, partitions: Iterable[TopicPartition]) -> None:
        """The partitions went: what is queued of them is void, what is under way no longer counts (W3)."""
        for tp in partitions:
            progress = self._partitions.pop(tp, None)
            if progress is not None:
                progress.is_void = True
            self._committed.pop(tp, None)

    def uncommitted(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What may be committed and is not yet, of these partitions or of all."""
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        for tp in list(self._partitions) if partitions is None else partitions:
            progress = self._partitions.get(tp)
            mark = None if progress is None else progress.watermark
            if mark is not None and self._committed.get(tp) != mark:
                found[tp] = mark
        return found

    def unfinished(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The first unfinished record of each partition that has one."""
        found = {}
        for tp, progress in self._partitions.items():
            if progress.unfinished and progress.watermark is not None:
                found[tp] = progress.watermark
        return found

    def committed(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        """These were committed, or are on their way."""
        self._committed.update(offsets)
