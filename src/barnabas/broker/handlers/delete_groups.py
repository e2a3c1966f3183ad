"""DeleteGroups (key 42), v0-2: deletes empty groups with their offsets."""

from functools import partial

from barnabas.broker.context import Context
from barnabas.broker.gather import Gather
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def handle(request: DeleteGroupsRequest, ctx: Context) -> None:
    names = list(dict.fromkeys(request.groups_names))

    def answer(errors: dict[str, ErrorCode]) -> None:
        results = [DeletableGroupResult(group_id=name, error_code=errors[name]) for name in names]
        ctx.reply(DeleteGroupsResponse(results=results))

    gather = Gather(names, answer)
    for name in names:
        ctx.services.groups.delete_group(name, partial(gather.done, name))
