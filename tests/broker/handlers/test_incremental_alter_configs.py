"""barnabas.broker.handlers.incremental_alter_configs: single settings changed, and at work at once."""

import pytest

from barnabas.broker.configs import ConfigOperation, ConfigSource
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.broker._calls import batch, produce
from tests.broker._configs import BROKER, TOPIC, alter, describe, set_value, unset, value_and_source
from tests.broker._wire import WireClient
from tests.broker.conftest import MakeTopic

VERSIONS = range(2)
SET, DELETE, APPEND, SUBTRACT = ConfigOperation


class TestTopics:
    @pytest.mark.parametrize("version", VERSIONS)
    def test_a_setting_is_set_and_goes_back_to_its_default(
        self, client: WireClient, topic: str, version: int
    ) -> None:
        done = alter(client, TOPIC, topic, ("retention.ms", SET, "99"), version=version)
        assert (done.error_code, done.error_message) == (0, None)
        assert value_and_source(client, TOPIC, topic, "retention.ms") == ("99", ConfigSource.TOPIC)
        assert alter(client, TOPIC, topic, ("retention.ms", DELETE, None), version=version).error_code == 0
        assert value_and_source(client, TOPIC, topic, "retention.ms")[1] == ConfigSource.DEFAULT

    def test_the_others_stay(self, client: WireClient, make_topic: MakeTopic) -> None:
        topic = make_topic(retention_ms="5000")
        set_value(client, TOPIC, topic, "segment.ms", "77")
        assert value_and_source(client, TOPIC, topic, "retention.ms") == ("5000", ConfigSource.TOPIC)

    def test_it_is_at_work_at_once(self, client: WireClient, topic: str) -> None:
        assert produce(client, topic, batch(bytes(500))).error_code == 0
        set_value(client, TOPIC, topic, "max.message.bytes", "300")
        assert produce(client, topic, batch(bytes(500))).error_code == ErrorCode.MESSAGE_TOO_LARGE
        unset(client, TOPIC, topic, "max.message.bytes")
        assert produce(client, topic, batch(bytes(500))).error_code == 0

    def test_lists_grow_and_shrink(self, client: WireClient, topic: str) -> None:
        assert alter(client, TOPIC, topic, ("cleanup.policy", APPEND, "compact")).error_code == 0
        assert describe(client, TOPIC, topic, "cleanup.policy").value == "delete,compact"
        assert alter(client, TOPIC, topic, ("cleanup.policy", APPEND, "compact")).error_code == 0
        assert describe(client, TOPIC, topic, "cleanup.policy").value == "delete,compact", "once is enough"
        assert alter(client, TOPIC, topic, ("cleanup.policy", SUBTRACT, "delete")).error_code == 0
        assert describe(client, TOPIC, topic, "cleanup.policy").value == "compact"

    def test_only_lists_do(self, client: WireClient, topic: str) -> None:
        for operation in (APPEND, SUBTRACT):
            done = alter(client, TOPIC, topic, ("retention.ms", operation, "5"))
            assert done.error_code == ErrorCode.INVALID_CONFIG

    @pytest.mark.parametrize(
        ("setting", "value"),
        [("retention.ms", "soon"), ("no.such.setting", "1"), ("cleanup.policy", "burn")],
    )
    def test_what_cannot_be_is_an_invalid_config(
        self, client: WireClient, topic: str, setting: str, value: str
    ) -> None:
        done = alter(client, TOPIC, topic, ("segment.ms", SET, "5"), (setting, SET, value))
        assert done.error_code == ErrorCode.INVALID_CONFIG
        assert value_and_source(client, TOPIC, topic, "segment.ms")[1] == ConfigSource.DEFAULT

    @pytest.mark.parametrize("version", VERSIONS)
    @pytest.mark.parametrize("validate_only", [False, True])
    def test_an_unknown_topic_is_told(self, client: WireClient, version: int, validate_only: bool) -> None:
        done = alter(
            client,
            TOPIC,
            "nowhere",
            ("retention.ms", SET, "5"),
            version=version,
            validate_only=validate_only,
        )
        assert done.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_validating_changes_nothing(self, client: WireClient, topic: str) -> None:
        done = alter(client, TOPIC, topic, ("retention.ms", SET, "5"), validate_only=True)
        assert done.error_code == 0
        assert value_and_source(client, TOPIC, topic, "retention.ms")[1] == ConfigSource.DEFAULT
        wrong = alter(client, TOPIC, topic, ("retention.ms", SET, "x"), validate_only=True)
        assert wrong.error_code == ErrorCode.INVALID_CONFIG


class TestMalformedRequests:
    def test_a_setting_named_twice(self, client: WireClient, topic: str) -> None:
        done = alter(client, TOPIC, topic, ("retention.ms", SET, "5"), ("retention.ms", SET, "6"))
        assert done.error_code == ErrorCode.INVALID_REQUEST

    def test_no_value(self, client: WireClient, topic: str) -> None:
        done = alter(client, TOPIC, topic, ("retention.ms", SET, None))
        assert (done.error_code, done.error_message) == (
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : retention.ms",
        )

    def test_an_operation_that_does_not_exist(self, client: WireClient, topic: str) -> None:
        assert alter(client, TOPIC, topic, ("retention.ms", 7, "5")).error_code == ErrorCode.INVALID_REQUEST

    def test_a_resource_that_has_no_settings(self, client: WireClient) -> None:
        assert alter(client, 77, "x", ("retention.ms", SET, "5")).error_code == ErrorCode.INVALID_REQUEST

    def test_a_resource_named_twice_is_changed_by_neither(self, client: WireClient, topic: str) -> None:
        resource = AlterConfigsResource(
            resource_type=TOPIC,
            resource_name=topic,
            configs=[AlterableConfig(name="retention.ms", config_operation=SET, value="5")],
        )
        request = IncrementalAlterConfigsRequest(resources=[resource, resource])
        responses = client.call(request, 1, IncrementalAlterConfigsResponse).responses
        assert [(each.error_code, each.error_message) for each in responses] == [
            (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        ] * 2
        assert value_and_source(client, TOPIC, topic, "retention.ms")[1] == ConfigSource.DEFAULT


class TestBrokers:
    def test_one_broker_wins_over_all_brokers(self, client: WireClient) -> None:
        setting = "log.retention.ms"
        set_value(client, BROKER, "", setting, "1111")
        assert value_and_source(client, BROKER, "1", setting) == (
            "1111",
            ConfigSource.DYNAMIC_DEFAULT_BROKER,
        )
        set_value(client, BROKER, "1", setting, "2222")
        found = describe(client, BROKER, "1", setting, synonyms=True)
        assert (found.value, found.config_source) == ("2222", ConfigSource.DYNAMIC_BROKER)
        assert [(each.value, each.source) for each in found.synonyms][:2] == [
            ("2222", ConfigSource.DYNAMIC_BROKER),
            ("1111", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ]
        assert describe(client, BROKER, "", setting).value == "1111"
        for name in ("1", ""):
            unset(client, BROKER, name, setting)
        assert describe(client, BROKER, "1", setting).value is None

    def test_topics_without_a_setting_of_their_own_follow_at_once(
        self, client: WireClient, make_topic: MakeTopic
    ) -> None:
        follows, own = make_topic(), make_topic(max_message_bytes="1000000")
        set_value(client, BROKER, "", "message.max.bytes", "300")
        try:
            assert produce(client, follows, batch(bytes(500))).error_code == ErrorCode.MESSAGE_TOO_LARGE
            assert produce(client, own, batch(bytes(500))).error_code == 0
            assert value_and_source(client, TOPIC, follows, "max.message.bytes") == (
                "300",
                ConfigSource.DYNAMIC_DEFAULT_BROKER,
            )
        finally:
            unset(client, BROKER, "", "message.max.bytes")
        assert produce(client, follows, batch(bytes(500))).error_code == 0

    def test_what_is_read_at_the_start_only_cannot_be_changed(self, client: WireClient) -> None:
        done = alter(client, BROKER, "1", ("node.id", SET, "5"))
        assert (done.error_code, done.error_message) == (
            ErrorCode.INVALID_REQUEST,
            "node.id: can only be set in the configuration file; it is read at the start",
        )

    def test_a_wrong_value_is_refused(self, client: WireClient) -> None:
        done = alter(client, BROKER, "1", ("log.retention.ms", SET, "never"))
        assert done.error_code == ErrorCode.INVALID_REQUEST

    @pytest.mark.parametrize("name", ["2", "x"])
    def test_another_broker_is_not_ours_to_change(self, client: WireClient, name: str) -> None:
        done = alter(client, BROKER, name, ("log.retention.ms", SET, "5"))
        assert done.error_code == ErrorCode.INVALID_REQUEST
