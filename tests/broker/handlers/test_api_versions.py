"""barnabas.broker.handlers.api_versions: what is offered is what HANDLERS says (WIRE 2.2)."""

import struct

import pytest

from barnabas.broker.handlers import HANDLERS
from barnabas.protocol.api import API
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.broker._wire import WireClient

VERSIONS = range(5)
KEY = 18


def ask(
    client: WireClient, version: int, name: str = "librdkafka", software: str = "2.5.0"
) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software)
    return client.call(request, version, ApiVersionsResponse)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_api_with_its_range(client: WireClient, version: int) -> None:
    response = ask(client, version)
    assert (response.error_code, response.throttle_time_ms) == (0, 0)
    offered = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
    assert offered == {handler.key: (handler.lowest, handler.highest) for handler in HANDLERS}


@pytest.mark.parametrize("version", VERSIONS[3:])
def test_the_features_and_their_levels(client: WireClient, version: int) -> None:
    response = ask(client, version)
    supported = {each.name: (each.min_version, each.max_version) for each in response.supported_features}
    # Clients before v4 take a lowest level of 0 for a mistake.
    assert supported == ({"transaction.version": (0, 2)} if version >= 4 else {})
    finalized = {each.name: each.max_version_level for each in response.finalized_features}
    assert (response.finalized_features_epoch, finalized) == (0, {"transaction.version": 2})


@pytest.mark.parametrize("version", VERSIONS[:3])
def test_no_features_before_clients_know_them(client: WireClient, version: int) -> None:
    response = ask(client, version)
    assert (response.supported_features, response.finalized_features) == ([], [])


def test_no_more_is_offered_than_can_be_decoded() -> None:
    for handler in HANDLERS:
        api = API[handler.key]
        assert api.request.VERSIONS.has(handler.lowest)
        assert api.request.VERSIONS.has(handler.highest)
        assert api.response.VERSIONS.has(handler.highest)


def test_old_librdkafka_finds_the_versions_it_needs_exactly(client: WireClient) -> None:
    offered = {
        each.api_key: range(each.min_version, each.max_version + 1) for each in ask(client, 0).api_keys
    }
    needed = {0: (0, 2, 3, 7), 1: (2, 4, 10), 2: (1,), 8: (1, 2), 9: (1,), 10: (0,), 11: (0,), 22: (0,)}
    for key, versions in needed.items():
        assert all(version in offered[key] for version in versions), key


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_a_version_we_do_not_know_is_answered_in_version_0_with_our_range(
    client: WireClient, version: int
) -> None:
    client.send_frame(struct.pack(">hhih", KEY, version, 4711, 1) + b"c" + b"\xff rubbish \xff")
    frame = client.receive_frame()
    assert struct.unpack_from(">i", frame) == (4711,)
    response = ApiVersionsResponse.decode(0, frame[4:])
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(each.api_key, each.min_version, each.max_version) for each in response.api_keys] == [(KEY, 0, 4)]
    assert len(frame) == 4 + 2 + 4 + 6, "nothing behind the list"
    assert ask(client, 4).error_code == 0, "the connection lives"


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("name", "software", "right"),
    [
        ("librdkafka", "v2.5.0-RC1", True),
        ("a", "1", True),
        ("apache-kafka-java", "4.0.0", True),
        ("", "1", False),
        ("name", "", False),
        ("-name", "1", False),
        ("name", "1.", False),
        ("na me", "1", False),
    ],
)
def test_software_names_are_letters_digits_and_inner_dots_and_dashes(
    client: WireClient, version: int, name: str, software: str, right: bool
) -> None:
    response = ask(client, version, name, software)
    assert response.error_code == (0 if right else ErrorCode.INVALID_REQUEST)
    assert bool(response.api_keys) is right
