"""Whole frames: size, header, body."""

from barnabas.base.buffers import join_buffers
from barnabas.protocol.api import ApiKey
from barnabas.protocol.framing import encode_raw, encode_request, encode_response
from barnabas.protocol.generate_encode import BULK_BYTES
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from barnabas.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def test_a_response_is_size_correlation_id_and_body() -> None:
    frame = encode_response(ApiKey.HEARTBEAT, 0, 42, HeartbeatResponse(error_code=27))
    assert join_buffers(frame) == b"\0\0\0\6\0\0\0\x2a\0\x1b"


def test_a_flexible_response_has_a_tag_section_in_its_header() -> None:
    frame = encode_response(ApiKey.HEARTBEAT, 4, 42, HeartbeatResponse(error_code=27))
    assert join_buffers(frame) == b"\0\0\0\x0c\0\0\0\x2a\0\0\0\0\0\0\x1b\0"


def test_an_api_versions_response_never_has_one() -> None:
    frame = encode_response(ApiKey.API_VERSIONS, 3, 1, ApiVersionsResponse())
    assert join_buffers(frame) == b"\0\0\0\x0c\0\0\0\1\0\0\1\0\0\0\0\0"


def test_an_unknown_api_versions_version_is_answered_in_version_0() -> None:
    known = ApiVersionsResponse(
        error_code=35, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=4)]
    )
    frame = encode_response(ApiKey.API_VERSIONS, 0, 1, known)
    assert join_buffers(frame) == b"\0\0\0\x10\0\0\0\1\0\x23\0\0\0\1\0\x12\0\0\0\4"


def test_a_request_names_its_api_version_and_client() -> None:
    message = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    body = b"\0\1g\0\0\0\1\0\1m"
    assert (
        join_buffers(encode_request(12, 0, 7, "me", message)) == b"\0\0\0\x16\0\x0c\0\0\0\0\0\7\0\2me" + body
    )
    assert (
        join_buffers(encode_request(12, 0, 7, None, message))
        == b"\0\0\0\x14\0\x0c\0\0\0\0\0\7\xff\xff" + body
    )


def test_a_flexible_request_has_a_tag_section_after_the_client_id() -> None:
    frame = join_buffers(encode_request(12, 4, 7, "me", HeartbeatRequest()))
    assert frame == b"\0\0\0\x15\0\x0c\0\4\0\0\0\7\0\2me\0" + b"\1\0\0\0\0\1\0\0"


def test_controlled_shutdown_v0_leaves_the_client_id_out() -> None:
    frame = encode_request(ApiKey.CONTROLLED_SHUTDOWN, 0, 7, "me", ControlledShutdownRequest(broker_id=5))
    assert join_buffers(frame) == b"\0\0\0\x0c\0\7\0\0\0\0\0\7\0\0\0\5"


def test_the_size_counts_bulk_buffers_that_are_not_copied() -> None:
    records = b"r" * BULK_BYTES
    topics = [FetchableTopicResponse(topic="t", partitions=[PartitionData(records=records)])]
    frame = encode_response(ApiKey.FETCH, 4, 1, FetchResponse(responses=topics))
    assert frame[1] is records
    assert int.from_bytes(join_buffers(frame)[:4], "big") == len(join_buffers(frame)) - 4


def test_a_bare_token_is_size_and_bytes() -> None:
    assert encode_raw(b"tok") == [b"\0\0\0\3tok"]
    assert encode_raw(b"") == [b"\0\0\0\0"]
