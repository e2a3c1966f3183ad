"""What a consumer reads and how far it is: the state of its partitions.

S1  `position` is the next offset to hand out; it moves forward by handing out, anywhere by a seek
S2  `fetch_offset` is the next offset to fetch; position <= fetch_offset while fetched bytes are queued
S3  bytes fetched in one `session` of a partition are never handed out in another: a seek, a reset and a
    truncation begin a new session; a partition that was taken away and came back is a new object
S4  a partition is handed out only while `is_open`: assigned, with a position, not paused, not being revoked

Everything is changed on the client's loop, but for `position`, `position_epoch` and `used_bytes`, which the
thread that polls moves as it takes records.  Seeks and resets of the user happen while that thread waits.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition

__all__ = ["UNKNOWN", "OffsetAndMetadata", "PartitionState", "Reset", "Stage", "Subscription"]

UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """An offset as it is committed: the next one to read, the epoch of the record before it, a note."""

    offset: int
    metadata: str = ""
    leader_epoch: int = UNKNOWN

    def __post_init__(self) -> None:
        if self.offset < 0:
            raise Misuse(f"an offset to commit is not negative: {self.offset}")


@dataclass(frozen=True, slots=True)
class Reset:
    """Where a partition without a valid position starts."""

    timestamp: int
    """Milliseconds; -1 for the end, -2 for the start."""


class Stage(Enum):
    """What stands between a partition and being fetched."""

    START = "the committed offset is to be looked up"
    RESET = "the reset rule is to be followed"
    VALIDATE = "the log may have been truncated below the position"
    FETCH = "nothing"


class PartitionState:
    """One partition in one assignment."""

    __slots__ = (
        "added_bytes",
        "fetch_offset",
        "has_fault",
        "high_watermark",
        "is_open",
        "is_paused",
        "is_revoking",
        "is_taken_away",
        "last_stable_offset",
        "leader_epoch",
        "log_start_offset",
        "origin",
        "position",
        "position_epoch",
        "preferred_node",
        "preferred_until_ms",
        "reset",
        "retry_at_ms",
        "session",
        "stage",
        "topic_partition",
        "used_bytes",
    )

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition: Final = topic_partition
        self.stage = Stage.START
        self.session = 0
        self.position = UNKNOWN
        self.origin = UNKNOWN  # the first position in this assignment
        self.position_epoch = UNKNOWN  # epoch of the record before the position
        self.fetch_offset = UNKNOWN
        self.leader_epoch = UNKNOWN  # of the leader that the position was checked with
        self.high_watermark = UNKNOWN
        self.last_stable_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.added_bytes = 0  # fetched, since the assignment
        self.used_bytes = 0  # of those, handed out or dropped
        self.has_fault = False  # an error is queued: no fetch until it was seen
        self.reset: Reset | None = None
        self.retry_at_ms = 0
        self.preferred_node = UNKNOWN
        self.preferred_until_ms = 0
        self.is_paused = False
        self.is_revoking = False
        self.is_taken_away = False
        self.is_open = False

    def __repr__(self) -> str:
        topic, partition = self.topic_partition
        return f"PartitionState({topic}-{partition}, position={self.position}, {self.stage.name})"

    def _settle(self) -> None:
        self.is_open = (
            self.stage is Stage.FETCH
            and not self.is_paused
            and not self.is_revoking
            and not self.is_taken_away
        )

    def seek(self, offset: int, *, epoch: int = UNKNOWN, validate: bool = False) -> None:
        """Goes on from `offset`; `epoch` is that of the record before it, if it is known."""
        self.session += 1
        self.position = self.fetch_offset = offset
        if self.origin == UNKNOWN:
            self.origin = offset
        self.position_epoch = epoch
        self.reset = None
        self.has_fault = False
        self.retry_at_ms = 0
        self.preferred_node = UNKNOWN
        self.stage = Stage.VALIDATE if validate and epoch >= 0 else Stage.FETCH
        self._settle()

    def want_reset(self, reset: Reset) -> None:
        """Has no position until the offset for `reset` is looked up."""
        self.session += 1
        self.reset = reset
        self.has_fault = False
        self.retry_at_ms = 0
        self.stage = Stage.RESET
        self._settle()

    def want_validation(self) -> None:
        """Stops fetching until it is known that the log still has what was read; needs `position_epoch`."""
        if self.stage is Stage.FETCH:
            self.stage = Stage.VALIDATE
            self._settle()

    def validated(self, leader_epoch: int) -> None:
        """Goes on from the position; what was fetched from the leader before is not trusted any more."""
        self.leader_epoch = leader_epoch
        if self.stage is Stage.VALIDATE:
            self.session += 1
            self.fetch_offset = self.position
            self.has_fault = False
            self.stage = Stage.FETCH
            self._settle()

    def pause(self, paused: bool) -> None:
        self.is_paused = paused
        self._settle()

    def revoke(self) -> None:
        """No record of it is handed out from here on, while its owner is told."""
        self.is_revoking = True
        self._settle()

    def take_away(self) -> None:
        self.is_taken_away = True
        self._settle()

    @property
    def queued_bytes(self) -> int:
        return self.added_bytes - self.used_bytes

    @property
    def has_position(self) -> bool:
        return self.stage in (Stage.FETCH, Stage.VALIDATE)

    def end_offset(self, read_committed: bool) -> int | None:
        """Where the readable part of the log ended at the last fetch, or None before one."""
        end = self.last_stable_offset if read_committed else self.high_watermark
        return None if end < 0 else end


class Subscription:
    """The topics or partitions that a user asked for, and the partitions it has."""

    def __init__(self) -> None:
        self.topics: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None
        self.is_manual = False
        self.partitions: dict[TopicPartition, PartitionState] = {}
        self.on_change: Callable[[], None] = lambda: None
        """Told whenever the partitions or one of their stages may need work."""

    @property
    def is_by_group(self) -> bool:
        """Whether the group decides on the partitions."""
        return bool(self.topics) or self.pattern is not None

    def subscribe(self, topics: Iterable[str]) -> None:
        """Reads these topics as a member of the group.  Raises Misuse after `assign`."""
        names = frozenset(topics)
        if "" in names:
            raise Misuse("a topic's name is not empty")
        self._check_mode(manual=False)
        self.topics, self.pattern = names, None

    def subscribe_pattern(self, pattern: re.Pattern[str]) -> None:
        """Reads the topics whose whole name matches, also those that come later."""
        self._check_mode(manual=False)
        self.topics, self.pattern = frozenset(), pattern

    def match(self, names: Iterable[str]) -> bool:
        """Takes the topics that the pattern matches; the result says whether they are others than before."""
        assert self.pattern is not None, "there is a pattern to match"
        matching = frozenset(name for name in names if self.pattern.fullmatch(name))
        changed = matching != self.topics
        self.topics = matching
        return changed

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads exactly these, whatever the group thinks.  Those that stay keep their positions."""
        self._check_mode(manual=True)
        self.is_manual = True
        self.replace(partitions)

    def unsubscribe(self) -> None:
        self.replace(())
        self.topics, self.pattern, self.is_manual = frozenset(), None, False

    def replace(self, partitions: Iterable[TopicPartition]) -> None:
        """Has exactly these from now on; the states of those that stay are kept."""
        wanted = dict.fromkeys(partitions)
        for tp, state in self.partitions.items():
            if tp not in wanted:
                state.take_away()
        self.partitions = {tp: self.partitions.get(tp) or PartitionState(tp) for tp in wanted}
        self.on_change()

    def state(self, tp: TopicPartition) -> PartitionState:
        """Raises Misuse for a partition that is not assigned."""
        state = self.partitions.get(tp)
        if state is None:
            raise Misuse(f"{tp.topic}-{tp.partition} is not assigned to this consumer")
        return state

    def in_stage(self, stage: Stage) -> list[PartitionState]:
        return [state for state in self.partitions.values() if state.stage is stage]

    def _check_mode(self, *, manual: bool) -> None:
        taken = self.is_by_group if manual else self.is_manual
        if taken:
            raise Misuse("a consumer either subscribes or is assigned partitions; unsubscribe in between")
