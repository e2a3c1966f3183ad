"""DescribeAcls (key 29), v0-3, flexible from v2."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import array, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, request, response


@request(ApiKey.DESCRIBE_ACLS, versions="0-3", flexible="2+")
class DescribeAclsRequest(Message):
    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable="0+")
    pattern_type_filter: int = int8(versions="1+", default=3)
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    permission_type: int = int8()


class AclDescription(Struct):
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


class DescribeAclsResource(Struct):
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8(versions="1+", default=3)
    acls: list[AclDescription] = array(AclDescription)


@response(ApiKey.DESCRIBE_ACLS, versions="0-3", flexible="2+")
class DescribeAclsResponse(Message):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resources: list[DescribeAclsResource] = array(DescribeAclsResource)
