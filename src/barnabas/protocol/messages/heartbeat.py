"""Heartbeat (key 12), v0-4, flexible from v4."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import int16, int32, string
from barnabas.protocol.schema import Message, request, response


@request(ApiKey.HEARTBEAT, versions="0-4", flexible="4+")
class HeartbeatRequest(Message):
    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(versions="3+", nullable="3+", default=None)


@response(ApiKey.HEARTBEAT, versions="0-4", flexible="4+")
class HeartbeatResponse(Message):
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()
