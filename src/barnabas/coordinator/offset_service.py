"""OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete for all groups.

C1  a commit is answered NONE only after the log made it durable
C2  a commit is visible to a fetch from the moment it is answered
Commits are the hot path: no work that grows with the group's members or its other offsets.
"""

from collections.abc import Collection, Sequence
from functools import partial

from barnabas.base.types import TopicPartition
from barnabas.coordinator.append_errors import commit_error
from barnabas.coordinator.calls import (
    FetchedOffset,
    FetchedOffsets,
    OffsetsReply,
    OffsetsResult,
    OffsetToCommit,
)
from barnabas.coordinator.group import Group, GroupState
from barnabas.coordinator.group_records import can_be_stored, offset_record
from barnabas.coordinator.groups import GroupTable
from barnabas.coordinator.offsets import NO_TIMESTAMP, CommittedOffset
from barnabas.coordinator.ports import Producer, Surroundings
from barnabas.coordinator.removal import Removal
from barnabas.coordinator.sessions import Sessions
from barnabas.protocol.codes import ErrorCode

__all__ = ["OffsetService"]

Written = dict[TopicPartition, CommittedOffset]
_TIMESTAMP_MAX = 2**63 - 1


class OffsetService:
    """Committed offsets of the groups in a GroupTable."""

    __slots__ = ("_around", "_removal", "_sessions", "_table", "commit_count")

    def __init__(self, around: Surroundings, table: GroupTable, sessions: Sessions, removal: Removal) -> None:
        self._around = around
        self._table = table
        self._sessions = sessions
        self._removal = removal
        self.commit_count = 0
        """Offsets committed since the start."""

    # OffsetCommit

    def commit(
        self,
        group_id: str,
        *,
        member_id: str,
        generation_id: int,
        instance_id: str | None = None,
        offsets: Sequence[OffsetToCommit],
        reply: OffsetsReply,
        retention_ms: int | None = None,
    ) -> None:
        """Commits offsets of a member, or of anybody (generation -1) while the group is Empty or unknown.

        `retention_ms` is that of v2-4; None keeps to the broker's.
        """
        error, group = self._committer(group_id, generation_id)
        if group is not None:
            error = group.commit_error(member_id, instance_id, generation_id, transactional=False)
        if error or group is None:
            reply(OffsetsResult(ErrorCode.NONE, self._refused(offsets, error)))
            return
        member = group.roster.get(member_id)
        if member is not None:
            self._sessions.prolong(group, member)
        self._write(group, offsets, retention_ms, None, reply)

    def commit_in_transaction(
        self,
        group_id: str,
        *,
        producer: Producer,
        member_id: str = "",
        generation_id: int = -1,
        instance_id: str | None = None,
        offsets: Sequence[OffsetToCommit],
        reply: OffsetsReply,
    ) -> None:
        """Writes offsets that count when the producer's transaction commits.

        The caller has checked the producer with its transaction coordinator.
        """
        error = ErrorCode.NONE if group_id else ErrorCode.INVALID_GROUP_ID
        group: Group | None = None
        if not error:
            error, group = self._committer(group_id, generation_id)
        if group is not None:
            error = group.commit_error(member_id, instance_id, generation_id, transactional=True)
        if error or group is None:
            reply(OffsetsResult(ErrorCode.NONE, self._refused(offsets, error)))
            return
        self._write(group, offsets, None, producer, reply)

    def end_transaction(self, partition: int, producer_id: int, *, committed: bool) -> None:
        """The producer's marker in this partition of the offsets topic is durable."""
        owned = self._table.owned(partition)
        if owned is None:
            return  # whoever leads the partition now reads the marker when loading
        for group_id in owned.open_groups.pop(producer_id, ()):
            group = owned.groups.get(group_id)
            if group is not None:
                group.offsets.end_transaction(producer_id, committed=committed)

    def _committer(self, group_id: str, generation_id: int) -> tuple[ErrorCode, Group | None]:
        """The group to commit to, made if need be, or why there is none."""
        group = self._table.find(group_id)
        if group is not None:
            return ErrorCode.NONE, group
        if not can_be_stored(group_id):
            return ErrorCode.INVALID_GROUP_ID, None
        error = self._table.error(group_id)
        if not error and generation_id >= 0:
            error = ErrorCode.ILLEGAL_GENERATION
        return error, None if error else self._table.create(group_id)

    def _refused(self, offsets: Sequence[OffsetToCommit], error: ErrorCode) -> list[ErrorCode]:
        has_partition = self._around.topics.has_partition
        return [
            error if has_partition(*offset.partition) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            for offset in offsets
        ]

    def _write(
        self,
        group: Group,
        offsets: Sequence[OffsetToCommit],
        retention_ms: int | None,
        producer: Producer | None,
        reply: OffsetsReply,
    ) -> None:
        around = self._around
        now_ms = around.clock.now_ms()
        expire_ms = NO_TIMESTAMP if retention_ms is None else min(now_ms + retention_ms, _TIMESTAMP_MAX)
        length_max = around.settings.metadata_length_max
        sequence = next(around.sequence)
        written: Written = {}
        errors: list[ErrorCode] = []
        for offset in offsets:
            metadata = offset.metadata or ""
            if not around.topics.has_partition(*offset.partition):
                errors.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif _is_too_long(metadata, length_max):
                errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            else:
                errors.append(ErrorCode.NONE)
                commit_ms = now_ms if offset.timestamp_ms is None else offset.timestamp_ms
                written[offset.partition] = CommittedOffset(
                    offset.offset, offset.leader_epoch, metadata, commit_ms, expire_ms, sequence
                )
        if not written:
            reply(OffsetsResult(ErrorCode.NONE, errors))
            return
        records = [offset_record(group.group_id, partition, made) for partition, made in written.items()]
        group.offsets.begin_write(written)
        done = partial(self._written, group, written, producer, errors, reply)
        around.log.append(group.partition, records, done, producer)

    def _written(
        self,
        group: Group,
        written: Written,
        producer: Producer | None,
        errors: list[ErrorCode],
        reply: OffsetsReply,
        error: ErrorCode,
    ) -> None:
        group.offsets.end_write(written)
        if error:
            client_error = commit_error(error)
            errors = [before or client_error for before in errors]
        elif producer is None:
            self.commit_count += len(written)
            for partition, committed in written.items():
                group.offsets.commit(partition, committed)
        else:
            self._hold(group, producer.producer_id, written)
        reply(OffsetsResult(ErrorCode.NONE, errors))

    def _hold(self, group: Group, producer_id: int, written: Written) -> None:
        owned = self._table.owned(group.partition)
        if owned is None or group.state is GroupState.DEAD:
            return  # the partition moved away; its new leader reads the records
        owned.open_transaction(producer_id, group.group_id)
        for partition, pending in written.items():
            group.offsets.hold(producer_id, partition, pending)

    # OffsetFetch

    def fetch(
        self, group_id: str, partitions: Sequence[TopicPartition] | None, *, require_stable: bool = False
    ) -> FetchedOffsets:
        """Offsets of the partitions in the order given; None means all that are committed, topic by topic.

        An unknown group, or one without a commit, answers offset -1 without an error.
        """
        group = self._table.find(group_id)
        if group is None:
            error = self._table.error(group_id)
            if error:
                return FetchedOffsets(error)
            return FetchedOffsets(
                ErrorCode.NONE, [FetchedOffset(partition) for partition in partitions or ()]
            )
        wanted = sorted(group.offsets.committed) if partitions is None else partitions
        return FetchedOffsets(
            ErrorCode.NONE, [_fetched(group, partition, require_stable) for partition in wanted]
        )

    # OffsetDelete

    def delete(self, group_id: str, partitions: Sequence[TopicPartition], reply: OffsetsReply) -> None:
        """Deletes offsets; consumers of a live group keep those of topics they subscribe to."""
        error, group = self._deletable(group_id)
        if error or group is None:
            reply(OffsetsResult(error))
            return
        is_empty = group.state is GroupState.EMPTY
        errors: list[ErrorCode] = []
        for partition in partitions:
            if not self._around.topics.has_partition(*partition):
                errors.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif not is_empty and group.is_subscribed_to(partition.topic):
                errors.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
            else:
                errors.append(ErrorCode.NONE)
        going = [partition for partition, error in zip(partitions, errors, strict=True) if not error]
        if not going:
            reply(OffsetsResult(ErrorCode.NONE, errors))
            return

        def done(error: ErrorCode) -> None:
            reply(OffsetsResult(ErrorCode.NONE, [before or error for before in errors]))

        self._removal.remove(group, going, done)

    def _deletable(self, group_id: str) -> tuple[ErrorCode, Group | None]:
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID, None
        group = self._table.find(group_id)
        if group is None:
            return self._table.error(group_id) or ErrorCode.GROUP_ID_NOT_FOUND, None
        if group.state is not GroupState.EMPTY and not group.is_consumer_group:
            return ErrorCode.NON_EMPTY_GROUP, None  # what other protocols read is not known
        return ErrorCode.NONE, group

    def topics_deleted(self, topics: Collection[str]) -> None:
        """Removes every offset of topics that are gone from the cluster."""
        for group in self._table:
            going = [partition for partition in group.offsets.partitions() if partition.topic in topics]
            if going:
                self._removal.remove(group, going, _ignore)


def _fetched(group: Group, partition: TopicPartition, require_stable: bool) -> FetchedOffset:
    if require_stable and group.offsets.is_unstable(partition):
        return FetchedOffset(partition, error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    committed = group.offsets.get(partition)
    if committed is None:
        return FetchedOffset(partition)
    return FetchedOffset(partition, committed.offset, committed.leader_epoch, committed.metadata)


def _is_too_long(metadata: str, length_max: int) -> bool:
    """Kafka counts UTF-16 units; a record's text has its own limit in bytes."""
    if (
        len(metadata) * 2 > length_max
        and len(metadata.encode("utf-16-be", "surrogatepass")) // 2 > length_max
    ):
        return True
    return not can_be_stored(metadata)


def _ignore(error: ErrorCode) -> None:
    """Offsets of a deleted topic that could not be removed now expire in time."""
