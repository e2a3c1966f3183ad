"""CreateAcls (key 30), v0-3, flexible from v2."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import array, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, request, response


class AclCreation(Struct):
    resource_type: int = int8()
    resource_name: str = string()
    resource_pattern_type: int = int8(versions="1+", default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@request(ApiKey.CREATE_ACLS, versions="0-3", flexible="2+")
class CreateAclsRequest(Message):
    creations: list[AclCreation] = array(AclCreation)


class AclCreationResult(Struct):
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@response(ApiKey.CREATE_ACLS, versions="0-3", flexible="2+")
class CreateAclsResponse(Message):
    throttle_time_ms: int = int32()
    results: list[AclCreationResult] = array(AclCreationResult)
