"""DescribeGroups (key 15), v0-6: state, protocol and members of groups.

An unknown group is Dead without an error up to v5, GROUP_ID_NOT_FOUND with a text from v6.
v3 can ask what the client may do with them.
"""

from barnabas.broker.context import Context
from barnabas.broker.operations import ALL_ON_GROUP, NOT_ASKED
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

FIRST_NOT_FOUND_VERSION = 6


def handle(request: DescribeGroupsRequest, ctx: Context) -> DescribeGroupsResponse:
    asked = request.include_authorized_operations
    return DescribeGroupsResponse(groups=[_describe(group_id, asked, ctx) for group_id in request.groups])


def _describe(group_id: str, asked: bool, ctx: Context) -> DescribedGroup:
    found = ctx.services.groups.describe_group(group_id)
    error, message = found.error, None
    if error is ErrorCode.GROUP_ID_NOT_FOUND:
        if ctx.version < FIRST_NOT_FOUND_VERSION:
            error = ErrorCode.NONE
        else:
            message = f"Group {group_id} not found."
    return DescribedGroup(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state=found.state,
        protocol_type=found.protocol_type,
        protocol_data=found.protocol_name,
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in found.members
        ],
        authorized_operations=ALL_ON_GROUP if asked and not error else NOT_ASKED,
    )
