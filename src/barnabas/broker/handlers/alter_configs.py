"""AlterConfigs (key 33), v0-2: replaces all that is set for a topic or broker."""

from collections import Counter

from barnabas.base.errors import BarnabasError
from barnabas.broker.context import Context
from barnabas.broker.error_codes import code_of
from barnabas.controller.changes import CommandRefused
from barnabas.metadata.image import ConfigResourceType
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

ALTERED = (ConfigResourceType.TOPIC, ConfigResourceType.BROKER)


async def handle(request: AlterConfigsRequest, ctx: Context) -> AlterConfigsResponse:
    times = Counter((each.resource_type, each.resource_name) for each in request.resources)
    results = [
        await _alter(each, request.validate_only, ctx)
        if times[each.resource_type, each.resource_name] == 1
        else _answer(each, ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        for each in request.resources
    ]
    return AlterConfigsResponse(responses=results)


async def _alter(
    resource: AlterConfigsResource, validate_only: bool, ctx: Context
) -> AlterConfigsResourceResponse:
    code, message = ErrorCode.NONE, None
    if resource.resource_type not in ALTERED:
        code = ErrorCode.INVALID_REQUEST
        message = f"resources of type {resource.resource_type} have no settings here"
    else:
        try:
            await ctx.services.configs.replace(
                ConfigResourceType(resource.resource_type),
                resource.resource_name,
                _values(resource),
                validate_only=validate_only,
            )
        except BarnabasError as error:
            code, message = code_of(error), str(error)
    return _answer(resource, code, message)


def _answer(
    resource: AlterConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _values(resource: AlterConfigsResource) -> dict[str, str | None]:
    values = {setting.name: setting.value for setting in resource.configs}
    if len(values) != len(resource.configs):
        raise CommandRefused("Error due to duplicate config keys")
    return values
