"""A client's end of a connection."""

import pytest

from barnabas.base.buffers import join_buffers
from barnabas.protocol.client_connection import ClientConnection
from barnabas.protocol.framing import encode_raw, encode_response
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.storage.control import EndTxnMarker


def connected() -> ClientConnection:
    return ClientConnection(client_id="me", frame_bytes_max=2**20)


def heartbeat_answer(correlation_id: int, error_code: int = 0) -> bytes:
    return join_buffers(encode_response(12, 4, correlation_id, HeartbeatResponse(error_code=error_code)))


def test_requests_are_numbered_and_their_answers_matched() -> None:
    client = connected()
    assert [client.send(HeartbeatRequest(), 4) for _ in range(3)] == [0, 1, 2]
    assert client.in_flight == 3
    assert len(client.data_to_send()) == 3
    assert client.data_to_send() == []
    first, second = client.receive(heartbeat_answer(0, 27) + heartbeat_answer(1))
    assert (first.correlation_id, first.api_key, first.api_version) == (0, 12, 4)
    assert first.message == HeartbeatResponse(error_code=27)
    assert second.message == HeartbeatResponse()
    assert client.in_flight == 1


def test_answers_may_be_read_into_the_connections_own_buffer() -> None:
    client = connected()
    client.send(HeartbeatRequest(), 4)
    data = heartbeat_answer(0)
    client.get_buffer()[: len(data)] = data
    (response,) = client.buffer_updated(len(data))
    assert response.message == HeartbeatResponse()


def test_a_started_answer_is_counted_in_bytes() -> None:
    client = connected()
    client.send(HeartbeatRequest(), 4)
    client.receive(heartbeat_answer(0)[:7])
    assert client.unfinished_bytes == 7


def test_a_request_without_an_answer_is_not_waited_for() -> None:
    client = connected()
    client.send(ProduceRequest(acks=0), 9, answered=False)
    client.send(HeartbeatRequest(), 4)
    assert client.in_flight == 1
    assert client.receive(heartbeat_answer(1))[0].correlation_id == 1


def test_records_in_an_answer_are_views_of_the_input() -> None:
    client = connected()
    client.send(FetchRequest(), 12)
    records = bytes(100_000)
    topics = [FetchableTopicResponse(topic="t", partitions=[PartitionData(records=records)])]
    (response,) = client.receive(join_buffers(encode_response(1, 12, 0, FetchResponse(responses=topics))))
    assert isinstance(response.message, FetchResponse)
    found = response.message.responses[0].partitions[0].records
    assert found is not None
    assert found.obj is response.body.obj


def test_correlation_ids_start_again_after_the_last() -> None:
    client = ClientConnection(client_id=None, frame_bytes_max=100, first_correlation_id=2**31 - 1)
    assert [client.send(HeartbeatRequest(), 0) for _ in range(2)] == [2**31 - 1, 0]


class TestFaults:
    def test_an_answer_out_of_order_is_a_fault(self) -> None:
        client = connected()
        client.send(HeartbeatRequest(), 4)
        assert client.receive(heartbeat_answer(7)) == []
        assert client.fault == "response 7 came where 0 was due"
        assert client.receive(heartbeat_answer(0)) == []

    def test_an_answer_to_no_request_is_a_fault(self) -> None:
        client = connected()
        client.receive(heartbeat_answer(0))
        assert client.fault == "a response of 12 bytes to no request"

    @pytest.mark.parametrize("frame", [b"\0\0\0\2ab", b"\0\0\0\4\0\0\0\0", b"\0\0\0\5\0\0\0\0\0"])
    def test_an_answer_that_is_cut_is_a_fault(self, frame: bytes) -> None:
        client = connected()
        client.send(HeartbeatRequest(), 4)
        assert client.receive(frame) == []
        assert client.fault is not None

    def test_a_frame_above_the_limit_is_a_fault(self) -> None:
        client = connected()
        client.send(HeartbeatRequest(), 4)
        client.receive(b"\x7f\xff\xff\xff")
        assert client.fault == "frame size 2147483647 is outside 0 to 1048576"


def test_a_broker_that_does_not_know_our_api_versions_answers_in_version_0() -> None:
    client = connected()
    client.send(ApiVersionsRequest(), 4)
    known = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, max_version=3)])
    (response,) = client.receive(join_buffers(encode_response(18, 0, 0, known)))
    assert response.api_version == 0
    assert response.message == known


def test_bare_tokens_go_both_ways() -> None:
    client = connected()
    client.send_raw(b"token")
    assert client.data_to_send() == [b"\0\0\0\5token"]
    (answer,) = client.receive(join_buffers(encode_raw(b"challenge")))
    assert answer.message is None
    assert bytes(answer.body) == b"challenge"


def test_only_requests_can_be_sent() -> None:
    with pytest.raises(AssertionError, match="EndTxnMarker is not a request"):
        connected().send(EndTxnMarker(), 0)
