"""All groups of this broker, by the partition of `__consumer_offsets` that keeps them.

T1  a group is here if and only if its partition is led by this broker and loaded
T2  a Dead group is not here
T3  `open_groups` names, per producer, every group in which it holds offsets of an open transaction
An election or resignation with an epoch below the last one seen is stale and changes nothing.
"""

from collections.abc import Iterator

from barnabas.coordinator.group import Group, GroupState
from barnabas.coordinator.hashing import partition_of
from barnabas.coordinator.ports import Surroundings
from barnabas.protocol.codes import ErrorCode

__all__ = ["GroupTable", "OwnedPartition"]


class OwnedPartition:
    """A partition of the offsets topic that this broker leads."""

    __slots__ = ("groups", "is_loading", "open_groups")

    def __init__(self) -> None:
        self.is_loading = True
        self.groups: dict[str, Group] = {}
        self.open_groups: dict[int, set[str]] = {}  # producer id -> group ids

    def open_transaction(self, producer_id: int, group_id: str) -> None:
        self.open_groups.setdefault(producer_id, set()).add(group_id)


class GroupTable:
    """Groups by id, and whether this broker may speak for them."""

    __slots__ = ("_around", "_epochs", "_groups", "_owned", "is_active", "partition_count")

    def __init__(self, around: Surroundings, partition_count: int) -> None:
        self.partition_count = partition_count
        self.is_active = False
        self._around = around
        self._groups: dict[str, Group] = {}  # the same groups once more, to find one without its hash
        self._owned: dict[int, OwnedPartition] = {}
        self._epochs: dict[int, int] = {}

    # Finding

    def __iter__(self) -> Iterator[Group]:
        """The groups of this moment; the table may change meanwhile."""
        return iter(list(self._groups.values()))

    @property
    def is_loading(self) -> bool:
        return any(owned.is_loading for owned in self._owned.values())

    def find(self, group_id: str) -> Group | None:
        return self._groups.get(group_id)

    def partition_for(self, group_id: str) -> int:
        return partition_of(group_id, self.partition_count)

    def error(self, group_id: str) -> ErrorCode:
        """NONE if this broker coordinates the group now; need not be asked for a group that was found."""
        if not self.is_active:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        owned = self._owned.get(self.partition_for(group_id))
        if owned is None:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if owned.is_loading else ErrorCode.NONE

    def owned(self, partition: int) -> OwnedPartition | None:
        """The partition if this broker leads it and has loaded it."""
        found = self._owned.get(partition)
        return None if found is None or found.is_loading else found

    # Changing

    def create(self, group_id: str) -> Group:
        """A new Empty group; `error` must have said NONE."""
        partition = self.partition_for(group_id)
        group = Group(group_id, partition, self._around.outbox, self._around.clock.now_ms())
        self.add(group)
        return group

    def add(self, group: Group) -> None:
        assert group.group_id not in self._groups, f"{group} is there already"
        self._owned[group.partition].groups[group.group_id] = group
        self._groups[group.group_id] = group

    def remove(self, group: Group) -> None:
        assert group.state is GroupState.DEAD, f"T2: {group}"
        if self._groups.get(group.group_id) is group:
            del self._groups[group.group_id]
            owned = self._owned[group.partition]
            del owned.groups[group.group_id]
            for producer_id in group.offsets.producers:
                self.close_transaction(owned, producer_id, group.group_id)

    def close_transaction(self, owned: OwnedPartition, producer_id: int, group_id: str) -> None:
        open_groups = owned.open_groups.get(producer_id, set())
        open_groups.discard(group_id)
        if not open_groups:
            owned.open_groups.pop(producer_id, None)

    # Leadership

    def begin_load(self, partition: int, epoch: int) -> OwnedPartition | None:
        """Takes the partition over; None if the epoch is stale or it is here already."""
        if not self._is_current(partition, epoch) or partition in self._owned:
            return None
        owned = self._owned[partition] = OwnedPartition()
        return owned

    def is_current(self, partition: int, owned: OwnedPartition) -> bool:
        return self._owned.get(partition) is owned

    def give_up(self, partition: int, epoch: int | None) -> OwnedPartition | None:
        """Lets go of the partition; None if the epoch is stale or it is not here.

        The caller kills the groups.  No epoch means the partition is gone for good.
        """
        if epoch is not None and not self._is_current(partition, epoch):
            return None
        owned = self._owned.pop(partition, None)
        if owned is not None:
            for group_id in owned.groups:
                del self._groups[group_id]
        return owned

    def _is_current(self, partition: int, epoch: int) -> bool:
        if epoch < self._epochs.get(partition, epoch):
            return False
        self._epochs[partition] = epoch
        return True
