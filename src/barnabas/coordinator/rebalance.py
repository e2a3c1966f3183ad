"""Leads a group from one generation to the next.

    PreparingRebalance   waits for JoinGroup of every member, at most the longest rebalance timeout;
                         from Empty it waits the initial delay instead, prolonged by newcomers
    CompletingRebalance  waits for the leader's assignment, stores it, hands it out; who sends no
                         SyncGroup within the rebalance timeout is removed
B1  every member of a Stable generation was sent its part of the one assignment that is stored
B2  a timer of a phase is armed only while the phase lasts
Also removes members, since every removal moves the group.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from barnabas.coordinator.append_errors import group_error
from barnabas.coordinator.calls import UNKNOWN_MEMBER_ID, JoinResult, SyncCall, SyncReply, SyncResult
from barnabas.coordinator.group import Group, GroupState
from barnabas.coordinator.group_records import group_record
from barnabas.coordinator.member import Member
from barnabas.coordinator.ports import Surroundings
from barnabas.coordinator.sessions import Sessions
from barnabas.protocol.codes import ErrorCode

__all__ = ["Rebalance"]

LOG = logging.getLogger(__name__)


class Rebalance:
    """The steps of a rebalance, for any group."""

    __slots__ = ("_around", "sessions")

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self.sessions = Sessions(around.clock, around.timers, self._session_expired)

    # Join phase

    def prepare(self, group: Group, reason: str) -> None:
        """Starts a join phase; whoever waits for an assignment has to come again."""
        LOG.info("group %s: rebalance after generation %d: %s", group.group_id, group.generation_id, reason)
        around = self._around
        if group.state is GroupState.COMPLETING_REBALANCE:
            self._fail_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS)
        self._end_sync_phase(group)
        was_empty = group.state is GroupState.EMPTY
        group.move_to(GroupState.PREPARING_REBALANCE, around.clock.now_ms())
        timeout_ms = group.roster.rebalance_timeout_ms
        if was_empty:
            delay_ms = around.settings.initial_rebalance_delay_ms
            self._wait_for_newcomers(group, delay_ms, max(timeout_ms - delay_ms, 0))
        else:
            self._wait_for_joins(group, timeout_ms)
            self.complete_if_all_joined(group)

    def complete_if_all_joined(self, group: Group) -> None:
        """Ends the join phase if nobody is missing; the initial delay always runs to its end."""
        if (
            group.state is GroupState.PREPARING_REBALANCE
            and group.initial_delay_left_ms is None
            and group.roster.all_joined
        ):
            self._end_join_phase(group)

    def _wait_for_newcomers(self, group: Group, delay_ms: int, left_ms: int) -> None:
        group.newcomer_seen = False
        group.initial_delay_left_ms = left_ms
        group.rebalance_timer = self._around.timers.call_after(
            delay_ms, partial(self._initial_delay_over, group, delay_ms)
        )

    def _initial_delay_over(self, group: Group, delay_ms: int) -> None:
        left_ms = group.initial_delay_left_ms
        assert left_ms is not None, f"B2: {group}"
        if group.newcomer_seen and left_ms:
            next_ms = min(self._around.settings.initial_rebalance_delay_ms, left_ms)
            self._wait_for_newcomers(group, next_ms, max(left_ms - delay_ms, 0))
        else:
            group.initial_delay_left_ms = None
            self._end_join_phase(group)
        self._around.outbox.flush()

    def _wait_for_joins(self, group: Group, timeout_ms: int) -> None:
        group.rebalance_timer = self._around.timers.call_after(
            timeout_ms, partial(self._join_timeout_over, group)
        )

    def _join_timeout_over(self, group: Group) -> None:
        assert group.state is GroupState.PREPARING_REBALANCE, f"B2: {group}"
        self._end_join_phase(group)
        self._around.outbox.flush()

    def _end_join_phase(self, group: Group) -> None:
        if group.rebalance_timer is not None:
            group.rebalance_timer.cancel()
            group.rebalance_timer = None
        for member in group.roster:
            if member.awaiting_join is None and not member.is_static:
                LOG.info("group %s: %s did not rejoin in time", group.group_id, member)
                self._drop(group, member)
        if len(group.roster) and not group.roster.elect_joined_leader():
            # Only static members that stay away are left: their sessions decide.
            self._wait_for_joins(group, group.roster.rebalance_timeout_ms)
            return
        group.begin_generation(self._around.clock.now_ms())
        if group.state is GroupState.EMPTY:
            LOG.info("group %s: generation %d is empty", group.group_id, group.generation_id)
            # If this write is lost, the last generation comes back after a restart and its sessions expire.
            self.store(group, {}, partial(self._empty_group_stored, group))
        else:
            self._begin_sync_phase(group)

    def _empty_group_stored(self, group: Group, error: ErrorCode) -> None:
        if error:
            LOG.warning("group %s: its end could not be stored: %s", group.group_id, error.name)

    def _begin_sync_phase(self, group: Group) -> None:
        roster = group.roster
        LOG.info("group %s: generation %d has %d members", group.group_id, group.generation_id, len(roster))
        for member in roster:
            roster.answer_join(member, self.join_result(group, member))
            member.is_new = False
            self.sessions.prolong(group, member)
            group.owing_sync.add(member.member_id)
        group.sync_timer = self._around.timers.call_after(
            roster.rebalance_timeout_ms, partial(self._sync_timeout_over, group)
        )

    def join_result(self, group: Group, member: Member, *, members_for_leader: bool = True) -> JoinResult:
        """What a member is told about the current generation."""
        leads = group.roster.leader_id == member.member_id
        return JoinResult(
            ErrorCode.NONE,
            member.member_id,
            group.generation_id,
            group.protocol_type,
            group.protocol_name,
            group.roster.leader_id or "",
            members=group.joined_members() if leads and members_for_leader else (),
        )

    # Sync phase

    def sync(self, group: Group, call: SyncCall, reply: SyncReply) -> None:
        """Takes a SyncGroup; followers wait for the leader's, and its assignment for the log."""
        if error := self._sync_error(group, call):
            self._around.outbox.post(reply, SyncResult(error))
            return
        member = group.roster[call.member_id]
        self._paid_sync(group, member)
        if group.state is GroupState.STABLE:
            self.sessions.prolong(group, member)
            self._around.outbox.post(reply, self._sync_result(group, member))
            return
        group.roster.await_sync(member, reply)
        is_first = group.stored_generation != group.generation_id
        if group.roster.leader_id == member.member_id and is_first:
            self._store_assignment(group, {who: bytes(what) for who, what in call.assignments})

    def _sync_error(self, group: Group, call: SyncCall) -> ErrorCode:
        if error := group.member_error(call.member_id, call.instance_id):
            return error
        if call.generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        for said, actual in (
            (call.protocol_type, group.protocol_type),
            (call.protocol_name, group.protocol_name),
        ):
            if said is not None and said != actual:
                return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if group.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _store_assignment(self, group: Group, given: Mapping[str, bytes]) -> None:
        assignments = {member.member_id: given.get(member.member_id, b"") for member in group.roster}
        group.stored_generation = group.generation_id
        self.store(
            group, assignments, partial(self._assignment_stored, group, group.generation_id, assignments)
        )

    def _assignment_stored(
        self, group: Group, generation_id: int, assignments: Mapping[str, bytes], error: ErrorCode
    ) -> None:
        # Somebody may have joined or left while the log was busy; then the next generation is under way.
        if group.state is GroupState.COMPLETING_REBALANCE and group.generation_id == generation_id:
            if error:
                self._fail_syncs(group, error)
                self.prepare(group, f"its assignment could not be stored: {error.name}")
            else:
                group.move_to(GroupState.STABLE, self._around.clock.now_ms())
                for member in group.roster:
                    member.assignment = assignments[member.member_id]
                    if group.roster.answer_sync(member, self._sync_result(group, member)):
                        self.sessions.prolong(group, member)
        self._around.outbox.flush()

    def _sync_result(self, group: Group, member: Member) -> SyncResult:
        return SyncResult(ErrorCode.NONE, member.assignment, group.protocol_type, group.protocol_name)

    def _fail_syncs(self, group: Group, error: ErrorCode) -> None:
        for member in group.roster:
            member.assignment = b""
            if group.roster.answer_sync(member, SyncResult(error)):
                self.sessions.prolong(group, member)

    def _paid_sync(self, group: Group, member: Member) -> None:
        group.owing_sync.discard(member.member_id)
        if not group.owing_sync:
            self._end_sync_phase(group)

    def _end_sync_phase(self, group: Group) -> None:
        group.owing_sync.clear()
        if group.sync_timer is not None:
            group.sync_timer.cancel()
            group.sync_timer = None

    def _sync_timeout_over(self, group: Group) -> None:
        assert group.owing_sync, f"B2: {group}"
        group.sync_timer = None
        for member_id in sorted(group.owing_sync):
            self._drop(group, group.roster[member_id])
        self.prepare(group, "some members sent no SyncGroup in time")
        self._around.outbox.flush()

    # Leaving

    def remove(self, group: Group, member: Member, reason: str) -> None:
        """Takes a member out and rebalances the others; its open calls get UNKNOWN_MEMBER_ID."""
        self._drop(group, member)
        if group.state is GroupState.PREPARING_REBALANCE:
            self.complete_if_all_joined(group)
        else:
            self.prepare(group, reason)

    def _drop(self, group: Group, member: Member) -> None:
        unknown = ErrorCode.UNKNOWN_MEMBER_ID
        group.roster.answer_join(member, JoinResult(unknown, UNKNOWN_MEMBER_ID))
        group.roster.answer_sync(member, SyncResult(unknown))
        self.sessions.end(member)
        group.roster.remove(member)
        group.owing_sync.discard(member.member_id)

    def _session_expired(self, group: Group, member: Member) -> None:
        LOG.info("group %s: the session of %s expired", group.group_id, member)
        self.remove(group, member, f"the session of {member.member_id} expired")
        self._around.outbox.flush()

    # Whole groups

    def watch_all(self, groups: Iterable[Group]) -> None:
        """Starts the sessions of loaded groups, and a rebalance where a group has grown too large."""
        for group in groups:
            for member in group.roster:
                self.sessions.prolong(group, member)
            if len(group.roster) > self._around.settings.group_size_max:
                self.prepare(group, "the group is larger than group.max.size allows")

    def kill(self, group: Group, error: ErrorCode) -> None:
        """Ends the group in this coordinator; whoever waits is told `error`."""
        for timer in (group.rebalance_timer, *group.roster.promised.values()):
            if timer is not None:
                timer.cancel()
        group.rebalance_timer = None
        group.roster.promised.clear()
        for member in group.roster:
            group.roster.answer_join(member, JoinResult(error, member.member_id))
            group.roster.answer_sync(member, SyncResult(error))
            self._drop(group, member)
        self._end_sync_phase(group)
        group.move_to(GroupState.DEAD, self._around.clock.now_ms())

    def store(
        self, group: Group, assignments: Mapping[str, bytes], done: Callable[[ErrorCode], None]
    ) -> None:
        """Writes the group's record; `done` gets the code for clients once it is durable or lost."""
        record = group_record(group, assignments)
        group.record_sequence = next(self._around.sequence)
        self._around.log.append(group.partition, [record], lambda error: done(group_error(error)))
