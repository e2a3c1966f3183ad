"""IncrementalAlterConfigs (key 44), v0-1: sets, deletes, adds to lists and takes from them."""

from barnabas.broker.config_commands import answer_each
from barnabas.broker.configs import ConfigOperation
from barnabas.broker.context import Context
from barnabas.controller.changes import CommandRefused
from barnabas.metadata.image import ConfigResourceType
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(request: IncrementalAlterConfigsRequest, ctx: Context) -> IncrementalAlterConfigsResponse:
    async def alter(resource: AlterConfigsResource) -> None:
        await ctx.services.configs.alter(
            ConfigResourceType(resource.resource_type),
            resource.resource_name,
            _changes(resource),
            validate_only=request.validate_only,
        )

    answers = await answer_each(request.resources, alter, AlterConfigsResourceResponse)
    return IncrementalAlterConfigsResponse(responses=answers)


def _changes(resource: AlterConfigsResource) -> dict[str, tuple[ConfigOperation, str | None]]:
    changes: dict[str, tuple[ConfigOperation, str | None]] = {}
    for setting in resource.configs:
        if setting.name in changes:
            raise CommandRefused(f"{setting.name}: is named more than once")
        if setting.config_operation not in tuple(ConfigOperation):
            raise CommandRefused(f"{setting.name}: there is no operation {setting.config_operation}")
        changes[setting.name] = (ConfigOperation(setting.config_operation), setting.value)
    return changes
