"""barnabas.broker.txn_verification: which transactional batches a partition takes (WIRE 2.14, KIP-890)."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceResponse, TopicProduceData
from barnabas.testing import Broker
from tests.broker._calls import batch, produce, produce_request, topic_id_of
from tests.broker._transactions import TransactionalProducer, committed_values, describe, init
from tests.broker._wire import WireClient
from tests.broker.conftest import MakeTopic, StartBroker

EXPLICIT_VERSIONS = range(3, 12)


def refused_with(version: int) -> ErrorCode:
    return ErrorCode.TRANSACTION_ABORTABLE if version >= 11 else ErrorCode.INVALID_TXN_STATE


class TestBeforeVersion12:
    @pytest.mark.parametrize("version", EXPLICIT_VERSIONS)
    def test_a_partition_that_was_not_added_takes_nothing(
        self, client: WireClient, make_topic: MakeTopic, version: int
    ) -> None:
        topic, producer = make_topic(2), TransactionalProducer(client)
        assert producer.produce(topic, b"x", version=version) == refused_with(version)
        producer.send(topic, b"x", partition=0)
        assert producer.produce(topic, b"y", partition=1, version=version) == refused_with(version)
        producer.commit()
        assert committed_values(client, topic, 0) == [b"x"]
        assert committed_values(client, topic, 1) == []

    @pytest.mark.parametrize("version", EXPLICIT_VERSIONS)
    def test_a_batch_that_comes_after_the_end_is_refused(
        self, client: WireClient, topic: str, version: int
    ) -> None:
        producer = TransactionalProducer(client)
        producer.send(topic, b"x")
        producer.commit()
        assert producer.produce(topic, b"late", version=version) == refused_with(version)

    @pytest.mark.parametrize("version", EXPLICIT_VERSIONS)
    def test_a_fenced_producer_is_refused_also_where_it_never_wrote(
        self, client: WireClient, topic: str, version: int
    ) -> None:
        producer = TransactionalProducer(client)
        assert producer.add(topic) == [0]
        init(client, producer.transactional_id)
        assert producer.produce(topic, b"x", version=version) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_transactional_batch_without_a_transactional_id_is_refused(client: WireClient, topic: str) -> None:
    records = batch(b"x", producer_id=4, epoch=0, sequence=0, transactional=True)
    assert produce(client, topic, records).error_code == ErrorCode.INVALID_TXN_STATE


def test_the_retry_of_a_batch_in_an_open_transaction_is_known(client: WireClient, topic: str) -> None:
    producer = TransactionalProducer(client)
    producer.send(topic, b"x")
    producer.begin_epoch(producer.epoch)  # forgets its sequences, and so sends the same again
    assert producer.produce(topic, b"x") == 0
    producer.commit()
    assert committed_values(client, topic) == [b"x"]


def test_the_check_can_be_switched_off(start_broker: StartBroker) -> None:
    broker = start_broker({"transaction.partition.verification.enable": "false"})
    broker.create_topic("t")
    with WireClient(broker.bootstrap_servers) as client:
        assert TransactionalProducer(client).produce("t", b"x") == 0


class TestFromVersion12:
    @pytest.mark.parametrize("version", [12])
    def test_the_first_batch_makes_its_partition_part_of_the_transaction(
        self, client: WireClient, make_topic: MakeTopic, version: int
    ) -> None:
        topic, producer = make_topic(2), TransactionalProducer(client)
        for partition in (0, 1):
            for value in (b"x", b"y"):
                assert producer.produce(topic, value, partition=partition, version=version) == 0
        (named,) = describe(client, producer.transactional_id).topics
        assert named.partitions == [0, 1]
        producer.commit()
        assert [committed_values(client, topic, partition) for partition in (0, 1)] == [[b"x", b"y"]] * 2

    @pytest.mark.parametrize("version", [12, 13])
    def test_one_request_joins_all_its_partitions_at_once(
        self, broker: Broker, client: WireClient, make_topic: MakeTopic, version: int
    ) -> None:
        topic, producer = make_topic(3), TransactionalProducer(client)
        records = batch(
            b"x", producer_id=producer.producer_id, epoch=producer.epoch, sequence=0, transactional=True
        )
        request = produce_request(topic, records)
        request.transactional_id = producer.transactional_id
        request.topic_data = [
            TopicProduceData(
                name=topic if version < 13 else "",
                topic_id=topic_id_of(broker, topic),
                partition_data=[PartitionProduceData(index=index, records=records) for index in (0, 1, 2, 9)],
            )
        ]
        (answer,) = client.call(request, version, ProduceResponse).responses
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert [part.error_code for part in answer.partition_responses] == [0, 0, 0, unknown]
        (named,) = describe(client, producer.transactional_id).topics
        assert named.partitions == [0, 1, 2]

    def test_a_first_batch_that_is_not_the_first_of_its_epoch_is_refused(
        self, client: WireClient, topic: str
    ) -> None:
        producer = TransactionalProducer(client)
        records = batch(
            b"x", producer_id=producer.producer_id, epoch=producer.epoch, sequence=3, transactional=True
        )
        request = produce_request(topic, records)
        request.transactional_id = producer.transactional_id
        (answer,) = client.call(request, 12, ProduceResponse).responses
        assert answer.partition_responses[0].error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def test_a_fenced_producer_joins_nothing(self, client: WireClient, topic: str) -> None:
        producer = TransactionalProducer(client)
        init(client, producer.transactional_id)
        assert producer.produce(topic, b"x", version=12) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert describe(client, producer.transactional_id).transaction_state == "Empty"

    def test_bytes_that_are_no_batch_join_nothing(self, client: WireClient, topic: str) -> None:
        producer = TransactionalProducer(client)
        request = produce_request(topic, b"rubbish")
        request.transactional_id = producer.transactional_id
        (answer,) = client.call(request, 12, ProduceResponse).responses
        assert answer.partition_responses[0].error_code == ErrorCode.INVALID_RECORD
        assert describe(client, producer.transactional_id).transaction_state == "Empty"
