"""DescribeConfigs (key 32), v0-4, flexible from v4."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import STRING, array, boolean, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, request, response


class DescribeConfigsResource(Struct):
    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: list[str] | None = array(STRING, nullable="0+")


@request(ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+")
class DescribeConfigsRequest(Message):
    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean(versions="1+")
    include_documentation: bool = boolean(versions="3+")


class DescribeConfigsSynonym(Struct):
    name: str = string(versions="1+")
    value: str | None = string(versions="1+", nullable="1+")
    source: int = int8(versions="1+")


class DescribeConfigsResourceResult(Struct):
    name: str = string()
    value: str | None = string(nullable="0+")
    read_only: bool = boolean()
    is_default: bool = boolean(versions="0")
    config_source: int = int8(versions="1+", default=-1, ignorable=True)
    is_sensitive: bool = boolean()
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, versions="1+", ignorable=True)
    config_type: int = int8(versions="3+", ignorable=True)
    documentation: str | None = string(versions="3+", nullable="3+", ignorable=True)


class DescribeConfigsResult(Struct):
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


@response(ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+")
class DescribeConfigsResponse(Message):
    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)
