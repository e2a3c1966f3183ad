"""The group coordinator: every call of the group APIs finds its group here.

What can be decided at once is returned; JoinGroup, SyncGroup and whatever writes to the log take a `reply`,
which is called exactly once, maybe before the call returns.  One caller at a time (the event loop).
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence

from barnabas.coordinator.calls import (
    GroupDescription,
    JoinCall,
    JoinReply,
    JoinResult,
    LeaveResult,
    LeavingMember,
    ListResult,
    SyncCall,
    SyncReply,
    SyncResult,
)
from barnabas.coordinator.group import Group, GroupState
from barnabas.coordinator.group_records import can_be_stored
from barnabas.coordinator.groups import GroupTable
from barnabas.coordinator.joining import Joining
from barnabas.coordinator.loading import PartitionLoad
from barnabas.coordinator.offset_service import OffsetService
from barnabas.coordinator.ports import Surroundings, TimerHandle
from barnabas.coordinator.rebalance import Rebalance
from barnabas.coordinator.removal import Removal
from barnabas.protocol.codes import ErrorCode

__all__ = ["GroupCoordinator"]

LOG = logging.getLogger(__name__)
CLASSIC = "classic"


class GroupCoordinator:
    """Groups and, in `offsets`, what they committed."""

    def __init__(self, around: Surroundings, partition_count: int) -> None:
        """`partition_count` is that of `__consumer_offsets`, which never changes once it exists."""
        self._around = around
        self._rebalance = Rebalance(around)
        self._joining = Joining(around, self._rebalance)
        self._sweep_timer: TimerHandle | None = None
        self.table = GroupTable(around, partition_count)
        self.removal = Removal(around, self.table)
        self.offsets = OffsetService(around, self.table, self._rebalance.sessions, self.removal)

    # Life

    def start(self) -> None:
        """Answers calls from now on, and removes what expires."""
        self.table.is_active = True
        self._sweep_later()

    def stop(self) -> None:
        """Lets go of all partitions; whoever waits is told NOT_COORDINATOR."""
        self.table.is_active = False
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
            self._sweep_timer = None
        for partition in range(self.table.partition_count):
            self.unload(partition)

    def _sweep_later(self) -> None:
        interval_ms = self._around.settings.retention_check_interval_ms
        self._sweep_timer = self._around.timers.call_after(interval_ms, self._sweep)

    def _sweep(self) -> None:
        self._sweep_later()
        self.removal.sweep()

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` whose leader coordinates the group."""
        return self.table.partition_for(group_id)

    # Leadership

    def begin_load(self, partition: int, epoch: int) -> PartitionLoad | None:
        """This broker leads the partition since `epoch`.  Feed the load its whole log, then `finish_load`.

        None if that is old news.  Until it is finished, calls are told COORDINATOR_LOAD_IN_PROGRESS.
        """
        owned = self.table.begin_load(partition, epoch)
        return None if owned is None else PartitionLoad(partition, owned)

    def finish_load(self, load: PartitionLoad) -> None:
        """The load has seen the log to its end; does nothing if the partition moved away meanwhile."""
        if not self.table.is_current(load.partition, load.owned):
            return
        groups = load.groups(self._around.outbox, self._around.clock.now_ms())
        load.owned.is_loading = False
        for group in groups:
            self.table.add(group)
        LOG.info("partition %d: loaded %d groups", load.partition, len(groups))
        for fault in load.faults:
            LOG.error("partition %d: %s", load.partition, fault)
        self._rebalance.watch_all(groups)
        self._around.outbox.flush()

    def load(
        self,
        partition: int,
        records: Iterable[tuple[bytes | memoryview | None, bytes | memoryview | None]],
        epoch: int = 0,
    ) -> None:
        """Begins, feeds and finishes a load from plain records (no transactions)."""
        load = self.begin_load(partition, epoch)
        if load is not None:
            for key, value in records:
                load.record(key, value)
            self.finish_load(load)

    def unload(self, partition: int, epoch: int | None = None) -> None:
        """Another broker leads the partition since `epoch`; None if it was deleted."""
        owned = self.table.give_up(partition, epoch)
        if owned is not None:
            for group in owned.groups.values():
                self._rebalance.kill(group, ErrorCode.NOT_COORDINATOR)
            self._around.outbox.flush()

    # Membership

    def join(self, group_id: str, call: JoinCall, reply: JoinReply) -> None:
        error = self._join_error(group_id, call)
        if error:
            reply(JoinResult(error, call.member_id))
            return
        group = self.table.find(group_id) or self.table.create(group_id)
        self._joining.join(group, call, reply)
        if group.is_unused and group.generation_id == 0:
            # A refused call must not leave a group behind.
            self._rebalance.kill(group, ErrorCode.UNKNOWN_MEMBER_ID)
            self.table.remove(group)
        self._around.outbox.flush()

    def _join_error(self, group_id: str, call: JoinCall) -> ErrorCode:
        if error := self._error(group_id):
            return error
        settings = self._around.settings
        if not settings.session_timeout_ms_min <= call.session_timeout_ms <= settings.session_timeout_ms_max:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        texts = [call.client_id, call.client_host, call.instance_id or "", call.protocol_type]
        if not all(can_be_stored(text) for text in (*texts, *(name for name, _ in call.protocols))):
            return ErrorCode.INVALID_REQUEST
        if call.member_id and self.table.find(group_id) is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE

    def sync(self, group_id: str, call: SyncCall, reply: SyncReply) -> None:
        group = self.table.find(group_id)
        if group is None:
            error = self._error(group_id) or ErrorCode.UNKNOWN_MEMBER_ID
            if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                # The rebalance was lost with the old coordinator, and old clients do not know the other code.
                error = ErrorCode.REBALANCE_IN_PROGRESS
            reply(SyncResult(error))
            return
        self._rebalance.sync(group, call, reply)
        self._around.outbox.flush()

    def heartbeat(
        self, group_id: str, member_id: str, generation_id: int, instance_id: str | None = None
    ) -> ErrorCode:
        group = self.table.find(group_id)
        if group is None:
            error = self._error(group_id) or ErrorCode.UNKNOWN_MEMBER_ID
            # Sessions start anew after the load, so there is nothing to say yet.
            return ErrorCode.NONE if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error
        if error := group.member_error(member_id, instance_id):
            return error
        if generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        self._rebalance.sessions.prolong(group, group.roster[member_id])
        is_joining = group.state is GroupState.PREPARING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if is_joining else ErrorCode.NONE

    def leave(self, group_id: str, leaving: Sequence[LeavingMember]) -> LeaveResult:
        group = self.table.find(group_id)
        if group is None:
            if error := self._error(group_id):
                return LeaveResult(error)
            return LeaveResult(ErrorCode.NONE, [ErrorCode.UNKNOWN_MEMBER_ID] * len(leaving))
        errors = [self._leave(group, who) for who in leaving]
        self._around.outbox.flush()
        return LeaveResult(ErrorCode.NONE, errors)

    def _leave(self, group: Group, who: LeavingMember) -> ErrorCode:
        roster = group.roster
        member_id = who.member_id
        if not member_id:  # an administrator names the instance only
            member_id = roster.instances.get(who.instance_id or "", "")
        elif roster.withdraw_promise(member_id):
            self._rebalance.complete_if_all_joined(group)
            return ErrorCode.NONE
        elif error := group.member_error(member_id, who.instance_id):
            return error
        member = roster.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._rebalance.remove(group, member, f"{member_id} left: {who.reason or 'no reason given'}")
        return ErrorCode.NONE

    # Administration

    def describe_group(self, group_id: str) -> GroupDescription:
        group = self.table.find(group_id)
        if group is not None:
            return group.describe()
        if error := self.table.error(group_id):
            return GroupDescription(error, group_id)
        return GroupDescription(ErrorCode.GROUP_ID_NOT_FOUND, group_id, GroupState.DEAD.value)

    def list_groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> ListResult:
        """Groups in any of the states and of any of the types, whatever their case; none given means all."""
        if not self.table.is_active:
            return ListResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        wanted = {state.lower() for state in states}
        is_wanted_type = not types or CLASSIC in {kind.lower() for kind in types}
        groups = [
            group.listing()
            for group in self.table
            if is_wanted_type and (not wanted or group.state.value.lower() in wanted)
        ]
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ListResult(loading if self.table.is_loading else ErrorCode.NONE, groups)

    def delete_group(self, group_id: str, reply: Callable[[ErrorCode], None]) -> None:
        """Deletes an Empty group with its offsets; DeleteGroups calls it for each of its groups."""
        group = self.table.find(group_id)
        if group is None:
            reply(self.table.error(group_id) or ErrorCode.GROUP_ID_NOT_FOUND)
        elif group.state is not GroupState.EMPTY:
            reply(ErrorCode.NON_EMPTY_GROUP)
        else:
            self.removal.delete(group, reply)

    def _error(self, group_id: str) -> ErrorCode:
        """NONE if the group may be used for membership here."""
        if not group_id or not can_be_stored(group_id):
            return ErrorCode.INVALID_GROUP_ID
        return self.table.error(group_id)
