"""IncrementalAlterConfigs (key 44), v0-1: sets, deletes, adds to lists and takes from them."""

from collections import Counter

from barnabas.base.errors import BarnabasError
from barnabas.broker.configs import ConfigOperation
from barnabas.broker.context import Context
from barnabas.broker.error_codes import code_of
from barnabas.controller.changes import CommandRefused
from barnabas.metadata.image import ConfigResourceType
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

ALTERED = (ConfigResourceType.TOPIC, ConfigResourceType.BROKER)


async def handle(request: IncrementalAlterConfigsRequest, ctx: Context) -> IncrementalAlterConfigsResponse:
    times = Counter((each.resource_type, each.resource_name) for each in request.resources)
    results = [
        await _alter(each, request.validate_only, ctx)
        if times[each.resource_type, each.resource_name] == 1
        else _answer(each, ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        for each in request.resources
    ]
    return IncrementalAlterConfigsResponse(responses=results)


async def _alter(
    resource: AlterConfigsResource, validate_only: bool, ctx: Context
) -> AlterConfigsResourceResponse:
    code, message = ErrorCode.NONE, None
    if resource.resource_type not in ALTERED:
        code = ErrorCode.INVALID_REQUEST
        message = f"resources of type {resource.resource_type} have no settings here"
    else:
        try:
            await ctx.services.configs.alter(
                ConfigResourceType(resource.resource_type),
                resource.resource_name,
                _changes(resource),
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


def _changes(resource: AlterConfigsResource) -> dict[str, tuple[ConfigOperation, str | None]]:
    changes: dict[str, tuple[ConfigOperation, str | None]] = {}
    for setting in resource.configs:
        if setting.name in changes:
            raise CommandRefused(f"{setting.name}: is named more than once")
        if setting.config_operation not in tuple(ConfigOperation):
            raise CommandRefused(f"{setting.name}: there is no operation {setting.config_operation}")
        changes[setting.name] = (ConfigOperation(setting.config_operation), setting.value)
    return changes
