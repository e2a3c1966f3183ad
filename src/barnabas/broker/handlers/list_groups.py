"""ListGroups (key 16), v0-5: every group here; v4 filters by state, v5 by type."""

from barnabas.broker.context import Context
from barnabas.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def handle(request: ListGroupsRequest, ctx: Context) -> ListGroupsResponse:
    result = ctx.services.groups.list_groups(request.states_filter, request.types_filter)
    return ListGroupsResponse(
        error_code=result.error,
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=group.group_type,
            )
            for group in result.groups
        ],
    )
