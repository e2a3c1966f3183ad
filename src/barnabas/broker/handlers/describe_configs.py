"""DescribeConfigs (key 32), v0-4: settings of topics and of this broker, where each comes from and why.

v1 adds sources and synonyms, v3 types and documentation.  Secrets are never answered.
"""

from barnabas.base.errors import BarnabasError
from barnabas.broker.configs import ConfigEntry, ConfigSource
from barnabas.broker.context import Context
from barnabas.broker.error_codes import code_of
from barnabas.metadata.image import ConfigResourceType
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

DESCRIBED = (ConfigResourceType.TOPIC, ConfigResourceType.BROKER)


def handle(request: DescribeConfigsRequest, ctx: Context) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_describe(each, request, ctx) for each in request.resources])


def _describe(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, ctx: Context
) -> DescribeConfigsResult:
    code, message, entries = ErrorCode.NONE, "", list[ConfigEntry]()
    if resource.resource_type not in DESCRIBED:
        code = ErrorCode.INVALID_REQUEST
        message = f"resources of type {resource.resource_type} have no settings here"
    else:
        try:
            entries = ctx.services.configs.describe(
                ConfigResourceType(resource.resource_type),
                resource.resource_name,
                resource.configuration_keys,
            )
        except BarnabasError as error:
            code, message = code_of(error), str(error)
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[_entry(entry, request, ctx) for entry in entries],
    )


def _entry(
    entry: ConfigEntry, request: DescribeConfigsRequest, ctx: Context
) -> DescribeConfigsResourceResult:
    key = entry.key
    return DescribeConfigsResourceResult(
        name=key.name,
        value=None if key.sensitive else entry.value,
        read_only=entry.read_only,
        is_default=ctx.version == 0 and entry.source is ConfigSource.DEFAULT,
        config_source=entry.source,
        is_sensitive=key.sensitive,
        synonyms=[
            DescribeConfigsSynonym(
                name=each.name, value=None if key.sensitive else each.value, source=each.source
            )
            for each in (entry.synonyms if request.include_synonyms else ())
        ],
        config_type=key.kind or 0,
        documentation=key.doc if request.include_documentation else None,
    )
