"""barnabas.broker.handlers.create_partitions: topics grow and never shrink."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from barnabas.testing import Broker
from tests.broker._calls import batch, fetch, image_of, produce, values
from tests.broker._wire import WireClient

VERSIONS = range(4)


def grow(
    client: WireClient,
    name: str,
    count: int,
    version: int = 3,
    *,
    assignments: list[list[int]] | None = None,
    validate_only: bool = False,
) -> CreatePartitionsTopicResult:
    named = None
    if assignments is not None:
        named = [CreatePartitionsAssignment(broker_ids=nodes) for nodes in assignments]
    topic = CreatePartitionsTopic(name=name, count=count, assignments=named)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=1_000, validate_only=validate_only)
    (result,) = client.call(request, version, CreatePartitionsResponse).results
    assert result.name == name
    return result


@pytest.mark.parametrize("version", VERSIONS)
def test_new_partitions_serve_and_old_ones_keep_their_records(
    broker: Broker, client: WireClient, topic: str, version: int
) -> None:
    produce(client, topic, batch(b"old"))
    result = grow(client, topic, 3, version)
    assert (result.error_code, result.error_message) == (0, None)
    assert len(image_of(broker).topics[topic].partitions) == 3
    assert produce(client, topic, batch(b"new"), partition=2).base_offset == 0
    assert values(fetch(client, topic)) == [b"old"]


@pytest.mark.parametrize("version", VERSIONS)
def test_validating_changes_nothing(broker: Broker, client: WireClient, topic: str, version: int) -> None:
    assert grow(client, topic, 3, version, validate_only=True).error_code == 0
    assert len(image_of(broker).topics[topic].partitions) == 1
    assert grow(client, topic, 1, version, validate_only=True).error_code == ErrorCode.INVALID_PARTITIONS


def test_as_many_or_fewer_are_refused(client: WireClient, topic: str) -> None:
    grow(client, topic, 3)
    same = grow(client, topic, 3)
    assert (same.error_code, same.error_message) == (
        ErrorCode.INVALID_PARTITIONS,
        "Topic already has 3 partition(s).",
    )
    for count in (2, 0, -1):
        fewer = grow(client, topic, count)
        assert fewer.error_code == ErrorCode.INVALID_PARTITIONS
        assert fewer.error_message == (
            f"The topic {topic} currently has 3 partition(s); {count} would not be an increase."
        )


def test_an_unknown_topic_is_told(client: WireClient) -> None:
    assert grow(client, "nowhere", 3).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("assignments", "code"),
    [
        ([[1], [1]], 0),
        ([[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([[1], [8]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([[1], []], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([[1, 1], [1, 1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_brokers_can_be_named_for_the_new_ones(
    client: WireClient, topic: str, assignments: list[list[int]], code: int
) -> None:
    assert grow(client, topic, 3, assignments=assignments).error_code == code


def test_a_topic_named_twice_is_refused_once_and_the_others_grow(
    broker: Broker, client: WireClient, topic: str
) -> None:
    named = [CreatePartitionsTopic(name=name, count=2, assignments=None) for name in (topic, "x", topic)]
    request = CreatePartitionsRequest(topics=named, timeout_ms=1_000)
    results = client.call(request, 3, CreatePartitionsResponse).results
    assert {result.name: result.error_code for result in results} == {
        "x": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        topic: ErrorCode.INVALID_REQUEST,
    }
    assert len(results) == 2
