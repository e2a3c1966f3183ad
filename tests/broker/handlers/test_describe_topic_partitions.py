"""barnabas.broker.handlers.describe_topic_partitions: topics in pages of so many partitions."""

import pytest

from barnabas.base.types import ZERO_UUID
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from barnabas.testing import Broker
from tests.broker._calls import topic_id_of
from tests.broker._wire import WireClient
from tests.broker.conftest import MakeTopic


def ask(
    client: WireClient, *names: str, limit: int = 2_000, cursor: Cursor | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names], response_partition_limit=limit, cursor=cursor
    )
    return client.call(request, 0, DescribeTopicPartitionsResponse)


def test_a_topic_and_its_partitions(broker: Broker, client: WireClient, make_topic: MakeTopic) -> None:
    name = make_topic(2)
    response = ask(client, name)
    assert response.next_cursor is None
    (topic,) = response.topics
    assert (topic.error_code, topic.name, topic.topic_id) == (0, name, topic_id_of(broker, name))
    assert topic.topic_authorized_operations == 3576
    for index, part in enumerate(topic.partitions):
        assert (part.partition_index, part.error_code) == (index, 0)
        assert (part.leader_id, part.leader_epoch) == (1, 0)
        assert (part.replica_nodes, part.isr_nodes, part.offline_replicas) == ([1], [1], [])
        assert (part.eligible_leader_replicas, part.last_known_elr) == ([], []), "never null"


def test_unknown_and_invalid_names_are_told_in_the_order_of_names(client: WireClient, topic: str) -> None:
    response = ask(client, "zz-nowhere", topic, "a b", topic)
    assert [(found.name, found.error_code) for found in response.topics] == [
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic, 0),
        ("zz-nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert response.topics[0].topic_id == ZERO_UUID


def test_no_names_are_all_topics(client: WireClient, topic: str) -> None:
    assert topic in {found.name for found in ask(client).topics}


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6, 100])
def test_pages_put_together_are_the_whole(client: WireClient, make_topic: MakeTopic, limit: int) -> None:
    names = sorted(make_topic(count) for count in (3, 1, 2))
    seen: list[tuple[str | None, int]] = []
    cursor: Cursor | None = None
    for _ in range(20):
        response = ask(client, *names, limit=limit, cursor=cursor)
        page = [(t.name, part.partition_index) for t in response.topics for part in t.partitions]
        assert len(page) <= limit
        seen += page
        cursor = response.next_cursor
        if cursor is None:
            break
    whole = ask(client, *names)
    assert seen == [(t.name, part.partition_index) for t in whole.topics for part in t.partitions]


def test_a_limit_below_one_still_makes_progress(client: WireClient, topic: str) -> None:
    assert len(ask(client, topic, limit=0).topics[0].partitions) == 1
