"""Transactions as an administrator sees them."""

import time
from collections.abc import Callable, Iterator

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.errors import KafkaError, UnknownTopic
from barnabas.client.producer import Producer
from barnabas.protocol.codes import ErrorCode
from tests.client._consumers import consumer_of, read
from tests.client._kit import settings_for


@pytest.fixture
def transactional_id(name: Callable[[str], str]) -> str:
    return name("txn")


@pytest.fixture
def opened(bootstrap: str, topic: str, transactional_id: str, admin: Admin) -> Iterator[Producer]:
    """A producer with a transaction open in partition 0 of the topic."""
    admin.create_topic(topic, 2)
    with Producer(settings_for(bootstrap), transactional_id=transactional_id, linger_ms=0) as producer:
        producer.begin_transaction()
        producer.send(topic, b"open", partition=0).result(10)
        yield producer


def wait_until_ended(admin: Admin, transactional_id: str) -> None:
    """A commit is answered when it is decided; the markers may follow."""
    deadline = time.monotonic() + 10
    while admin.describe_transactions([transactional_id])[transactional_id].state != "CompleteCommit":
        assert time.monotonic() < deadline, "the markers did not come"


def test_ids_are_listed_with_their_state(opened: Producer, admin: Admin, transactional_id: str) -> None:
    (found,) = [each for each in admin.list_transactions() if each.transactional_id == transactional_id]
    assert found.state == "Ongoing"
    by_state = admin.list_transactions(states=["CompleteCommit"])
    assert transactional_id not in [each.transactional_id for each in by_state]
    by_producer = admin.list_transactions(producer_ids=[found.producer_id])
    assert by_producer == [found]


def test_an_id_is_described_with_its_partitions(
    opened: Producer, admin: Admin, topic: str, transactional_id: str
) -> None:
    found = admin.describe_transactions([transactional_id])[transactional_id]
    assert (found.state, found.timeout_ms) == ("Ongoing", 60_000)
    assert found.partitions == (TopicPartition(topic, 0),)
    assert found.start_ms > 0
    opened.commit_transaction()
    wait_until_ended(admin, transactional_id)
    ended = admin.describe_transactions([transactional_id])[transactional_id]
    assert (ended.state, ended.partitions) == ("CompleteCommit", ())


def test_an_unknown_id_is_an_error_of_its_own(admin: Admin, name: Callable[[str], str]) -> None:
    missing = name("missing")
    error = admin.describe_transactions([missing]).errors[missing]
    assert error.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_an_open_transaction_has_an_owner_and_does_not_hang(
    opened: Producer, admin: Admin, topic: str, transactional_id: str
) -> None:
    partitions = [TopicPartition(topic, index) for index in range(2)]
    (found,) = admin.open_transactions(partitions)
    assert (found.partition, found.transactional_id, found.is_hanging) == (
        partitions[0],
        transactional_id,
        False,
    )
    assert found.producer.transaction_start_offset == 0
    opened.commit_transaction()
    wait_until_ended(admin, transactional_id)
    assert admin.open_transactions(partitions) == []


def test_a_marker_ends_it_in_a_partition(opened: Producer, admin: Admin, topic: str, bootstrap: str) -> None:
    tp = TopicPartition(topic, 0)
    (found,) = admin.open_transactions([tp])
    admin.abort_transaction(tp, found.producer)
    assert admin.open_transactions([tp]) == []
    with Producer(settings_for(bootstrap)) as other:
        other.send(topic, b"behind", partition=0).result(10)
    with consumer_of(bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([tp])
        assert [record.value for record in read(consumer, 1)] == [b"behind"]


def test_a_partition_that_is_not_there(opened: Producer, admin: Admin, topic: str) -> None:
    (found,) = admin.open_transactions([TopicPartition(topic, 0)])
    with pytest.raises(KafkaError) as caught:
        admin.abort_transaction(TopicPartition(topic, 9), found.producer)
    assert isinstance(caught.value, UnknownTopic)
