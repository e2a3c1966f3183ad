"""barnabas.broker.handlers.add_offsets_to_txn: a group's offsets in a transaction."""

import pytest

from barnabas.protocol.codes import ErrorCode
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


def test_it_waits_for_the_offsets_topic(start_broker: StartBroker) -> None:
    with WireClient(start_broker().bootstrap_servers) as client:
        producer = TransactionalProducer(client)
        assert producer.add_offsets("g") == ErrorCode.COORDINATOR_NOT_AVAILABLE
        find_coordinator(client)
        assert producer.add_offsets("g") == 0
