"""barnabas.broker.handlers.write_txn_markers: transactions ended from outside."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.broker._transactions import TransactionalProducer, committed_values
from tests.broker._wire import WireClient
from tests.broker.conftest import MakeTopic

VERSIONS = range(3)


def marker(
    producer: TransactionalProducer, topic: str, *partitions: int, commit: bool = False, epoch: int = 1_000
) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=commit,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=list(partitions))],
        coordinator_epoch=epoch,
    )


def write(client: WireClient, version: int, *markers: WritableTxnMarker) -> list[list[int]]:
    answer = client.call(WriteTxnMarkersRequest(markers=list(markers)), version, WriteTxnMarkersResponse)
    assert [each.producer_id for each in answer.markers] == [each.producer_id for each in markers]
    return [
        [part.error_code for topic in each.topics for part in topic.partitions] for each in answer.markers
    ]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_ends_where_it_is_told(
    client: WireClient, make_topic: MakeTopic, version: int, commit: bool
) -> None:
    topic, producer = make_topic(2), TransactionalProducer(client)
    producer.send(topic, b"a", partition=0)
    producer.send(topic, b"b", partition=1)
    assert write(client, version, marker(producer, topic, 0, commit=commit)) == [[0]]
    assert committed_values(client, topic, 0) == ([b"a"] if commit else [])
    assert committed_values(client, topic, 1) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_every_partition_gets_its_own_answer(client: WireClient, topic: str, version: int) -> None:
    one, two = TransactionalProducer(client), TransactionalProducer(client)
    one.send(topic, b"a")
    two.send(topic, b"b")
    answers = write(client, version, marker(one, topic, 0, 7), marker(two, "no-such-topic", 0))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answers == [[0, unknown], [unknown]]


def test_a_coordinator_that_was_replaced_is_fenced(client: WireClient, topic: str) -> None:
    producer = TransactionalProducer(client)
    producer.send(topic, b"a")
    assert write(client, 1, marker(producer, topic, 0, epoch=10)) == [[0]]
    fenced = [[ErrorCode.TRANSACTION_COORDINATOR_FENCED]]
    assert write(client, 1, marker(producer, topic, 0, epoch=9)) == fenced


def test_an_older_epoch_of_the_producer_is_refused(client: WireClient, topic: str) -> None:
    producer = TransactionalProducer(client)
    heir = TransactionalProducer(client, producer.transactional_id)
    heir.send(topic, b"a")
    assert write(client, 1, marker(producer, topic, 0)) == [[ErrorCode.INVALID_PRODUCER_EPOCH]]


@pytest.mark.parametrize("version", VERSIONS)
def test_no_markers_are_no_results(client: WireClient, version: int) -> None:
    assert write(client, version) == []
