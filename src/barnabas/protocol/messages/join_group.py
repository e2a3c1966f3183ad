"""JoinGroup (key 11), v0-9, flexible from v6."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import Bulk, array, binary, boolean, int16, int32, string
from barnabas.protocol.schema import Message, Struct, request, response


class JoinGroupRequestProtocol(Struct):
    name: str = string()
    metadata: Bulk = binary()


@request(ApiKey.JOIN_GROUP, versions="0-9", flexible="6+")
class JoinGroupRequest(Message):
    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32(versions="1+", default=-1, ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string(versions="5+", nullable="5+", default=None)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string(versions="8+", nullable="8+", default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    member_id: str = string()
    group_instance_id: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)
    metadata: Bulk = binary()


@response(ApiKey.JOIN_GROUP, versions="0-9", flexible="6+")
class JoinGroupResponse(Message):
    throttle_time_ms: int = int32(versions="2+", ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string(versions="7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean(versions="9+")
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)
