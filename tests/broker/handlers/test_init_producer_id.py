"""barnabas.broker.handlers.init_producer_id: a number for every idempotent producer."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.broker._wire import WireClient

VERSIONS = range(6)


def init(client: WireClient, version: int, request: InitProducerIdRequest) -> tuple[int, int, int]:
    response = client.call(request, version, InitProducerIdResponse)
    return response.error_code, response.producer_id, response.producer_epoch


@pytest.mark.parametrize("version", VERSIONS)
def test_everybody_gets_another_id_in_epoch_0(client: WireClient, version: int) -> None:
    answers = [init(client, version, InitProducerIdRequest(transactional_id=None)) for _ in range(3)]
    assert {(error, epoch) for error, _, epoch in answers} == {(0, 0)}
    ids = [producer_id for _, producer_id, _ in answers]
    assert len(set(ids)) == 3
    assert min(ids) >= 0


def test_pipelined_requests_get_different_ids_too(client: WireClient) -> None:
    for _ in range(20):
        client.send(InitProducerIdRequest(transactional_id=None), 4)
    ids = {client.receive(InitProducerIdResponse).producer_id for _ in range(20)}
    assert len(ids) == 20


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_transactional_id_is_refused(client: WireClient, version: int) -> None:
    answer = init(client, version, InitProducerIdRequest(transactional_id=""))
    assert answer == (ErrorCode.INVALID_REQUEST, -1, -1)


@pytest.mark.parametrize("version", VERSIONS[3:])
def test_an_id_without_its_epoch_and_the_other_way_round_are_refused(
    client: WireClient, version: int
) -> None:
    for half in (
        InitProducerIdRequest(transactional_id=None, producer_id=5, producer_epoch=-1),
        InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=5),
    ):
        assert init(client, version, half)[0] == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", VERSIONS[3:])
def test_a_producer_that_lost_its_way_gets_a_new_id(client: WireClient, version: int) -> None:
    again = InitProducerIdRequest(transactional_id=None, producer_id=5, producer_epoch=3)
    error, producer_id, epoch = init(client, version, again)
    assert (error, epoch) == (0, 0)
    assert producer_id != 5
