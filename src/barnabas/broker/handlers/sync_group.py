"""SyncGroup (key 14), v0-5: the leader hands in the assignment, the others wait for theirs.

v3 static members; v5 checks and echoes protocol type and name.
"""

from functools import partial

from barnabas.broker.context import Context
from barnabas.coordinator.calls import SyncCall, SyncResult
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def handle(request: SyncGroupRequest, ctx: Context) -> None:
    call = SyncCall(
        generation_id=request.generation_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments=[(each.member_id, bytes(each.assignment)) for each in request.assignments],
    )
    ctx.services.groups.sync(request.group_id, call, partial(_reply, ctx))


def _reply(ctx: Context, result: SyncResult) -> None:
    ctx.reply(
        SyncGroupResponse(
            error_code=result.error,
            protocol_type=result.protocol_type,
            protocol_name=result.protocol_name,
            assignment=result.assignment,
        )
    )
