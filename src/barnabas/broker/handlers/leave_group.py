"""LeaveGroup (key 13), v0-5: takes one member (v0-2) or several (v3+, also by instance id) out of a group."""

from barnabas.broker.context import Context
from barnabas.coordinator.calls import LeavingMember
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

FIRST_BATCHED_VERSION = 3


def handle(request: LeaveGroupRequest, ctx: Context) -> LeaveGroupResponse:
    groups = ctx.services.groups
    if ctx.version < FIRST_BATCHED_VERSION:
        result = groups.leave(request.group_id, [LeavingMember(request.member_id)])
        return LeaveGroupResponse(error_code=result.error or result.members[0])
    leaving = [LeavingMember(who.member_id, who.group_instance_id, who.reason) for who in request.members]
    result = groups.leave(request.group_id, leaving)
    if result.error:
        return LeaveGroupResponse(error_code=result.error)
    return LeaveGroupResponse(
        error_code=0,
        members=[
            MemberResponse(member_id=who.member_id, group_instance_id=who.instance_id, error_code=error)
            for who, error in zip(leaving, result.members, strict=True)
        ],
    )
