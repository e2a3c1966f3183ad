"""barnabas.broker.handlers.describe_producers: the producers a partition remembers."""

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicRequest,
)
from barnabas.testing import Broker
from tests.broker._calls import batch, produce
from tests.broker._wire import WireClient
from tests.broker.handlers.test_fetch import transactional


def ask(client: WireClient, topic: str, *indexes: int) -> list[PartitionResponse]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=list(indexes))])
    (answer,) = client.call(request, 0, DescribeProducersResponse).topics
    assert answer.name == topic
    return answer.partitions


def test_an_idempotent_producer_is_shown_with_its_last_sequence(client: WireClient, topic: str) -> None:
    produce(client, topic, batch(b"a", b"b", producer_id=7, epoch=2, sequence=0, timestamp=123))
    (part,) = ask(client, topic, 0)
    assert (part.error_code, part.error_message) == (0, None)
    (state,) = part.active_producers
    assert (state.producer_id, state.producer_epoch, state.last_sequence) == (7, 2, 1)
    assert (state.last_timestamp, state.current_txn_start_offset) == (123, -1)


def test_an_open_transaction_shows_where_it_began(broker: Broker, client: WireClient, topic: str) -> None:
    produce(client, topic, batch(b"before"))
    transactional(broker, topic, b"open", producer_id=9)
    (part,) = ask(client, topic, 0)
    assert [(s.producer_id, s.current_txn_start_offset) for s in part.active_producers] == [(9, 1)]


def test_others_are_not_remembered(client: WireClient, topic: str) -> None:
    produce(client, topic, batch(b"anonymous"))
    assert ask(client, topic, 0)[0].active_producers == []


def test_an_unknown_partition_is_told(client: WireClient, topic: str) -> None:
    known, unknown = ask(client, topic, 0, 4)
    assert (known.partition_index, known.error_code) == (0, 0)
    assert (unknown.partition_index, unknown.error_code) == (4, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert unknown.error_message == "there is no such partition here"
