"""JoinGroup: who may join, under which id, and whether the group has to rebalance for it.

Dynamic members get an id first and come again with it (KIP-394).  A static member that comes without its
id takes the place of the one that carried its instance id; in a Stable group that alone is no reason to
rebalance (KIP-345), and a leader that comes back so is told not to assign anew (KIP-814).
"""

import logging
from dataclasses import replace
from functools import partial

from barnabas.coordinator.calls import UNKNOWN_MEMBER_ID, JoinCall, JoinReply, JoinResult, SyncResult
from barnabas.coordinator.group import Group, GroupState
from barnabas.coordinator.member import Member
from barnabas.coordinator.ports import Surroundings
from barnabas.coordinator.rebalance import Rebalance
from barnabas.protocol.codes import ErrorCode

__all__ = ["Joining"]

LOG = logging.getLogger(__name__)

NEWCOMER_TIMEOUT_MS = 5 * 60_000
"""A newcomer cannot send heartbeats, as it does not know its id.  If its connection broke it would hold up
every rebalance, so its JoinGroup ends after this time; a client that is still there tries again."""


class Joining:
    """The decisions of JoinGroup, for any group that is not Dead."""

    __slots__ = ("_around", "_rebalance")

    def __init__(self, around: Surroundings, rebalance: Rebalance) -> None:
        self._around = around
        self._rebalance = rebalance

    def join(self, group: Group, call: JoinCall, reply: JoinReply) -> None:
        refusal = self._refusal(group, call)
        if refusal is not None:
            self._around.outbox.post(reply, refusal)
        elif call.member_id == UNKNOWN_MEMBER_ID:
            self._join_without_id(group, call, reply)
        elif group.roster.withdraw_promise(call.member_id):
            self._add(group, Member.of_call(call.member_id, call), call, reply)
        else:
            self._rejoin(group, group.roster[call.member_id], call, reply)
        self._rebalance.complete_if_all_joined(group)

    def _refusal(self, group: Group, call: JoinCall) -> JoinResult | None:
        # A static member that comes back without its id takes no more room than it had.
        known_id = call.member_id or group.roster.instances.get(call.instance_id or "", "")
        if not self._has_room(group, known_id):
            self._shut_out(group, known_id)
            return JoinResult(ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID)
        if not group.supports(call.protocol_type, [name for name, _ in call.protocols]):
            return JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, call.member_id)
        is_promised = call.member_id in group.roster.promised and call.instance_id is None
        if call.member_id != UNKNOWN_MEMBER_ID and not is_promised:
            error = group.member_error(call.member_id, call.instance_id)
            if error:
                return JoinResult(error, call.member_id)
        return None

    def _has_room(self, group: Group, member_id: str) -> bool:
        most = self._around.settings.group_size_max
        if group.state is GroupState.EMPTY:
            return True
        member = group.roster.get(member_id)
        if group.state is GroupState.PREPARING_REBALANCE:
            # Counting who rejoined, not who is known, turns away the last ones of a group that is too large.
            joined = member is not None and member.awaiting_join is not None
            return joined or group.roster.awaiting_joins < most
        return member is not None or len(group.roster) < most

    def _shut_out(self, group: Group, member_id: str) -> None:
        group.roster.withdraw_promise(member_id)
        member = group.roster.get(member_id)
        if member is not None:
            self._rebalance.remove(group, member, "the group is full")

    # Newcomers

    def _join_without_id(self, group: Group, call: JoinCall, reply: JoinReply) -> None:
        if call.instance_id is None:
            member_id = f"{call.client_id}-{self._around.new_id()}"
            if call.member_id_required:
                self._promise(group, member_id, call.session_timeout_ms)
                self._around.outbox.post(reply, JoinResult(ErrorCode.MEMBER_ID_REQUIRED, member_id))
                return
            self._add(group, Member.of_call(member_id, call), call, reply)
            return
        member = Member.of_call(f"{call.instance_id}-{self._around.new_id()}", call)
        old_id = group.roster.instances.get(call.instance_id)
        if old_id is None:
            self._add(group, member, call, reply)
        else:
            self._replace(group, group.roster[old_id], member, call, reply)

    def _promise(self, group: Group, member_id: str, timeout_ms: int) -> None:
        group.roster.promised[member_id] = self._around.timers.call_after(
            timeout_ms, partial(self._promise_lapsed, group, member_id)
        )

    def _promise_lapsed(self, group: Group, member_id: str) -> None:
        group.roster.withdraw_promise(member_id)
        self._rebalance.complete_if_all_joined(group)
        self._around.outbox.flush()

    def _add(self, group: Group, member: Member, call: JoinCall, reply: JoinReply) -> None:
        if not len(group.roster):
            group.protocol_type = call.protocol_type
        member.is_new = True
        group.newcomer_seen = group.generation_id == 0
        group.roster.add(member)
        group.roster.await_join(member, reply)
        self._rebalance.sessions.expect_within(group, member, NEWCOMER_TIMEOUT_MS)
        self._prepare(group, f"{member.member_id} joined: {_said(call)}")

    # Members that come again

    def _rejoin(self, group: Group, member: Member, call: JoinCall, reply: JoinReply) -> None:
        leads = group.roster.leader_id == member.member_id
        is_stable = group.state is GroupState.STABLE
        must_rebalance = (
            group.state is GroupState.PREPARING_REBALANCE
            or not member.lists(call.protocols)
            or (is_stable and leads)  # a leader asks so for a rebalance when topics have changed
        )
        if must_rebalance:
            group.roster.update(member, call)
            group.roster.await_join(member, reply)
            self._prepare(group, f"{member.member_id} joined again: {_said(call)}")
        else:
            # Most likely our first answer was lost.
            self._around.outbox.post(reply, self._rebalance.join_result(group, member))

    def _prepare(self, group: Group, reason: str) -> None:
        if group.can_rebalance:
            self._rebalance.prepare(group, reason)

    # Static members

    def _replace(self, group: Group, old: Member, new: Member, call: JoinCall, reply: JoinReply) -> None:
        LOG.info("group %s: %s takes the place of %s", group.group_id, new, old)
        old_leader_id = group.roster.leader_id or ""
        self._swap(group, old, new)
        group.roster.await_join(new, reply)
        if group.state is GroupState.STABLE and group.roster.select_protocol() == group.protocol_name:
            assignments = {member.member_id: member.assignment for member in group.roster}
            done = partial(self._replacement_stored, group, old, new, call, old_leader_id)
            self._rebalance.store(group, assignments, done)
        else:
            # While assigning, the leader knows only the old id; otherwise the common protocol changed.
            self._prepare(group, f"static member {new.member_id} joined: {_said(call)}")

    def _swap(self, group: Group, old: Member, new: Member) -> None:
        """Puts `new` in the place of `old` and fences whoever still waits under the old id."""
        fenced = ErrorCode.FENCED_INSTANCE_ID
        group.roster.answer_join(old, JoinResult(fenced, old.member_id))
        group.roster.answer_sync(old, SyncResult(fenced))
        self._rebalance.sessions.end(old)
        new.assignment = old.assignment
        group.roster.replace(old, new)
        if old.member_id in group.owing_sync:
            group.owing_sync.remove(old.member_id)
            group.owing_sync.add(new.member_id)
        self._rebalance.sessions.prolong(group, new)

    def _replacement_stored(
        self, group: Group, old: Member, new: Member, call: JoinCall, old_leader_id: str, error: ErrorCode
    ) -> None:
        # A rebalance that began meanwhile answers the call itself, and another replacement already did.
        if group.state is GroupState.STABLE and new.awaiting_join is not None:
            if error:
                result = JoinResult(error, UNKNOWN_MEMBER_ID)
                group.roster.answer_join(new, result)
                self._swap(group, new, old)
            else:
                result = self._replacement_result(group, new, call, old_leader_id)
                group.roster.answer_join(new, result)
                self._rebalance.sessions.prolong(group, new)
        self._around.outbox.flush()

    def _replacement_result(
        self, group: Group, member: Member, call: JoinCall, old_leader_id: str
    ) -> JoinResult:
        if call.can_skip_assignment:
            leads = group.roster.leader_id == member.member_id
            return replace(self._rebalance.join_result(group, member), skip_assignment=leads)
        # An older client that leads would assign anew, in vain, as the group is Stable: under the name of the
        # old leader it takes itself for a follower.
        result = self._rebalance.join_result(group, member, members_for_leader=False)
        return replace(result, leader_id=old_leader_id)


def _said(call: JoinCall) -> str:
    return call.reason or "no reason given"
