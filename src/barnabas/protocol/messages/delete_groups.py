"""DeleteGroups (key 42), v0-2, flexible from v2."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import STRING, array, int16, int32, string
from barnabas.protocol.schema import Message, Struct, request, response


@request(ApiKey.DELETE_GROUPS, versions="0-2", flexible="2+")
class DeleteGroupsRequest(Message):
    groups_names: list[str] = array(STRING)


class DeletableGroupResult(Struct):
    group_id: str = string()
    error_code: int = int16()


@response(ApiKey.DELETE_GROUPS, versions="0-2", flexible="2+")
class DeleteGroupsResponse(Message):
    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)
