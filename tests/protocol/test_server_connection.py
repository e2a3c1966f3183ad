"""A broker's end of a connection."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.buffers import Buffer, join_buffers
from barnabas.protocol.framing import encode_raw, encode_request
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.server_connection import RAW_KEY, Request, ServerConnection


def heartbeat(correlation_id: int, group: str = "g") -> bytes:
    return join_buffers(encode_request(12, 3, correlation_id, "me", HeartbeatRequest(group_id=group)))


def opened(count: int) -> tuple[ServerConnection, list[Request]]:
    connection = ServerConnection(frame_bytes_max=1000)
    return connection, connection.receive(b"".join(heartbeat(number) for number in range(count)))


def test_a_request_has_what_its_header_says_and_its_body() -> None:
    _, (request,) = opened(1)
    assert request[1:5] == (12, 3, 0, "me")
    assert HeartbeatRequest.decode(3, request.body) == HeartbeatRequest(group_id="g")
    assert not request.body.readonly


def test_requests_may_be_read_into_the_connections_own_buffer() -> None:
    connection, data = ServerConnection(frame_bytes_max=1000), heartbeat(5)
    connection.get_buffer()[: len(data)] = data
    (request,) = connection.buffer_updated(len(data))
    assert request.correlation_id == 5


def test_a_started_request_is_counted_in_bytes() -> None:
    connection, _ = opened(1)
    connection.receive(heartbeat(1)[:7])
    assert connection.unfinished_bytes == 7


class TestResponsesLeaveInRequestOrder:
    def test_an_early_second_answer_waits_for_the_first(self) -> None:
        connection, (first, second) = opened(2)
        connection.finish(second.ticket, [b"TWO"])
        assert connection.data_to_send() == []
        connection.finish(first.ticket, [b"ONE"])
        assert connection.data_to_send() == [b"ONE", b"TWO"]
        assert connection.data_to_send() == []

    def test_it_says_whether_an_answer_waits(self) -> None:
        connection, (first, second, third) = opened(3)
        seen = []
        for request in (third, first, second):
            connection.finish(request.ticket, [b"X"])
            seen.append(connection.has_early_answers)
        assert seen == [True, True, False]

    def test_a_request_without_an_answer_holds_nobody_up(self) -> None:
        connection, (first, second) = opened(2)
        connection.finish(first.ticket, None)
        assert connection.data_to_send() == []
        connection.finish(second.ticket, [b"TWO"])
        assert connection.data_to_send() == [b"TWO"]

    def test_unanswered_counts_what_is_owed(self) -> None:
        connection, (first, second) = opened(2)
        connection.finish(second.ticket, [b"TWO"])
        assert connection.unanswered == 2
        connection.finish(first.ticket, [b"ONE"])
        assert connection.unanswered == 0

    @given(st.permutations(range(8)), st.sets(st.integers(0, 7)))
    def test_whatever_order_handlers_finish_in(self, order: list[int], silent: set[int]) -> None:
        connection, requests = opened(8)
        sent: list[Buffer] = []
        for number in order:
            answer: list[Buffer] | None = None if number in silent else [b"%d" % number]
            connection.finish(requests[number].ticket, answer)
            sent += connection.data_to_send()
        assert sent == [b"%d" % number for number in range(8) if number not in silent]

    def test_a_request_is_answered_once(self) -> None:
        connection, (first, _) = opened(2)
        connection.finish(first.ticket, [b"ONE"])
        with pytest.raises(AssertionError, match="request 0 is not open"):
            connection.finish(first.ticket, [b"ONE"])


class TestFaults:
    def test_an_unknown_api_is_a_fault_and_ends_parsing(self) -> None:
        connection = ServerConnection(frame_bytes_max=1000)
        bad = b"\0\0\0\x0a\x03\xe7\0\0\0\0\0\1\0\0"
        requests = connection.receive(heartbeat(1) + bad + heartbeat(2))
        assert [request.correlation_id for request in requests] == [1]
        assert connection.fault == "no API has key 999"
        assert connection.receive(heartbeat(3)) == []

    def test_a_frame_above_the_limit_is_a_fault(self) -> None:
        connection = ServerConnection(frame_bytes_max=1000)
        connection.receive(b"\x7f\xff\xff\xff")
        assert connection.fault == "frame size 2147483647 is outside 0 to 1000"

    def test_the_limit_may_be_raised_after_a_login(self) -> None:
        connection = ServerConnection(frame_bytes_max=10)
        connection.frame_bytes_max = 1000
        assert connection.frame_bytes_max == 1000
        assert len(connection.receive(heartbeat(1))) == 1

    def test_answers_owed_can_still_be_sent(self) -> None:
        connection = ServerConnection(frame_bytes_max=1000)
        (request,) = connection.receive(heartbeat(1) + b"\xff\xff\xff\xff")
        assert connection.fault is not None
        connection.finish(request.ticket, [b"ONE"])
        assert connection.data_to_send() == [b"ONE"]


class TestBareTokens:
    def test_frames_are_tokens_while_raw_is_set(self) -> None:
        connection = ServerConnection(frame_bytes_max=1000)
        connection.raw = True
        (token,) = connection.receive(join_buffers(encode_raw(b"\0user\0secret")))
        assert token.api_key == RAW_KEY
        assert bytes(token.body) == b"\0user\0secret"
        connection.finish(token.ticket, encode_raw(b""))
        assert connection.data_to_send() == [b"\0\0\0\0"]
        connection.raw = False
        assert connection.receive(heartbeat(1))[0].api_key == 12

    def test_an_empty_token_is_a_frame_too(self) -> None:
        connection = ServerConnection(frame_bytes_max=1000)
        connection.raw = True
        (token,) = connection.receive(b"\0\0\0\0")
        assert bytes(token.body) == b""
