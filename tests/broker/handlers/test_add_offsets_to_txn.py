"""barnabas.broker.handlers.add_offsets_to_txn: a group's offsets in a transaction."""

import pytest

from barnabas.protocol.codes import ErrorCode
from tests.broker._calls import image_of
from tests.broker._groups import find_coordinator, new_group
from tests.broker._transactions import TransactionalProducer, describe
from tests.broker._wire import WireClient
from tests.broker.conftest import StartBroker

VERSIONS = range(5)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_group_s_partition_becomes_part_of_the_transaction(client: WireClient, version: int) -> None:
    find_coordinator(client)
    producer = TransactionalProducer(client)
    assert producer.add_offsets(new_group(), version) == 0
    (topic,) = describe(client, producer.transactional_id).topics
    assert (topic.topic, len(topic.partitions)) == ("__consumer_offsets", 1)
    producer.abort()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fenced_producer_is_told_in_words_it_knows(client: WireClient, version: int) -> None:
    find_coordinator(client)
    producer = TransactionalProducer(client)
    TransactionalProducer(client, producer.transactional_id)
    expected = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.add_offsets(new_group(), version) == expected


def test_it_makes_the_offsets_topic_for_who_asks_before_anybody_else(start_broker: StartBroker) -> None:
    broker = start_broker()
    with WireClient(broker.bootstrap_servers) as client:
        producer = TransactionalProducer(client)
        assert "__consumer_offsets" not in image_of(broker).topics
        assert producer.add_offsets("g") == 0
        assert "__consumer_offsets" in image_of(broker).topics
