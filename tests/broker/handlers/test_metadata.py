"""barnabas.broker.handlers.metadata: brokers, topics, leaders, and topics made on the way (WIRE 2.5)."""

from collections.abc import Iterator

import pytest

from barnabas.base.types import ZERO_UUID
from barnabas.metadata.image import ConfigResourceType
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from barnabas.testing import Broker
from tests.broker._calls import batch, image_of, produce, topic_id_of
from tests.broker._wire import WireClient
from tests.broker.conftest import MakeTopic

VERSIONS = range(14)
NOT_ASKED = -(2**31)


def named(*names: str | None, create: bool = True, topic_id: bytes = ZERO_UUID) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name, topic_id=topic_id) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create)


def ask(client: WireClient, name: str, version: int = 12, *, create: bool = False) -> MetadataResponseTopic:
    if version < 4:
        create = True
    (topic,) = client.call(named(name, create=create), version, MetadataResponse).topics
    return topic


class TestEveryVersionIsServed:
    @pytest.mark.parametrize("version", VERSIONS)
    def test_brokers_and_topics_are_told(
        self, broker: Broker, client: WireClient, make_topic: MakeTopic, version: int
    ) -> None:
        name = make_topic(3)
        response = client.call(named(name), version, MetadataResponse)
        host, _, port = broker.bootstrap_servers.rpartition(":")
        (node,) = response.brokers
        assert (node.node_id, node.host, node.port, node.rack) == (1, host, int(port), None)
        assert response.controller_id == (1 if version >= 1 else -1)
        assert response.cluster_id == (image_of(broker).cluster_id if version >= 2 else None)
        assert response.cluster_authorized_operations == NOT_ASKED
        assert (response.throttle_time_ms, response.error_code) == (0, 0)
        (topic,) = response.topics
        assert (topic.name, topic.error_code, topic.is_internal) == (name, 0, False)
        assert topic.topic_id == (topic_id_of(broker, name) if version >= 10 else ZERO_UUID)
        assert topic.topic_authorized_operations == NOT_ASKED
        for index, part in enumerate(topic.partitions):
            assert (part.partition_index, part.error_code, part.leader_id) == (index, 0, 1)
            assert part.leader_epoch == (0 if version >= 7 else -1)
            assert (part.replica_nodes, part.isr_nodes, part.offline_replicas) == ([1], [1], [])
        assert len(topic.partitions) == 3


class TestWhichTopics:
    def test_no_topics_are_all_in_version_0(self, client: WireClient, topic: str) -> None:
        response = client.call(MetadataRequest(topics=[]), 0, MetadataResponse)
        assert topic in [found.name for found in response.topics]

    @pytest.mark.parametrize("version", range(1, 14))
    def test_null_is_all_and_empty_is_none_from_version_1_on(
        self, client: WireClient, topic: str, version: int
    ) -> None:
        everything = client.call(MetadataRequest(topics=None), version, MetadataResponse)
        assert topic in [found.name for found in everything.topics]
        nothing = client.call(MetadataRequest(topics=[]), version, MetadataResponse)
        assert nothing.topics == []
        assert [node.node_id for node in nothing.brokers] == [1]

    def test_they_come_in_the_order_asked_with_the_missing_ones(self, client: WireClient, topic: str) -> None:
        response = client.call(named("nowhere", topic, create=False), 9, MetadataResponse)
        assert [(found.name, found.error_code, len(found.partitions)) for found in response.topics] == [
            ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0),
            (topic, 0, 1),
        ]

    def test_a_topic_named_twice_is_answered_once(self, client: WireClient, topic: str) -> None:
        response = client.call(named(topic, topic), 9, MetadataResponse)
        assert [found.name for found in response.topics] == [topic]

    def test_from_version_12_on_the_id_is_enough(
        self, broker: Broker, client: WireClient, topic: str
    ) -> None:
        topic_id = topic_id_of(broker, topic)
        for version in (12, 13):
            (found,) = client.call(named(None, topic_id=topic_id), version, MetadataResponse).topics
            assert (found.error_code, found.name, found.topic_id) == (0, topic, topic_id)

    def test_an_unknown_id_is_unknown_topic_id_and_has_no_name(self, client: WireClient) -> None:
        (found,) = client.call(named(None, topic_id=b"\x05" * 16), 12, MetadataResponse).topics
        assert (found.error_code, found.name, found.topic_id) == (
            ErrorCode.UNKNOWN_TOPIC_ID,
            None,
            b"\x05" * 16,
        )

    @pytest.mark.parametrize("version", [10, 11])
    def test_before_version_12_a_name_is_needed(
        self, broker: Broker, client: WireClient, topic: str, version: int
    ) -> None:
        for topic_id in (topic_id_of(broker, topic), ZERO_UUID):
            (found,) = client.call(named(None, topic_id=topic_id), version, MetadataResponse).topics
            assert found.error_code == ErrorCode.INVALID_REQUEST
            assert found.name == ""

    def test_the_brokers_own_topics_are_marked(self, client: WireClient) -> None:
        found = ask(client, "__consumer_offsets", create=True)
        assert (found.error_code, found.is_internal, len(found.partitions)) == (0, True, 4)


class TestCreatingOnTheWay:
    @pytest.mark.parametrize("version", VERSIONS)
    def test_a_missing_topic_is_made_with_the_brokers_defaults(
        self, broker: Broker, client: WireClient, version: int
    ) -> None:
        name = f"auto-{version}"
        found = ask(client, name, version, create=True)
        assert (found.name, found.error_code, len(found.partitions)) == (name, 0, 1)
        assert produce(client, name, batch(b"x")).error_code == 0

    @pytest.mark.parametrize("version", range(4, 14))
    def test_not_if_the_client_does_not_want_it(self, client: WireClient, version: int) -> None:
        for _ in range(2):
            found = ask(client, "unwanted", version)
            assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert found.partitions == []
            assert found.topic_id == ZERO_UUID

    @pytest.mark.parametrize("version", [0, 3, 4, 12])
    @pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "x" * 250, "a/b"])
    def test_an_invalid_name_is_an_invalid_topic(self, client: WireClient, version: int, name: str) -> None:
        found = ask(client, name, version, create=True)
        assert (found.name, found.error_code, found.partitions) == (
            name,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            [],
        )

    def test_a_name_that_collides_with_another_is_refused(self, client: WireClient) -> None:
        assert ask(client, "a.collision", create=True).error_code == 0
        assert ask(client, "a_collision", create=True).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION

    def test_several_are_made_in_one_request(self, client: WireClient) -> None:
        response = client.call(named("made-1", "made-2", "made-1"), 9, MetadataResponse)
        assert sorted(found.name or "" for found in response.topics) == ["made-1", "made-2"]
        assert {found.error_code for found in response.topics} == {0}

    def test_two_clients_at_once_make_one_topic(self, broker: Broker, client: WireClient) -> None:
        with WireClient(broker.bootstrap_servers) as other:
            client.send(named("race"), 12)
            other.send(named("race"), 12)
            answers = [each.receive(MetadataResponse).topics[0] for each in (client, other)]
        assert [found.error_code for found in answers] == [0, 0]
        assert answers[0].topic_id == answers[1].topic_id


@pytest.fixture(scope="module")
def strict() -> Iterator[Broker]:
    settings = {
        "auto.create.topics.enable": "false",
        "num.partitions": "4",
        "broker.rack": "shelf-3",
        "node.id": "7",
        "listeners": "PLAINTEXT://127.0.0.1:0,SECOND://127.0.0.1:0",
        "advertised.listeners": "SECOND://kafka.example:1234",
    }
    with Broker(settings) as running:
        yield running


@pytest.fixture
def reader(strict: Broker) -> Iterator[WireClient]:
    with WireClient(strict.bootstrap_servers) as connected:
        yield connected


class TestSettings:
    @pytest.mark.parametrize("version", VERSIONS)
    def test_nothing_is_made_when_the_broker_does_not_allow_it(
        self, reader: WireClient, version: int
    ) -> None:
        found = ask(reader, "missing", version, create=True)
        assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_a_client_is_told_the_address_of_the_listener_it_came_by(
        self, strict: Broker, reader: WireClient
    ) -> None:
        (node,) = reader.call(MetadataRequest(topics=[]), 9, MetadataResponse).brokers
        assert f"{node.host}:{node.port}" == strict.bootstrap_servers
        assert (node.node_id, node.rack) == (7, "shelf-3")
        assert strict.node is not None
        (second,) = [end for end in strict.node.endpoints if end.listener == "SECOND"]
        assert (second.host, second.port) == ("kafka.example", 1234)

    def test_the_default_count_is_the_brokers(self, strict: Broker, reader: WireClient) -> None:
        assert strict.node is not None
        assert strict.node.services is not None
        strict.run(strict.node.services.topics.ensure("counted"))
        assert len(ask(reader, "counted").partitions) == 4


def test_a_new_setting_of_a_topic_does_not_change_its_id(
    broker: Broker, client: WireClient, topic: str
) -> None:
    before = ask(client, topic)
    assert broker.node is not None
    assert broker.node.services is not None
    broker.run(
        broker.node.services.configs.replace(
            ConfigResourceType.TOPIC, topic, {"retention.ms": "1000"}, validate_only=False
        )
    )
    assert ask(client, topic) == before
