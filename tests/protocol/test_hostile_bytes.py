"""Random, cut and mutated bytes give a ProtocolError and nothing else, and little memory."""

import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.api import API, ApiKey
from barnabas.protocol.errors import DecodeError, ProtocolError
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.schema import Message
from barnabas.protocol.server_connection import ServerConnection
from barnabas.protocol.storage.stored import Stored

from .declared import stored_classes
from .recorded import BROKERS, exchanges

_NEWEST = [cls for key in ApiKey for cls in (API[key].request, API[key].response)]


def decodes_or_refuses(cls: type[Message], version: int, data: bytes | bytearray) -> None:
    with suppress(ProtocolError):
        cls.decode(version, memoryview(data))


@pytest.mark.parametrize("cls", _NEWEST, ids=lambda cls: str(cls.__name__))
def test_random_bytes_are_decoded_or_refused(cls: type[Message]) -> None:
    @settings(max_examples=10)
    @given(st.binary(max_size=200), st.integers(cls.VERSIONS.low, cls.VERSIONS.high))
    def check(data: bytes, version: int) -> None:
        decodes_or_refuses(cls, version, data)

    check()


@pytest.mark.parametrize("cls", stored_classes(), ids=lambda cls: str(cls.__name__))
def test_random_bytes_in_an_internal_topic_are_decoded_or_refused(cls: type[Stored]) -> None:
    versions = st.integers(cls.VERSIONS.low, cls.VERSIONS.high).map(
        lambda version: version.to_bytes(2, "big")
    )

    @settings(max_examples=20)
    @given(versions | st.binary(max_size=3), st.binary(max_size=100))
    def check(version: bytes, data: bytes) -> None:
        with suppress(ProtocolError):
            cls.decode_versioned(version + data)

    check()


def bodies() -> list[tuple[type[Message], int, bytes]]:
    """One request and one response body of each recorded (API, version)."""
    found: dict[Any, bytes] = {}
    for broker in BROKERS:
        for exchange in exchanges(broker):
            api = API[exchange.api_key]
            flexible = api.flexible.has(exchange.api_version)
            name_bytes = max(0, int.from_bytes(exchange.request[8:10], "big", signed=True))
            start = 10 + name_bytes + flexible
            found[api.request, exchange.api_version] = exchange.request[start:]
            start = 5 if flexible and api.key != ApiKey.API_VERSIONS else 4
            found[api.response, exchange.api_version] = exchange.response[start:]
    return [(cls, version, body) for (cls, version), body in found.items()]


def test_a_message_cut_anywhere_is_decoded_or_refused() -> None:
    for cls, version, body in bodies():
        for stop in range(0, len(body), 1 if len(body) < 200 else 17):
            decodes_or_refuses(cls, version, body[:stop])


@settings(max_examples=40)
@given(st.data())
def test_mutated_messages_are_decoded_or_refused(data: st.DataObject) -> None:
    cls, version, body = data.draw(st.sampled_from(_BODIES), label="message")
    mutated = bytearray(body)
    for position in data.draw(st.lists(st.integers(0, max(0, len(body) - 1)), min_size=1, max_size=6)):
        if mutated:
            mutated[position] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, position & 0xFF]))
    decodes_or_refuses(cls, version, mutated)


_BODIES = bodies()


@pytest.mark.slow
def test_every_byte_of_every_recorded_message_may_be_anything() -> None:
    for cls, version, body in _BODIES:
        decoder = cls.decoder(version)
        mutated = bytearray(body)
        for position in range(min(len(body), 150)):
            for value in (0x00, 0x7F, 0x80, 0xFF):
                mutated[position] = value
                with suppress(ProtocolError):
                    decoder(mutated)
            mutated[position] = body[position]


class TestLengthsThatLie:
    """A count is believed only as far as the bytes that are there could hold it."""

    @pytest.mark.parametrize(
        ("cls", "version", "prefix"),
        [
            (MetadataRequest, 1, b""),
            (MetadataResponse, 0, b""),
            (OffsetCommitRequest, 0, b"\0\0"),
            (CreateTopicsRequest, 0, b""),
            (FetchRequest, 0, bytes(12)),
        ],
    )
    def test_two_billion_elements_cost_nothing(self, cls: type[Message], version: int, prefix: bytes) -> None:
        data = prefix + b"\x7f\xff\xff\xff" + bytes(100)
        cls.decoder(version)
        tracemalloc.start()
        with pytest.raises(DecodeError, match="claims 2147483647"):
            cls.decode(version, data)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 20_000

    def test_a_compact_count_of_four_billion_costs_nothing(self) -> None:
        data = bytes(25) + b"\xff\xff\xff\xff\x0f" + bytes(100)
        with pytest.raises(DecodeError, match=r"FetchRequest v12 topics claims 4294967294 at byte 30"):
            FetchRequest.decode(12, data)

    def test_a_varint_without_end_is_refused(self) -> None:
        with pytest.raises(DecodeError, match="longer than 5 bytes"):
            FetchRequest.decode(12, bytes(25) + b"\xff" * 20)

    def test_the_densest_frame_stays_within_a_bounded_factor(self) -> None:
        # An array of the smallest structs there are: what Python adds per element is bounded too.
        count = 3_000
        data = bytes(25) + b"\xb9\x17" + b"\x01\x01\x00" * count + b"\x01\x01\x00"
        FetchRequest.decoder(12)
        tracemalloc.start()
        message = FetchRequest.decode(12, data)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(message.topics) == count
        assert peak < 60 * len(data)

    def test_text_that_is_not_utf_8_is_refused(self) -> None:
        with pytest.raises(DecodeError, match="utf-8"):
            MetadataRequest.decode(0, b"\0\0\0\1\0\2\xff\xfe")

    def test_null_where_none_is_allowed_is_refused(self) -> None:
        with pytest.raises(DecodeError, match="MetadataRequest v0 topics is null at byte 4"):
            MetadataRequest.decode(0, b"\xff\xff\xff\xff")


@given(st.binary(max_size=64))
def test_a_connection_fed_with_rubbish_faults_and_never_raises(data: bytes) -> None:
    server = ServerConnection(frame_bytes_max=1000)
    for request in server.receive(data):
        assert request.api_key in API or server.fault is not None
