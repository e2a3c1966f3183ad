"""LeaveGroup (key 13), v0-5, flexible from v4."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import array, int16, int32, string
from barnabas.protocol.schema import Message, Struct, request, response


class MemberIdentity(Struct):
    member_id: str = string(versions="3+")
    group_instance_id: str | None = string(versions="3+", nullable="3+", default=None)
    reason: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)


@request(ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+")
class LeaveGroupRequest(Message):
    group_id: str = string()
    member_id: str = string(versions="0-2")
    members: list[MemberIdentity] = array(MemberIdentity, versions="3+")


class MemberResponse(Struct):
    member_id: str = string(versions="3+")
    group_instance_id: str | None = string(versions="3+", nullable="3+")
    error_code: int = int16(versions="3+")


@response(ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+")
class LeaveGroupResponse(Message):
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, versions="3+")
