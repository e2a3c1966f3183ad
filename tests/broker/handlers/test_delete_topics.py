"""barnabas.broker.handlers.delete_topics: by name, from version 6 also by id."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.base.types import ZERO_UUID
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.testing import Broker
from tests.broker._calls import batch, fetch, image_of, produce, topic_id_of, values
from tests.broker._wire import WireClient

VERSIONS = range(7)


def delete(
    client: WireClient, version: int, *names: str | None, topic_id: bytes = ZERO_UUID
) -> list[DeletableTopicResult]:
    if version < 6:
        request = DeleteTopicsRequest(topic_names=[name or "" for name in names], timeout_ms=1_000)
    else:
        states = [DeleteTopicState(name=name, topic_id=topic_id) for name in names]
        request = DeleteTopicsRequest(topics=states, timeout_ms=1_000)
    return client.call(request, version, DeleteTopicsResponse).responses


@pytest.mark.parametrize("version", VERSIONS)
def test_a_deleted_topic_is_gone_at_once(
    broker: Broker, client: WireClient, topic: str, version: int
) -> None:
    produce(client, topic, batch(b"x"))
    topic_id = topic_id_of(broker, topic)
    (result,) = delete(client, version, topic)
    assert (result.name, result.error_code, result.error_message) == (topic, 0, None)
    assert result.topic_id == (topic_id if version >= 6 else ZERO_UUID)
    assert topic not in image_of(broker).topics
    assert produce(client, topic, batch(b"x")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not (Path(broker.data_dir) / f"{topic}-0").exists()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_name_is_told_and_the_others_go(
    broker: Broker, client: WireClient, topic: str, version: int
) -> None:
    results = delete(client, version, "nowhere", topic)
    assert [(result.name, result.error_code) for result in results] == [
        ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (topic, 0),
    ]


def test_one_made_anew_is_empty_and_has_another_id(broker: Broker, client: WireClient, topic: str) -> None:
    produce(client, topic, batch(b"old"))
    old_id = topic_id_of(broker, topic)
    delete(client, 6, topic)
    broker.create_topic(topic)
    assert topic_id_of(broker, topic) != old_id
    assert values(fetch(client, topic)) == []
    assert produce(client, topic, batch(b"new")).base_offset == 0
    stale = fetch(client, "", version=13, topic_id=old_id)
    assert stale.error_code == ErrorCode.UNKNOWN_TOPIC_ID


class TestByIdFromVersion6On:
    def test_the_id_is_enough(self, broker: Broker, client: WireClient, topic: str) -> None:
        topic_id = topic_id_of(broker, topic)
        (result,) = delete(client, 6, None, topic_id=topic_id)
        assert (result.name, result.topic_id, result.error_code) == (topic, topic_id, 0)

    def test_an_unknown_id_is_told(self, client: WireClient) -> None:
        (result,) = delete(client, 6, None, topic_id=b"\6" * 16)
        assert (result.name, result.topic_id, result.error_code) == (
            None,
            b"\6" * 16,
            ErrorCode.UNKNOWN_TOPIC_ID,
        )

    def test_name_and_id_together_are_refused(self, broker: Broker, client: WireClient, topic: str) -> None:
        (result,) = delete(client, 6, topic, topic_id=topic_id_of(broker, topic))
        assert result.error_code == ErrorCode.INVALID_REQUEST
        assert topic in image_of(broker).topics

    def test_neither_is_refused(self, client: WireClient) -> None:
        (result,) = delete(client, 6, None)
        assert result.error_code == ErrorCode.INVALID_REQUEST


@pytest.fixture(scope="module")
def keeper() -> Iterator[Broker]:
    with Broker({"delete.topic.enable": "false"}) as running:
        running.create_topic("kept")
        yield running


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broker_may_forbid_it(keeper: Broker, version: int) -> None:
    with WireClient(keeper.bootstrap_servers) as client:
        (result,) = delete(client, version, "kept")
        old = version < 3
        assert result.error_code == (ErrorCode.INVALID_REQUEST if old else ErrorCode.TOPIC_DELETION_DISABLED)
        assert "kept" in image_of(keeper).topics
