"""Heartbeat (key 12), v0-4: keeps a member's session, and says REBALANCE_IN_PROGRESS when it must rejoin."""

from barnabas.broker.context import Context
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(request: HeartbeatRequest, ctx: Context) -> HeartbeatResponse:
    error = ctx.services.groups.heartbeat(
        request.group_id, request.member_id, request.generation_id, request.group_instance_id
    )
    return HeartbeatResponse(error_code=error)
