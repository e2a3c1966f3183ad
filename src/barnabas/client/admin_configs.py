"""Admin calls about settings of topics and brokers: describe, alter, replace.

A broker's own settings are asked at that broker; everything else at any.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, TypeVar

from barnabas.client.admin_base import AdminBase, answer_of
from barnabas.client.admin_types import (
    Append,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ConfigSynonym,
    ResourceType,
    Subtract,
)
from barnabas.client.errors import KafkaError, error_for
from barnabas.client.results import Results
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages import alter_configs as replacing
from barnabas.protocol.messages import incremental_alter_configs as altering
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from barnabas.protocol.schema import Message

__all__ = ["ConfigCalls"]

_SET, _DELETE, _APPEND, _SUBTRACT = range(4)  # operations of IncrementalAlterConfigs
_DOCUMENTATION_FROM: Final = 3
_SOURCES: Final = frozenset(int(source) for source in ConfigSource)

V = TypeVar("V")
Change = str | int | bool | float | Append | Subtract | None
Build = Callable[[list[ConfigResource]], Message]
AskNode = Callable[[int, list[ConfigResource]], Awaitable[Mapping[ConfigResource, V | KafkaError]]]


class ConfigCalls(AdminBase):
    """Calls about settings."""

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Iterable[str] | None = None,
        documentation: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        """The settings of each resource by name, or only some `names`."""
        keys = None if names is None else list(names)

        async def ask(
            node: int, asked: list[ConfigResource]
        ) -> Mapping[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
            await self._cluster.ready(node)
            version = self._cluster.version_of(node, ApiKey.DESCRIBE_CONFIGS) or 0
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=resource.type, resource_name=resource.name, configuration_keys=keys
                    )
                    for resource in asked
                ],
                include_synonyms=version >= 1,
                include_documentation=documentation and version >= _DOCUMENTATION_FROM,
            )
            answer = answer_of(await self._cluster.request(node, request), DescribeConfigsResponse)
            return {
                _resource(found.resource_type, found.resource_name): error_for(
                    found.error_code, found.error_message, subject=found.resource_name
                )
                if found.error_code
                else {entry.name: _entry(entry) for entry in found.configs}
                for found in answer.results
            }

        return await self._each_resource(resources, ask, timeout_ms)

    async def alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, Change]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[ConfigResource, None]:
        """Changes only the settings named: to a value, back to the default (None), by Append or Subtract."""

        def build(asked: list[ConfigResource]) -> Message:
            return altering.IncrementalAlterConfigsRequest(
                resources=[
                    altering.AlterConfigsResource(
                        resource_type=resource.type,
                        resource_name=resource.name,
                        configs=[_alterable(name, change) for name, change in changes[resource].items()],
                    )
                    for resource in asked
                ],
                validate_only=validate_only,
            )

        return await self._change(changes, build, timeout_ms)

    async def replace_configs(
        self,
        configs: Mapping[ConfigResource, Mapping[str, str | int | bool | float]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[ConfigResource, None]:
        """Sets the settings named and puts all others of the resource back to their defaults."""

        def build(asked: list[ConfigResource]) -> Message:
            return replacing.AlterConfigsRequest(
                resources=[
                    replacing.AlterConfigsResource(
                        resource_type=resource.type,
                        resource_name=resource.name,
                        configs=[
                            replacing.AlterableConfig(name=name, value=_text(value))
                            for name, value in configs[resource].items()
                        ],
                    )
                    for resource in asked
                ],
                validate_only=validate_only,
            )

        return await self._change(configs, build, timeout_ms)

    async def _change(
        self, resources: Iterable[ConfigResource], build: Build, timeout_ms: int | None
    ) -> Results[ConfigResource, None]:
        async def ask(node: int, asked: list[ConfigResource]) -> Mapping[ConfigResource, KafkaError | None]:
            answer = await self._cluster.request(node, build(asked))
            assert isinstance(
                answer, altering.IncrementalAlterConfigsResponse | replacing.AlterConfigsResponse
            ), answer
            return {
                _resource(found.resource_type, found.resource_name): error_for(
                    found.error_code, found.error_message, subject=found.resource_name
                )
                if found.error_code
                else None
                for found in answer.responses
            }

        return await self._each_resource(resources, ask, timeout_ms)

    async def _each_resource(
        self, resources: Iterable[ConfigResource], ask_node: AskNode[V], timeout_ms: int | None
    ) -> Results[ConfigResource, V]:
        async def ask(asked: list[ConfigResource]) -> Mapping[ConfigResource, V | KafkaError]:
            by_node: dict[int, list[ConfigResource]] = {}
            for resource in asked:
                by_node.setdefault(await self._node_of(resource), []).append(resource)
            outcomes: dict[ConfigResource, V | KafkaError] = {}
            for node, some in by_node.items():
                outcomes.update(await ask_node(node, some))
            return outcomes

        return await self._each(resources, ask, timeout_ms)

    async def _node_of(self, resource: ConfigResource) -> int:
        if resource.type not in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) or not resource.name:
            return await self._cluster.any_node()
        if not resource.name.isdecimal() or int(resource.name) not in self._cluster.metadata.brokers:
            raise error_for(ErrorCode.INVALID_REQUEST, f"no broker has the id {resource.name!r}")
        return int(resource.name)


def _resource(kind: int, name: str) -> ConfigResource:
    return ConfigResource(ResourceType(kind), name)


def _entry(found: DescribeConfigsResourceResult) -> ConfigEntry:
    source = _source(found.config_source)
    if source is ConfigSource.UNKNOWN and found.is_default:  # version 0 tells only that
        source = ConfigSource.DEFAULT
    return ConfigEntry(
        found.name,
        found.value,
        source,
        found.read_only,
        found.is_sensitive,
        tuple(ConfigSynonym(each.name, each.value, _source(each.source)) for each in found.synonyms),
        found.documentation,
    )


def _source(number: int) -> ConfigSource:
    return ConfigSource(number) if number in _SOURCES else ConfigSource.UNKNOWN


def _alterable(name: str, change: Change) -> altering.AlterableConfig:
    match change:
        case None:
            return altering.AlterableConfig(name=name, config_operation=_DELETE, value=None)
        case Append(value):
            return altering.AlterableConfig(name=name, config_operation=_APPEND, value=value)
        case Subtract(value):
            return altering.AlterableConfig(name=name, config_operation=_SUBTRACT, value=value)
        case _:
            return altering.AlterableConfig(name=name, config_operation=_SET, value=_text(change))


def _text(value: str | int | bool | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
