"""JoinGroup (key 11), v0-9: waits until the rebalance that it takes part in is decided.

v0 has no rebalance timeout (the session's serves); v4 asks newcomers to join again with the id they are
given; v5 static members; v7 echoes the protocol type and may leave the name null; v9 can skip assignment.
"""

from functools import partial

from barnabas.broker.context import Context
from barnabas.coordinator.calls import JoinCall, JoinResult
from barnabas.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

FIRST_REBALANCE_TIMEOUT_VERSION = 1
FIRST_MEMBER_ID_VERSION = 4
FIRST_NULL_PROTOCOL_VERSION = 7
FIRST_SKIP_VERSION = 9


def handle(request: JoinGroupRequest, ctx: Context) -> None:
    version = ctx.version
    own_timeout = version >= FIRST_REBALANCE_TIMEOUT_VERSION
    call = JoinCall(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=ctx.client_id or "",
        client_host=f"/{ctx.connection.peer_host}",
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms if own_timeout else request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=[(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols],
        member_id_required=version >= FIRST_MEMBER_ID_VERSION,
        can_skip_assignment=version >= FIRST_SKIP_VERSION,
        reason=request.reason,
    )
    ctx.services.groups.join(request.group_id, call, partial(_reply, ctx))


def _reply(ctx: Context, result: JoinResult) -> None:
    name = result.protocol_name
    if name is None and ctx.version < FIRST_NULL_PROTOCOL_VERSION:
        name = ""
    ctx.reply(
        JoinGroupResponse(
            error_code=result.error,
            generation_id=result.generation_id,
            protocol_type=result.protocol_type,
            protocol_name=name,
            leader=result.leader_id,
            skip_assignment=result.skip_assignment,
            member_id=result.member_id,
            members=[
                JoinGroupResponseMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    metadata=member.metadata,
                )
                for member in result.members
            ],
        )
    )
