"""barnabas.broker.handlers.describe_configs: values, where they come from, what they mean."""

import pytest

from barnabas.base.config import Kind
from barnabas.broker.config import BROKER as BROKER_KEYS
from barnabas.broker.configs import ConfigSource
from barnabas.log.config import TOPIC as TOPIC_KEYS
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tests.broker._configs import BROKER, TOPIC, describe, describe_result
from tests.broker._wire import WireClient
from tests.broker.conftest import MakeTopic

VERSIONS = range(5)


class TestEveryVersionIsServed:
    @pytest.mark.parametrize("version", VERSIONS)
    def test_a_topics_settings(self, client: WireClient, make_topic: MakeTopic, version: int) -> None:
        topic = make_topic(retention_ms="5000")
        result = describe_result(client, TOPIC, topic, version=version, every=True)
        assert result.error_code == 0
        assert {config.name for config in result.configs} == {key.name for key in TOPIC_KEYS}
        by_name = {config.name: config for config in result.configs}
        own, default = by_name["retention.ms"], by_name["segment.bytes"]
        assert (own.value, own.read_only, own.is_sensitive) == ("5000", False, False)
        assert default.value == "1073741824"
        if version == 0:
            assert (own.is_default, default.is_default) == (False, True)
        else:
            assert (own.config_source, default.config_source) == (ConfigSource.TOPIC, ConfigSource.DEFAULT)
        assert own.synonyms == []
        assert own.config_type == (Kind.LONG if version >= 3 else 0)
        assert not own.documentation

    @pytest.mark.parametrize("version", VERSIONS)
    def test_the_brokers_settings(self, client: WireClient, version: int) -> None:
        result = describe_result(client, BROKER, "1", version=version, every=True)
        assert result.error_code == 0
        by_name = {config.name: config for config in result.configs}
        assert set(by_name) == {key.name for key in BROKER_KEYS}
        assert (by_name["node.id"].value, by_name["node.id"].read_only) == ("1", True)
        assert (by_name["log.retention.ms"].value, by_name["log.retention.ms"].read_only) == (None, False)
        if version >= 1:
            assert by_name["listeners"].config_source == ConfigSource.STATIC_BROKER
            assert by_name["num.partitions"].config_source == ConfigSource.DEFAULT

    @pytest.mark.parametrize("version", VERSIONS)
    def test_wrong_resources_are_told_each_for_itself(
        self, client: WireClient, topic: str, version: int
    ) -> None:
        named = [(TOPIC, "nowhere"), (TOPIC, "a b"), (BROKER, "2"), (BROKER, "x"), (99, "z"), (TOPIC, topic)]
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
                for kind, name in named
            ]
        )
        results = client.call(request, version, DescribeConfigsResponse).results
        assert [(result.resource_type, result.resource_name) for result in results] == named
        assert [result.error_code for result in results] == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_REQUEST,
            0,
        ]
        assert [bool(result.configs) for result in results] == [False] * 5 + [True]
        assert results[2].error_message == (
            "Unexpected broker id, expected 1 or empty string, but received 2"
        )


class TestWhatIsAskedFor:
    def test_only_the_named_settings_that_exist(self, client: WireClient, topic: str) -> None:
        result = describe_result(client, TOPIC, topic, "retention.ms", "no.such", "segment.ms")
        assert {config.name for config in result.configs} == {"retention.ms", "segment.ms"}

    def test_an_empty_list_of_names_is_all(self, client: WireClient, topic: str) -> None:
        assert len(describe_result(client, TOPIC, topic).configs) == len(list(TOPIC_KEYS))

    @pytest.mark.parametrize("version", [1, 2, 3, 4])
    def test_synonyms_come_best_first(self, client: WireClient, make_topic: MakeTopic, version: int) -> None:
        topic = make_topic(retention_ms="5000")
        found = describe(client, TOPIC, topic, "retention.ms", version=version, synonyms=True)
        places = [(each.name, each.value, each.source) for each in found.synonyms]
        assert places == [("retention.ms", "5000", ConfigSource.TOPIC)]
        plain = describe(client, TOPIC, topic, "segment.bytes", version=version, synonyms=True)
        assert [(each.name, each.value, each.source) for each in plain.synonyms] == [
            ("log.segment.bytes", "1073741824", ConfigSource.DEFAULT)
        ]

    @pytest.mark.parametrize("version", [3, 4])
    def test_documentation_when_wanted(self, client: WireClient, topic: str, version: int) -> None:
        result = describe_result(client, TOPIC, topic, version=version, documentation=True)
        assert all(config.documentation for config in result.configs)

    def test_nothing_is_set_for_all_brokers_at_first(self, client: WireClient) -> None:
        assert describe_result(client, BROKER, "").configs == []

    def test_kinds_are_the_wires(self, client: WireClient, topic: str) -> None:
        kinds = {
            "preallocate": Kind.BOOLEAN,
            "compression.type": Kind.STRING,
            "segment.bytes": Kind.INT,
            "retention.ms": Kind.LONG,
            "min.cleanable.dirty.ratio": Kind.DOUBLE,
            "cleanup.policy": Kind.LIST,
        }
        found = {
            config.name: config.config_type
            for config in describe_result(client, TOPIC, topic, *kinds).configs
        }
        assert found == kinds
