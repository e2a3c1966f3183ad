"""barnabas.broker.handlers.init_producer_id and find_coordinator for transactional ids (WIRE 2.12, 2.14)."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.broker._transactions import TransactionalProducer, find_transaction_coordinator, init, new_id
from tests.broker._wire import WireClient
from tests.broker.conftest import StartBroker

VERSIONS = range(6)
TRANSACTION = 1


def test_the_first_look_up_makes_the_topic(start_broker: StartBroker) -> None:
    fresh = start_broker({"transaction.state.log.num.partitions": "3"})
    with WireClient(fresh.bootstrap_servers) as client:
        refused = init(client, "x")
        assert refused.error_code == ErrorCode.NOT_COORDINATOR
        find_transaction_coordinator(client)
        named = MetadataRequest(topics=[MetadataRequestTopic(name="__transaction_state")])
        (topic,) = client.call(named, 9, MetadataResponse).topics
        assert (topic.is_internal, len(topic.partitions)) == (True, 3)
        assert init(client, "x").error_code == 0


@pytest.mark.parametrize("version", range(4, 7))
def test_several_ids_are_found_at_once(client: WireClient, version: int) -> None:
    request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=["a", "b"])
    found = client.call(request, version, FindCoordinatorResponse).coordinators
    assert [(each.key, each.error_code, each.node_id) for each in found] == [("a", 0, 1), ("b", 0, 1)]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_epoch_rises_with_every_start(client: WireClient, version: int) -> None:
    find_transaction_coordinator(client)
    name = new_id()
    answers = [init(client, name, version=version) for _ in range(3)]
    assert [each.error_code for each in answers] == [0, 0, 0]
    assert [each.producer_epoch for each in answers] == [0, 1, 2]
    assert len({each.producer_id for each in answers}) == 1


@pytest.mark.parametrize("timeout_ms", [0, -5, 900_001])
def test_a_timeout_out_of_bounds_is_refused(client: WireClient, timeout_ms: int) -> None:
    find_transaction_coordinator(client)
    answer = init(client, new_id(), timeout_ms=timeout_ms)
    assert (answer.error_code, answer.producer_id) == (ErrorCode.INVALID_TRANSACTION_TIMEOUT, -1)


@pytest.mark.parametrize("version", VERSIONS[3:])
def test_a_fenced_producer_is_told_in_words_it_knows(client: WireClient, version: int) -> None:
    find_transaction_coordinator(client)
    name = new_id()
    first = init(client, name)
    init(client, name)
    answer = init(client, name, version=version, producer_id=first.producer_id, epoch=first.producer_epoch)
    expected = ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert answer.error_code == expected


def test_a_producer_goes_on_with_what_it_has(client: WireClient) -> None:
    find_transaction_coordinator(client)
    name = new_id()
    first = init(client, name)
    next_one = init(client, name, producer_id=first.producer_id, epoch=0)
    assert (next_one.error_code, next_one.producer_id, next_one.producer_epoch) == (0, first.producer_id, 1)


def test_an_open_transaction_is_aborted_first(client: WireClient, topic: str) -> None:
    producer = TransactionalProducer(client)
    producer.send(topic, b"x")
    assert init(client, producer.transactional_id).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    again = init(client, producer.transactional_id)
    assert (again.error_code, again.producer_epoch) == (0, producer.epoch + 2)
    assert producer.end(commit=True) == ErrorCode.PRODUCER_FENCED
