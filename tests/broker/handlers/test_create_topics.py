"""barnabas.broker.handlers.create_topics: topics made or refused, each with its reason."""

from collections.abc import Iterator

import pytest

from barnabas.base.types import ZERO_UUID
from barnabas.broker.configs import ConfigSource
from barnabas.log.config import TOPIC
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.testing import Broker
from tests.broker._calls import batch, image_of, produce, topic_id_of
from tests.broker._wire import WireClient
from tests.broker.conftest import unique_name

VERSIONS = range(8)


def create(
    client: WireClient,
    name: str,
    version: int = 7,
    *,
    partitions: int = 1,
    replicas: int = 1,
    assignments: dict[int, list[int]] | None = None,
    configs: dict[str, str | None] | None = None,
    validate_only: bool = False,
) -> CreatableTopicResult:
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=nodes)
            for index, nodes in (assignments or {}).items()
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )
    request = CreateTopicsRequest(topics=[topic], validate_only=validate_only)
    (result,) = client.call(request, version, CreateTopicsResponse).topics
    assert result.name == name
    return result


class TestEveryVersionIsServed:
    @pytest.mark.parametrize("version", VERSIONS)
    def test_a_new_topic_can_be_used_at_once(self, broker: Broker, client: WireClient, version: int) -> None:
        name = unique_name()
        result = create(client, name, version, partitions=3, configs={"retention.ms": "5000"})
        assert result.error_code == 0
        assert result.error_message is None or version < 1
        assert result.topic_id == (topic_id_of(broker, name) if version >= 7 else ZERO_UUID)
        if version >= 5:
            assert (result.num_partitions, result.replication_factor) == (3, 1)
            assert result.configs is not None, "the Java client reads it without asking"
            told = {config.name: config for config in result.configs}
            assert set(told) == {key.name for key in TOPIC}
            assert (told["retention.ms"].value, told["retention.ms"].config_source) == (
                "5000",
                ConfigSource.TOPIC,
            )
            assert told["segment.bytes"].config_source == ConfigSource.DEFAULT
        assert produce(client, name, batch(b"x"), partition=2).error_code == 0

    @pytest.mark.parametrize("version", VERSIONS)
    def test_an_existing_one_is_told(self, client: WireClient, topic: str, version: int) -> None:
        result = create(client, topic, version)
        assert result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        if version >= 1:
            assert result.error_message == f"Topic '{topic}' already exists."
        if version >= 5:
            assert result.configs == [], "never null"

    @pytest.mark.parametrize("version", VERSIONS[1:])
    def test_validating_creates_nothing(self, broker: Broker, client: WireClient, version: int) -> None:
        name = unique_name()
        result = create(client, name, version, partitions=2, validate_only=True)
        assert (result.error_code, result.topic_id) == (0, ZERO_UUID)
        assert name not in image_of(broker).topics
        assert create(client, name, version, partitions=-2, validate_only=True).error_code != 0


class TestCounts:
    @pytest.mark.parametrize("version", [4, 5, 6, 7])
    def test_minus_one_is_the_brokers_default(self, broker: Broker, client: WireClient, version: int) -> None:
        name = unique_name()
        assert create(client, name, version, partitions=-1, replicas=-1).error_code == 0
        assert len(image_of(broker).topics[name].partitions) == 1

    @pytest.mark.parametrize("count", [0, -2])
    def test_other_counts_below_one_are_invalid(self, client: WireClient, count: int) -> None:
        assert create(client, unique_name(), partitions=count).error_code == ErrorCode.INVALID_PARTITIONS
        assert (
            create(client, unique_name(), replicas=count).error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        )

    def test_more_than_ten_thousand_at_once_break_the_policy(self, client: WireClient) -> None:
        for count in (10_001, 2**31 - 1):
            assert create(client, unique_name(), partitions=count).error_code == ErrorCode.POLICY_VIOLATION

    def test_more_replicas_than_brokers_are_impossible(self, client: WireClient) -> None:
        result = create(client, unique_name(), replicas=2)
        assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR


class TestAssignments:
    def test_brokers_can_be_named_for_each_partition(self, broker: Broker, client: WireClient) -> None:
        name = unique_name()
        result = create(client, name, partitions=-1, replicas=-1, assignments={1: [1], 0: [1]})
        assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 2, 1)
        assert [part.replicas for part in image_of(broker).topics[name].partitions] == [(1,), (1,)]

    @pytest.mark.parametrize(("partitions", "replicas"), [(1, -1), (-1, 1), (2, 2)])
    def test_they_go_with_counts_of_minus_one_only(
        self, client: WireClient, partitions: int, replicas: int
    ) -> None:
        result = create(client, unique_name(), partitions=partitions, replicas=replicas, assignments={0: [1]})
        assert result.error_code == ErrorCode.INVALID_REQUEST

    @pytest.mark.parametrize(
        "assignment",
        [{0: [9]}, {0: [1, 1]}, {0: []}, {1: [1]}, {0: [1], 2: [1]}],
        ids=["unknown broker", "twice", "none", "not from zero", "gap"],
    )
    def test_impossible_ones_are_refused(self, client: WireClient, assignment: dict[int, list[int]]) -> None:
        name = unique_name()
        result = create(client, name, partitions=-1, replicas=-1, assignments=assignment)
        assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


class TestNames:
    @pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "x" * 250, "a/b", "a,b"])
    def test_invalid_ones_are_refused(self, client: WireClient, name: str) -> None:
        assert create(client, name).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION

    def test_the_longest_possible_name_works(self, client: WireClient) -> None:
        name = "x" * 249
        assert create(client, name).error_code == 0
        assert produce(client, name, batch(b"x")).error_code == 0

    def test_a_dot_and_an_underscore_collide(self, client: WireClient) -> None:
        assert create(client, "so.near").error_code == 0
        assert create(client, "so_near").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION

    def test_a_name_that_comes_twice_is_refused_and_the_others_are_made(
        self, broker: Broker, client: WireClient
    ) -> None:
        twice, once = unique_name(), unique_name()
        topics = [
            CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in (twice, once, twice)
        ]
        results = client.call(CreateTopicsRequest(topics=topics), 7, CreateTopicsResponse).topics
        assert {result.name: result.error_code for result in results} == {
            twice: ErrorCode.INVALID_REQUEST,
            once: 0,
        }
        assert len(results) == 2
        assert twice not in image_of(broker).topics


class TestConfigs:
    @pytest.mark.parametrize(
        ("configs", "message"),
        [
            ({"retention.mss": "1"}, "retention.mss: there is no such setting; did you mean retention.ms"),
            ({"retention.ms": "soon"}, "retention.ms: 'soon' is not a whole number"),
            ({"retention.ms": "-2"}, "retention.ms: '-2' must be at least -1"),
            ({"cleanup.policy": "burn"}, "cleanup.policy: 'burn' may hold only compact, delete"),
            ({"compression.type": "brotli"}, "compression.type: 'brotli' must be one of"),
            ({"log.retention.ms": "1"}, "log.retention.ms: there is no such setting"),
        ],
    )
    def test_what_cannot_be_set_is_an_invalid_config(
        self, broker: Broker, client: WireClient, configs: dict[str, str | None], message: str
    ) -> None:
        name = unique_name()
        result = create(client, name, configs=configs)
        assert result.error_code == ErrorCode.INVALID_CONFIG
        assert (result.error_message or "").startswith(message)
        assert name not in image_of(broker).topics

    def test_a_setting_without_a_value_is_refused(self, client: WireClient) -> None:
        assert create(client, unique_name(), configs={"retention.ms": None}).error_code in (
            ErrorCode.INVALID_CONFIG,
            ErrorCode.INVALID_REQUEST,
        )

    def test_they_hold_from_the_first_record_on(self, client: WireClient) -> None:
        name = unique_name()
        create(client, name, configs={"max.message.bytes": "300", "cleanup.policy": "compact,delete"})
        assert produce(client, name, batch(bytes(400), key=b"k")).error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert produce(client, name, batch(b"x")).error_code == ErrorCode.INVALID_RECORD


@pytest.fixture(scope="module")
def five() -> Iterator[Broker]:
    with Broker({"num.partitions": "5", "log.retention.hours": "2"}) as running:
        yield running


def test_defaults_are_the_brokers_settings(five: Broker) -> None:
    with WireClient(five.bootstrap_servers) as client:
        result = create(client, "t", partitions=-1, replicas=-1)
        assert result.num_partitions == 5
        told = {config.name: (config.value, config.config_source) for config in result.configs or []}
        assert told["retention.ms"] == ("7200000", ConfigSource.STATIC_BROKER)
