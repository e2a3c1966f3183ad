"""Takes offsets and whole groups away: on request, because a topic is gone, or because they are too old.

E1  nothing disappears from memory before its tombstone is durable
E2  what was written after the tombstone's append stays: offsets, and the group's own record
E3  a group goes only when it is Empty and its last offset is gone
E4  ids promised to newcomers (KIP-394) keep a group from going by itself, not from being deleted
"""

from collections.abc import Callable, Collection, Iterable
from functools import partial

from barnabas.base.types import TopicPartition
from barnabas.coordinator.append_errors import commit_error
from barnabas.coordinator.group import Group, GroupState
from barnabas.coordinator.group_records import group_tombstone, offset_tombstone
from barnabas.coordinator.groups import GroupTable
from barnabas.coordinator.ports import Surroundings
from barnabas.protocol.codes import ErrorCode

__all__ = ["Removal", "expired_partitions"]


def expired_partitions(group: Group, now_ms: int, retention_ms: int) -> list[TopicPartition]:
    """Partitions whose offsets have outlived their use (KIP-211).

    Without members the time counts from when the group became Empty, for consumers without a group from
    the commit.  With consumers only topics that nobody subscribes to expire, from the commit.  A commit
    that brought its own expiry keeps to it.  What is being written or pending never expires.
    """
    since_ms: int | None = None
    spared: Collection[str] = ()
    if group.protocol_type is not None:
        if group.state is GroupState.EMPTY:
            since_ms = group.state_since_ms
        elif (
            group.state is GroupState.STABLE
            and group.is_consumer_group
            and group.subscribed_topics is not None
        ):
            spared = group.subscribed_topics
        else:
            return []
    expired: list[TopicPartition] = []
    for partition, committed in group.offsets.committed.items():
        if committed.expire_ms >= 0:
            is_old = now_ms >= committed.expire_ms
        else:
            is_old = now_ms - (committed.commit_ms if since_ms is None else since_ms) >= retention_ms
        if is_old and partition.topic not in spared and not group.offsets.is_unstable(partition):
            expired.append(partition)
    return expired


class Removal:
    """Writes tombstones and then lets go."""

    __slots__ = ("_around", "_table", "removed_count")

    def __init__(self, around: Surroundings, table: GroupTable) -> None:
        self._around = around
        self._table = table
        self.removed_count = 0
        """Offsets removed since the start."""

    def remove(
        self, group: Group, partitions: Iterable[TopicPartition], done: Callable[[ErrorCode], None]
    ) -> None:
        """Removes the offsets of these partitions, and the group if nothing is left of it."""
        held = group.offsets.partitions()
        going = held.intersection(partitions)
        self._remove(group, going, going == held and not group.roster.promised, (), done)

    def delete(self, group: Group, done: Callable[[ErrorCode], None]) -> None:
        """Removes an Empty group with its offsets and the ids it promised."""
        self._remove(group, group.offsets.partitions(), True, tuple(group.roster.promised), done)

    def _remove(
        self,
        group: Group,
        going: Collection[TopicPartition],
        takes_all: bool,
        promised: Collection[str],
        done: Callable[[ErrorCode], None],
    ) -> None:
        is_last = takes_all and group.state is GroupState.EMPTY
        records = [offset_tombstone(group.group_id, partition) for partition in sorted(going)]
        if is_last and group.generation_id > 0:  # a group of generation 0 never had a record
            records.append(group_tombstone(group.group_id))
        sequence = next(self._around.sequence)
        if records:
            finish = partial(self._written, group, going, is_last, promised, sequence, done)
            self._around.log.append(group.partition, records, finish)
        else:
            self._written(group, going, is_last, promised, sequence, done, ErrorCode.NONE)

    def _written(
        self,
        group: Group,
        going: Iterable[TopicPartition],
        is_last: bool,
        promised: Iterable[str],
        sequence: int,
        done: Callable[[ErrorCode], None],
        error: ErrorCode,
    ) -> None:
        if not error and group.state is not GroupState.DEAD:
            self.removed_count += group.offsets.remove(going, sequence)
            # Members may have come and gone since: then a later record says what the group is (E2).
            if is_last and group.state is GroupState.EMPTY and group.record_sequence < sequence:
                for member_id in promised:
                    group.roster.withdraw_promise(member_id)
                self._let_go(group)
        done(commit_error(error))

    def _let_go(self, group: Group) -> None:
        if group.is_unused:
            group.move_to(GroupState.DEAD, self._around.clock.now_ms())
            self._table.remove(group)
        else:
            # Somebody came back after the tombstone; the group starts over, as a reload would have it.
            group.generation_id = 0
            group.protocol_type = group.protocol_name = group.subscribed_topics = None

    def sweep(self) -> None:
        """Removes everything that expired, and Empty groups that hold nothing."""
        now_ms, retention_ms = self._around.clock.now_ms(), self._around.settings.retention_ms
        for group in self._table:
            expired = expired_partitions(group, now_ms, retention_ms)
            if expired or group.is_unused:
                self.remove(group, expired, _ignore)


def _ignore(error: ErrorCode) -> None:
    """A sweep that could not write tries again the next time."""
