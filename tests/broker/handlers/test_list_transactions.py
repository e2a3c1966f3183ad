"""barnabas.broker.handlers.list_transactions: which transactional ids there are, and how to find one."""

import time

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from tests.broker._transactions import TransactionalProducer
from tests.broker._wire import WireClient

VERSIONS = range(3)


def names(client: WireClient, version: int, request: ListTransactionsRequest) -> set[str]:
    answer = client.call(request, version, ListTransactionsResponse)
    assert answer.error_code == 0
    return {each.transactional_id for each in answer.transaction_states}


@pytest.fixture
def idle(client: WireClient) -> TransactionalProducer:
    return TransactionalProducer(client)


@pytest.fixture
def busy(client: WireClient, topic: str) -> TransactionalProducer:
    producer = TransactionalProducer(client)
    producer.send(topic, b"x")
    return producer


@pytest.mark.parametrize("version", VERSIONS)
def test_every_id_with_its_producer_and_state(
    client: WireClient, idle: TransactionalProducer, busy: TransactionalProducer, version: int
) -> None:
    answer = client.call(ListTransactionsRequest(), version, ListTransactionsResponse)
    found = {
        each.transactional_id: (each.producer_id, each.transaction_state)
        for each in answer.transaction_states
    }
    assert found[idle.transactional_id] == (idle.producer_id, "Empty")
    assert found[busy.transactional_id] == (busy.producer_id, "Ongoing")


@pytest.mark.parametrize("version", VERSIONS)
def test_filters_by_state_and_producer(
    client: WireClient, idle: TransactionalProducer, busy: TransactionalProducer, version: int
) -> None:
    ongoing = names(client, version, ListTransactionsRequest(state_filters=["Ongoing"]))
    assert busy.transactional_id in ongoing
    assert idle.transactional_id not in ongoing
    by_id = ListTransactionsRequest(producer_id_filters=[idle.producer_id])
    assert names(client, version, by_id) == {idle.transactional_id}


@pytest.mark.parametrize("version", VERSIONS)
def test_unknown_states_are_given_back(client: WireClient, version: int) -> None:
    request = ListTransactionsRequest(state_filters=["Sleeping", "Ongoing"])
    assert client.call(request, version, ListTransactionsResponse).unknown_state_filters == ["Sleeping"]


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_filters_by_age(client: WireClient, busy: TransactionalProducer, version: int) -> None:
    hour = ListTransactionsRequest(state_filters=["Ongoing"], duration_filter=3_600_000)
    assert busy.transactional_id not in names(client, version, hour)
    deadline = time.monotonic() + 5
    young = ListTransactionsRequest(state_filters=["Ongoing"], duration_filter=0)
    while busy.transactional_id not in names(client, version, young):
        assert time.monotonic() < deadline


def test_filters_by_pattern(client: WireClient, busy: TransactionalProducer) -> None:
    name = busy.transactional_id

    def matching(pattern: str) -> set[str]:
        return names(client, 2, ListTransactionsRequest(transactional_id_pattern=pattern))

    assert name in matching("tx.*")
    assert matching(name) == {name}
    assert name not in matching(name[:-1])
    assert matching("") == names(client, 2, ListTransactionsRequest())


@pytest.mark.parametrize("pattern", ["(", "(a+)+$", r"(a)\1", "(?=a)b", "a*b*c*d*e*", "x" * 300, "(a|b){2,}"])
def test_patterns_that_are_wrong_or_could_take_for_ever_are_refused(client: WireClient, pattern: str) -> None:
    request = ListTransactionsRequest(transactional_id_pattern=pattern)
    answer = client.call(request, 2, ListTransactionsResponse)
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
