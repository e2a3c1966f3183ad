"""barnabas.broker.handlers.alter_configs: all that was set is replaced."""

import pytest

from barnabas.broker.configs import ConfigSource
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from tests.broker._configs import BROKER, TOPIC, value_and_source
from tests.broker._wire import WireClient
from tests.broker.conftest import MakeTopic

VERSIONS = range(3)


def resource(kind: int, name: str, *values: tuple[str, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[AlterableConfig(name=setting, value=value) for setting, value in values],
    )


def replace(
    client: WireClient,
    kind: int,
    name: str,
    *values: tuple[str, str | None],
    version: int = 2,
    validate_only: bool = False,
) -> AlterConfigsResourceResponse:
    request = AlterConfigsRequest(resources=[resource(kind, name, *values)], validate_only=validate_only)
    (response,) = client.call(request, version, AlterConfigsResponse).responses
    assert (response.resource_type, response.resource_name) == (kind, name)
    return response


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_not_named_goes_back_to_its_default(
    client: WireClient, make_topic: MakeTopic, version: int
) -> None:
    topic = make_topic(retention_ms="5000", segment_ms="60")
    done = replace(client, TOPIC, topic, ("segment.ms", "70"), version=version)
    assert (done.error_code, done.error_message) == (0, None)
    assert value_and_source(client, TOPIC, topic, "segment.ms") == ("70", ConfigSource.TOPIC)
    assert value_and_source(client, TOPIC, topic, "retention.ms")[1] == ConfigSource.DEFAULT
    assert replace(client, TOPIC, topic, version=version).error_code == 0
    assert value_and_source(client, TOPIC, topic, "segment.ms")[1] == ConfigSource.DEFAULT


@pytest.mark.parametrize("version", VERSIONS)
def test_validating_changes_nothing(client: WireClient, topic: str, version: int) -> None:
    done = replace(client, TOPIC, topic, ("segment.ms", "70"), version=version, validate_only=True)
    assert done.error_code == 0
    assert value_and_source(client, TOPIC, topic, "segment.ms")[1] == ConfigSource.DEFAULT


@pytest.mark.parametrize("version", VERSIONS)
def test_each_kind_of_refusal_has_its_code(client: WireClient, topic: str, version: int) -> None:
    for kind, name, value, expected in (
        (TOPIC, topic, ("no.such", "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC, topic, ("segment.ms", "x"), ErrorCode.INVALID_CONFIG),
        (TOPIC, topic, ("segment.ms", None), ErrorCode.INVALID_REQUEST),
        (TOPIC, "nowhere", ("segment.ms", "5"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a b", ("segment.ms", "5"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "1", ("node.id", "5"), ErrorCode.INVALID_REQUEST),
        (BROKER, "9", ("log.segment.bytes", "5000000"), ErrorCode.INVALID_REQUEST),
        (8, "1", ("root", "DEBUG"), ErrorCode.INVALID_REQUEST),
    ):
        done = replace(client, kind, name, value, version=version)
        assert done.error_code == expected, (kind, name, value)
        assert done.error_message


def test_twice_is_refused(client: WireClient, topic: str) -> None:
    done = replace(client, TOPIC, topic, ("segment.ms", "5"), ("segment.ms", "6"))
    assert done.error_code == ErrorCode.INVALID_REQUEST
    request = AlterConfigsRequest(resources=[resource(TOPIC, topic, ("segment.ms", "5"))] * 2)
    responses = client.call(request, 2, AlterConfigsResponse).responses
    assert [each.error_code for each in responses] == [ErrorCode.INVALID_REQUEST] * 2


def test_a_brokers_settings_are_replaced_too(client: WireClient) -> None:
    assert replace(client, BROKER, "1", ("log.segment.bytes", "5000000")).error_code == 0
    assert value_and_source(client, BROKER, "1", "log.segment.bytes") == (
        "5000000",
        ConfigSource.DYNAMIC_BROKER,
    )
    assert replace(client, BROKER, "1").error_code == 0
    assert value_and_source(client, BROKER, "1", "log.segment.bytes")[1] == ConfigSource.DEFAULT
