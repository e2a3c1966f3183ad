"""Settings described and altered over the wire."""

from barnabas.broker.configs import ConfigOperation
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.broker._wire import WireClient

TOPIC, BROKER = 2, 4


def describe_result(
    client: WireClient,
    kind: int,
    name: str,
    *settings: str,
    version: int = 4,
    synonyms: bool = False,
    documentation: bool = False,
    every: bool = False,
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None if every else list(settings)
    )
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=synonyms, include_documentation=documentation
    )
    (result,) = client.call(request, version, DescribeConfigsResponse).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def describe(
    client: WireClient, kind: int, name: str, setting: str, *, version: int = 4, synonyms: bool = False
) -> DescribeConfigsResourceResult:
    result = describe_result(client, kind, name, setting, version=version, synonyms=synonyms)
    assert result.error_code == 0, result.error_message
    (config,) = result.configs
    return config


def value_and_source(client: WireClient, kind: int, name: str, setting: str) -> tuple[str | None, int]:
    found = describe(client, kind, name, setting)
    return found.value, found.config_source


def alter(
    client: WireClient,
    kind: int,
    name: str,
    *changes: tuple[str, int, str | None],
    version: int = 1,
    validate_only: bool = False,
) -> AlterConfigsResourceResponse:
    """IncrementalAlterConfigs of one resource: (setting, operation, value)."""
    resource = AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[AlterableConfig(name=s, config_operation=op, value=value) for s, op, value in changes],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (response,) = client.call(request, version, IncrementalAlterConfigsResponse).responses
    assert (response.resource_type, response.resource_name) == (kind, name)
    return response


def set_value(client: WireClient, kind: int, name: str, setting: str, value: str) -> None:
    assert alter(client, kind, name, (setting, ConfigOperation.SET, value)).error_code == 0


def unset(client: WireClient, kind: int, name: str, setting: str) -> None:
    assert alter(client, kind, name, (setting, ConfigOperation.DELETE, None)).error_code == 0
