"""SyncGroup (key 14), v0-5, flexible from v4."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import Bulk, array, binary, int16, int32, string
from barnabas.protocol.schema import Message, Struct, request, response


class SyncGroupRequestAssignment(Struct):
    member_id: str = string()
    assignment: Bulk = binary()


@request(ApiKey.SYNC_GROUP, versions="0-5", flexible="4+")
class SyncGroupRequest(Message):
    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(versions="3+", nullable="3+", default=None)
    protocol_type: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


@response(ApiKey.SYNC_GROUP, versions="0-5", flexible="4+")
class SyncGroupResponse(Message):
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)
    assignment: Bulk = binary()
