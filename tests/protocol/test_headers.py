"""Headers and their exceptions (WIRE §2.1, §2.2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.api import API, ApiKey
from barnabas.protocol.errors import DecodeError, ProtocolError, UnsupportedVersion
from barnabas.protocol.headers import (
    decode_request_header,
    request_header_version,
    response_body_position,
    response_header_version,
)

from . import oracle

FIXED = b"\0\x0c\0\3\0\0\0\x2a"  # Heartbeat v3, correlation id 42


def test_header_versions_follow_the_flexible_versions() -> None:
    assert request_header_version(ApiKey.HEARTBEAT, 3) == 1
    assert request_header_version(ApiKey.HEARTBEAT, 4) == 2
    assert response_header_version(ApiKey.HEARTBEAT, 3) == 0
    assert response_header_version(ApiKey.HEARTBEAT, 4) == 1


def test_api_versions_always_answers_with_the_oldest_header() -> None:
    assert [response_header_version(ApiKey.API_VERSIONS, version) for version in range(5)] == [0] * 5
    assert request_header_version(ApiKey.API_VERSIONS, 3) == 2


@pytest.mark.parametrize("key", list(ApiKey), ids=lambda key: str(key.title))
def test_header_versions_are_kios(key: ApiKey) -> None:
    name = key.name.lower()
    for version in oracle.known_versions(name):
        if API[key].versions.has(version):
            request, response = (oracle.load(name, version, kind) for kind in oracle.EXCHANGED)
            assert request_header_version(key, version) == int(request.__header_schema__.__version__)
            assert response_header_version(key, version) == int(response.__header_schema__.__version__)


class TestRequestHeaders:
    def test_the_client_id_has_an_int16_length(self) -> None:
        assert decode_request_header(memoryview(FIXED + b"\0\2mebody")) == (12, 3, 42, "me", 12)

    def test_the_client_id_may_be_null_or_empty(self) -> None:
        assert decode_request_header(memoryview(FIXED + b"\xff\xff"))[3] is None
        assert decode_request_header(memoryview(FIXED + b"\0\0"))[3] == ""

    def test_a_flexible_header_keeps_the_int16_length_and_adds_tags(self) -> None:
        flexible = b"\0\x0c\0\4\0\0\0\x2a"
        assert decode_request_header(memoryview(flexible + b"\0\2me\0body"))[4] == 13
        assert decode_request_header(memoryview(flexible + b"\0\2me\1\5\2xybody"))[4] == 17

    def test_controlled_shutdown_v0_has_no_client_id(self) -> None:
        header = decode_request_header(memoryview(b"\0\7\0\0\0\0\0\1" + b"\0\0\0\5"))
        assert header == (7, 0, 1, None, 8)
        assert decode_request_header(memoryview(b"\0\7\0\1\0\0\0\1" + b"\0\1x\0\0\0\5"))[3] == "x"

    def test_an_api_versions_request_of_a_future_version_is_let_through(self) -> None:
        header = decode_request_header(memoryview(b"\0\x12\0\x63\0\0\0\1" + b"\0\1x" + b"whatever"))
        assert header[:4] == (18, 99, 1, "x")

    def test_other_unknown_versions_and_keys_are_refused(self) -> None:
        with pytest.raises(UnsupportedVersion, match=r"^Heartbeat has versions 0-4, not 99$"):
            decode_request_header(memoryview(b"\0\x0c\0\x63\0\0\0\1\0\0"))
        with pytest.raises(UnsupportedVersion, match=r"^no API has key -1$"):
            decode_request_header(memoryview(b"\xff\xff\0\0\0\0\0\1\0\0"))

    @pytest.mark.parametrize("rest", [b"", b"\0", b"\0\5ab", b"\x7f\xff", b"\0\1\xff"])
    def test_a_damaged_header_is_refused(self, rest: bytes) -> None:
        with pytest.raises(DecodeError):
            decode_request_header(memoryview(FIXED + rest))

    def test_a_request_without_a_header_is_refused(self) -> None:
        with pytest.raises(DecodeError, match="a request of 3 bytes has no header"):
            decode_request_header(memoryview(b"abc"))

    @given(st.binary(max_size=40))
    def test_any_bytes_are_a_header_or_refused(self, data: bytes) -> None:
        try:
            header = decode_request_header(memoryview(data))
        except ProtocolError:
            return
        assert header[4] <= len(data)


class TestResponseHeaders:
    def test_the_body_follows_the_correlation_id_and_the_tags(self) -> None:
        assert response_body_position(memoryview(b"\0\0\0\1body"), ApiKey.HEARTBEAT, 3) == 4
        assert response_body_position(memoryview(b"\0\0\0\1\0body"), ApiKey.HEARTBEAT, 4) == 5
        assert response_body_position(memoryview(b"\0\0\0\1\1\0\1xbody"), ApiKey.HEARTBEAT, 4) == 8
        assert response_body_position(memoryview(b"\0\0\0\1body"), ApiKey.API_VERSIONS, 4) == 4

    def test_a_cut_header_is_refused(self) -> None:
        with pytest.raises(DecodeError, match="response header"):
            response_body_position(memoryview(b"\0\0\0\1"), ApiKey.HEARTBEAT, 4)
