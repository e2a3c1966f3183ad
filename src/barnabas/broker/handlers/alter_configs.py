"""AlterConfigs (key 33), v0-2: replaces all that is set for a topic or broker."""

from barnabas.broker.config_commands import answer_each
from barnabas.broker.context import Context
from barnabas.controller.changes import CommandRefused
from barnabas.metadata.image import ConfigResourceType
from barnabas.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(request: AlterConfigsRequest, ctx: Context) -> AlterConfigsResponse:
    async def alter(resource: AlterConfigsResource) -> None:
        await ctx.services.configs.replace(
            ConfigResourceType(resource.resource_type),
            resource.resource_name,
            _values(resource),
            validate_only=request.validate_only,
        )

    answers = await answer_each(request.resources, alter, AlterConfigsResourceResponse)
    return AlterConfigsResponse(responses=answers)


def _values(resource: AlterConfigsResource) -> dict[str, str | None]:
    values = {setting.name: setting.value for setting in resource.configs}
    if len(values) != len(resource.configs):
        raise CommandRefused("Error due to duplicate config keys")
    return values
