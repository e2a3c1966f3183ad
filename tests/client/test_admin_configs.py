"""Settings of topics and brokers are read, changed and replaced."""

import pytest

from barnabas.client.admin import Admin
from barnabas.client.admin_types import (
    Append,
    ConfigResource,
    ConfigSource,
)
from barnabas.client.errors import (
    KafkaError,
)
from barnabas.protocol.codes import ErrorCode


class TestConfigs:
    def test_settings_are_described_with_their_sources(self, admin: Admin, topic: str) -> None:
        admin.create_topic(topic, configs={"retention.ms": "1000"})
        resource = ConfigResource.topic(topic)
        entries = admin.describe_configs([resource])[resource]
        assert entries["retention.ms"].value == "1000"
        assert entries["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC
        assert entries["max.message.bytes"].is_default
        assert str(entries["retention.ms"]) == "retention.ms=1000 (dynamic topic)"

    def test_only_the_names_asked_for_come(self, admin: Admin, topic: str) -> None:
        admin.create_topic(topic)
        resource = ConfigResource.topic(topic)
        found = admin.describe_configs([resource], names=["cleanup.policy"], documentation=True)[resource]
        assert list(found) == ["cleanup.policy"]
        assert found["cleanup.policy"].documentation

    def test_a_change_leaves_the_rest_and_a_replacement_does_not(self, admin: Admin, topic: str) -> None:
        admin.create_topic(topic, configs={"retention.ms": "1000"})
        resource = ConfigResource.topic(topic)

        def value(name: str) -> str | None:
            return admin.describe_configs([resource])[resource][name].value

        default = value("segment.bytes")
        admin.alter_configs({resource: {"cleanup.policy": Append("compact"), "segment.bytes": 2**21}}).check()
        assert (value("cleanup.policy"), value("segment.bytes")) == ("delete,compact", str(2**21))
        assert value("retention.ms") == "1000"
        admin.alter_configs({resource: {"segment.bytes": None}}).check()
        assert value("segment.bytes") == default
        admin.replace_configs({resource: {"cleanup.policy": "delete"}}).check()
        assert value("retention.ms") != "1000"

    def test_a_trial_changes_nothing(self, admin: Admin, topic: str) -> None:
        admin.create_topic(topic)
        resource = ConfigResource.topic(topic)
        admin.alter_configs({resource: {"retention.ms": 5}}, validate_only=True).check()
        assert admin.describe_configs([resource])[resource]["retention.ms"].value != "5"

    def test_a_wrong_value_is_refused(self, admin: Admin, topic: str) -> None:
        admin.create_topic(topic)
        resource = ConfigResource.topic(topic)
        outcome = admin.alter_configs({resource: {"retention.ms": "soon"}})
        assert outcome.errors[resource].code is ErrorCode.INVALID_CONFIG

    def test_a_broker_is_asked_about_itself(self, admin: Admin) -> None:
        node = admin.describe_cluster().brokers[0].id
        resource = ConfigResource.broker(node)
        entries = admin.describe_configs([resource])[resource]
        assert entries["log.retention.hours"].value == "168"
        with pytest.raises(KafkaError, match="no broker has the id '4711'"):
            admin.describe_configs([ConfigResource.broker(4711)])
