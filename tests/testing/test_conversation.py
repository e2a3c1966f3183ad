"""Tests of the conversation that a proxy follows: every answer is found, however the bytes are cut."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from barnabas.testing.conversation import Conversation

BODIES = st.lists(st.tuples(st.integers(0, 80), st.binary(max_size=20)), min_size=1, max_size=8)


def request(api_key: int, correlation_id: int, body: bytes) -> bytes:
    return struct.pack(">ihhi", 8 + len(body), api_key, 3, correlation_id) + body


def answer(correlation_id: int, body: bytes) -> bytes:
    return struct.pack(">ii", 4 + len(body), correlation_id) + body


def pieces(data: bytes, step: int) -> list[bytes]:
    return [data[start : start + step] for start in range(0, len(data), step)]


@given(BODIES, st.integers(1, 30))
def test_answers_are_found_however_the_bytes_are_cut(frames: list[tuple[int, bytes]], step: int) -> None:
    conversation = Conversation()
    sent = b"".join(request(key, number, body) for number, (key, body) in enumerate(frames))
    for piece in pieces(sent, step):
        conversation.asked(piece)
    came = b"".join(answer(number, body) for number, (_, body) in enumerate(frames))
    found = [key for piece in pieces(came, step) for _, key in conversation.answers(piece)]
    assert found == [key for key, _ in frames]


def test_the_place_is_that_of_the_first_byte_or_of_the_piece() -> None:
    conversation = Conversation()
    conversation.asked(request(26, 1, b"") + request(0, 2, b"") + request(3, 3, b"xyz"))
    both = answer(1, b"abc") + answer(2, b"")
    assert list(conversation.answers(both)) == [(0, 26), (11, 0)]
    late = answer(3, b"")
    assert list(conversation.answers(late[:6])) == []
    assert list(conversation.answers(late[6:])) == [(0, 3)]


def test_what_is_no_conversation_is_let_be() -> None:
    conversation = Conversation()
    conversation.asked(b"\xff" * 100)
    assert list(conversation.answers(b"\x00" * 100)) == []
    assert list(conversation.answers(b"x")) == []
