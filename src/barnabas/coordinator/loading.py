"""Rebuilds the groups of one partition from its log.

Feed it every record and every transaction marker in log order; it keeps only what the last ones say.  Touches
nothing of the coordinator, so it may run in a thread; `GroupCoordinator.finish_load` takes the outcome over.
Records that cannot be read are left out and counted: one bad record must not take a thousand groups away.
"""

from itertools import count

from barnabas.base.types import TopicPartition
from barnabas.coordinator.group import Group, GroupState
from barnabas.coordinator.group_records import (
    CorruptGroupRecord,
    GroupKey,
    OffsetKey,
    StoredGroup,
    decode_group,
    decode_key,
    decode_offset,
)
from barnabas.coordinator.groups import OwnedPartition
from barnabas.coordinator.offsets import GroupOffsets
from barnabas.coordinator.outbox import Outbox
from barnabas.coordinator.roster import Roster

__all__ = ["PartitionLoad"]

_BEFORE_ALL_WRITES = -(2**62)
FAULTS_KEPT_MAX = 10


class PartitionLoad:
    """The state of one partition of `__consumer_offsets` so far."""

    __slots__ = (
        "_groups",
        "_held",
        "_offsets",
        "_sequence",
        "fault_count",
        "faults",
        "owned",
        "partition",
        "record_count",
        "unknown_count",
    )

    def __init__(self, partition: int, owned: OwnedPartition) -> None:
        self.partition = partition
        self.owned = owned
        self.record_count = 0
        self.unknown_count = 0
        """Records of kinds that classic groups do not use."""
        self.fault_count = 0
        self.faults: list[CorruptGroupRecord] = []
        """The first few of them, for the log."""
        self._groups: dict[str, StoredGroup] = {}
        self._offsets: dict[str, GroupOffsets] = {}
        self._held: dict[int, set[str]] = {}  # producer id -> groups in its open transaction
        self._sequence = count(_BEFORE_ALL_WRITES)

    def record(
        self, key: bytes | memoryview | None, value: bytes | memoryview | None, producer_id: int | None = None
    ) -> None:
        """One record; `producer_id` is given if and only if its batch is transactional."""
        self.record_count += 1
        try:
            self._record(key, value, producer_id)
        except CorruptGroupRecord as fault:
            self.fault_count += 1
            if len(self.faults) < FAULTS_KEPT_MAX:
                self.faults.append(fault)

    def marker(self, producer_id: int, *, committed: bool) -> None:
        """The end of a transaction: its offsets count from here on, or never."""
        for group_id in self._held.pop(producer_id, ()):
            self._offsets[group_id].end_transaction(producer_id, committed=committed)

    def _record(
        self, key: bytes | memoryview | None, value: bytes | memoryview | None, producer_id: int | None
    ) -> None:
        if key is None:
            raise CorruptGroupRecord("a record of __consumer_offsets has no key")
        match decode_key(key):
            case OffsetKey(group_id, partition):
                self._offset(group_id, partition, value, producer_id)
            case GroupKey(group_id):
                self._groups.pop(group_id, None)
                if value is not None:
                    self._groups[group_id] = decode_group(value)
            case None:
                self.unknown_count += 1

    def _offset(
        self,
        group_id: str,
        partition: TopicPartition,
        value: bytes | memoryview | None,
        producer_id: int | None,
    ) -> None:
        offsets = self._offsets.setdefault(group_id, GroupOffsets())
        sequence = next(self._sequence)
        if value is None:
            offsets.remove([partition], sequence)
            return
        committed = decode_offset(value, sequence)
        if producer_id is None:
            offsets.commit(partition, committed)
        else:
            offsets.hold(producer_id, partition, committed)
            self._held.setdefault(producer_id, set()).add(group_id)

    def groups(self, outbox: Outbox, now_ms: int) -> list[Group]:
        """The groups that the log holds, Stable or Empty, not yet watched."""
        loaded: list[Group] = []
        with_offsets = [group_id for group_id, offsets in self._offsets.items() if not offsets.is_idle]
        for group_id in dict.fromkeys((*self._groups, *with_offsets)):
            stored = self._groups.get(group_id)
            group = Group(group_id, self.partition, outbox, now_ms)
            group.offsets = self._offsets.get(group_id, group.offsets)
            if stored is not None:
                _restore(group, stored)
            for producer_id in group.offsets.producers:
                self.owned.open_transaction(producer_id, group_id)
            loaded.append(group)
        return loaded


def _restore(group: Group, stored: StoredGroup) -> None:
    group.protocol_type = stored.protocol_type
    group.protocol_name = stored.protocol_name
    group.generation_id = stored.generation_id
    group.state_since_ms = stored.state_since_ms
    _enrol(group.roster, stored)
    if len(group.roster):
        group.state = GroupState.STABLE
        group.stored_generation = stored.generation_id
    group.refresh_subscribed_topics()


def _enrol(roster: Roster, stored: StoredGroup) -> None:
    for member in stored.members:
        if member.member_id not in roster and member.instance_id not in roster.instances:
            roster.add(member)
    if stored.leader_id is not None and stored.leader_id in roster:
        roster.leader_id = stored.leader_id
