"""ListGroups (key 16), v0-5, flexible from v3."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import STRING, array, int16, int32, string
from barnabas.protocol.schema import Message, Struct, request, response


@request(ApiKey.LIST_GROUPS, versions="0-5", flexible="3+")
class ListGroupsRequest(Message):
    states_filter: list[str] = array(STRING, versions="4+")
    types_filter: list[str] = array(STRING, versions="5+")


class ListedGroup(Struct):
    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string(versions="4+", ignorable=True)
    group_type: str = string(versions="5+", ignorable=True)


@response(ApiKey.LIST_GROUPS, versions="0-5", flexible="3+")
class ListGroupsResponse(Message):
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)
