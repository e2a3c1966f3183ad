"""What real clients and brokers said to each other decodes and encodes back to the same bytes."""

import pytest

from barnabas.base.buffers import join_buffers
from barnabas.protocol.api import API
from barnabas.protocol.connection import (
    ClientConnection,
    ServerConnection,
    encode_request,
    encode_response,
)

from .recorded import BROKERS, exchanges


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


@pytest.mark.parametrize("broker", BROKERS)
def test_recorded_requests_come_back_byte_for_byte(broker: str) -> None:
    server = ServerConnection(frame_bytes_max=2**20)
    for exchange in exchanges(broker):
        (request,) = server.receive(framed(exchange.request))
        assert (request.api_key, request.api_version) == (exchange.api_key, exchange.api_version)
        message = API[request.api_key].request.decode(request.api_version, request.body)
        again = encode_request(
            request.api_key, request.api_version, request.correlation_id, request.client_id, message
        )
        assert join_buffers(again) == framed(exchange.request), f"{exchange.client}: {message}"


@pytest.mark.parametrize("broker", BROKERS)
def test_recorded_responses_come_back_byte_for_byte(broker: str) -> None:
    for exchange in exchanges(broker):
        if not exchange.response:
            continue
        key, version = exchange.api_key, exchange.api_version
        correlation_id = int.from_bytes(exchange.response[:4], "big", signed=True)
        client = ClientConnection(client_id=None, frame_bytes_max=2**20, first_correlation_id=correlation_id)
        client.send(API[key].request(), version)
        (response,) = client.receive(framed(exchange.response))
        assert response.message is not None
        again = encode_response(key, response.api_version, correlation_id, response.message)
        assert join_buffers(again) == framed(exchange.response), f"{exchange.client}: {response.message}"


def test_every_client_and_most_apis_are_in_the_recording() -> None:
    found = [exchange for broker in BROKERS for exchange in exchanges(broker)]
    assert len(found) == 515
    assert len({(exchange.api_key, exchange.api_version) for exchange in found}) > 90
