"""barnabas.broker.handlers.describe_transactions: what a transactional id is doing."""

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from tests.broker._calls import now_ms
from tests.broker._transactions import TransactionalProducer, describe
from tests.broker._wire import WireClient
from tests.broker.conftest import MakeTopic


def test_an_open_transaction_with_its_partitions_and_age(client: WireClient, make_topic: MakeTopic) -> None:
    one, two = make_topic(2), make_topic(1)
    producer = TransactionalProducer(client, timeout_ms=7_000)
    before = now_ms()
    producer.send(one, b"x", partition=1)
    producer.send(one, b"x", partition=0)
    producer.send(two, b"x")
    found = describe(client, producer.transactional_id)
    assert (found.error_code, found.transactional_id) == (0, producer.transactional_id)
    assert (found.transaction_state, found.transaction_timeout_ms) == ("Ongoing", 7_000)
    assert before <= found.transaction_start_time_ms <= now_ms()
    assert (found.producer_id, found.producer_epoch) == (producer.producer_id, producer.epoch)
    assert {each.topic: each.partitions for each in found.topics} == {one: [0, 1], two: [0]}


def test_each_id_has_its_own_answer(client: WireClient) -> None:
    producer = TransactionalProducer(client)
    request = DescribeTransactionsRequest(transactional_ids=["no such id", producer.transactional_id, ""])
    found = client.call(request, 0, DescribeTransactionsResponse).transaction_states
    assert [(each.transactional_id, each.error_code) for each in found] == [
        ("no such id", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
        (producer.transactional_id, 0),
        ("", ErrorCode.INVALID_REQUEST),
    ]
    assert found[1].transaction_state == "Empty"
