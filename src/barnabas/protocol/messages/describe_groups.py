"""DescribeGroups (key 15), v0-6, flexible from v5."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import STRING, Bulk, array, binary, boolean, int16, int32, string
from barnabas.protocol.schema import Message, Struct, request, response


@request(ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+")
class DescribeGroupsRequest(Message):
    groups: list[str] = array(STRING)
    include_authorized_operations: bool = boolean(versions="3+")


class DescribedGroupMember(Struct):
    member_id: str = string()
    group_instance_id: str | None = string(versions="4+", nullable="4+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    member_metadata: Bulk = binary()
    member_assignment: Bulk = binary()


class DescribedGroup(Struct):
    error_code: int = int16()
    error_message: str | None = string(versions="6+", nullable="6+", default=None)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32(versions="3+", default=-(2**31))


@response(ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+")
class DescribeGroupsResponse(Message):
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    groups: list[DescribedGroup] = array(DescribedGroup)
