"""barnabas.broker.handlers.add_partitions_to_txn: all of them or none, one transaction or several."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tests.broker._transactions import TransactionalProducer, describe
from tests.broker._wire import WireClient
from tests.broker.conftest import MakeTopic

VERSIONS = range(4)
BATCHED_VERSIONS = range(4, 6)


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_become_part_of_the_transaction(
    client: WireClient, make_topic: MakeTopic, version: int
) -> None:
    topic, producer = make_topic(3), TransactionalProducer(client)
    assert producer.add(topic, 2, 0, version=version) == [0, 0]
    assert producer.add(topic, 0, version=version) == [0]
    found = describe(client, producer.transactional_id)
    assert found.transaction_state == "Ongoing"
    assert [(each.topic, each.partitions) for each in found.topics] == [(topic, [0, 2])]


@pytest.mark.parametrize("version", VERSIONS)
def test_one_that_does_not_exist_keeps_out_the_others(client: WireClient, topic: str, version: int) -> None:
    producer = TransactionalProducer(client)
    assert producer.add(topic, 0, 9, version=version) == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert describe(client, producer.transactional_id).transaction_state == "Empty"


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_a_producer_cannot_add_the_broker_s_own_topics(client: WireClient, name: str) -> None:
    producer = TransactionalProducer(client)
    assert producer.add(name) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fenced_producer_is_told_in_words_it_knows(client: WireClient, topic: str, version: int) -> None:
    producer = TransactionalProducer(client)
    TransactionalProducer(client, producer.transactional_id)
    expected = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.add(topic, version=version) == [expected]


def test_a_producer_that_nobody_knows_is_refused(client: WireClient, topic: str) -> None:
    producer = TransactionalProducer(client)
    producer.producer_id += 1_000_000
    assert producer.add(topic) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]


@pytest.mark.parametrize("version", BATCHED_VERSIONS)
def test_brokers_ask_for_several_transactions_and_may_only_verify(
    client: WireClient, make_topic: MakeTopic, version: int
) -> None:
    topic = make_topic(2)
    one, two = TransactionalProducer(client), TransactionalProducer(client)
    one.send(topic, b"x")

    def asked(producer: TransactionalProducer, partition: int, verify: bool) -> AddPartitionsToTxnTransaction:
        return AddPartitionsToTxnTransaction(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            verify_only=verify,
            topics=[AddPartitionsToTxnTopic(name=topic, partitions=[partition])],
        )

    request = AddPartitionsToTxnRequest(transactions=[asked(one, 0, True), asked(two, 1, False)])
    answer = client.call(request, version, AddPartitionsToTxnResponse)
    assert answer.error_code == 0
    assert [each.transactional_id for each in answer.results_by_transaction] == [
        one.transactional_id,
        two.transactional_id,
    ]
    codes = [
        part.partition_error_code
        for each in answer.results_by_transaction
        for named in each.topic_results
        for part in named.results_by_partition
    ]
    assert codes == [0, 0]
    request = AddPartitionsToTxnRequest(transactions=[asked(one, 1, True)])
    (result,) = client.call(request, version, AddPartitionsToTxnResponse).results_by_transaction
    expected = ErrorCode.TRANSACTION_ABORTABLE if version >= 5 else ErrorCode.INVALID_TXN_STATE
    assert result.topic_results[0].results_by_partition[0].partition_error_code == expected


@pytest.mark.parametrize("version", BATCHED_VERSIONS)
def test_no_transactions_are_no_results(client: WireClient, version: int) -> None:
    answer = client.call(AddPartitionsToTxnRequest(), version, AddPartitionsToTxnResponse)
    assert answer.results_by_transaction == []
