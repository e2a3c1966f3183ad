"""The table of APIs: keys, classes, versions."""

import subprocess
import sys

import pytest
from kio.schema.index import api_key_map

from barnabas.protocol.api import API, ApiKey, decode_request, decode_response
from barnabas.protocol.errors import UnsupportedVersion
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


@pytest.mark.parametrize("key", list(ApiKey), ids=lambda key: str(key.title))
def test_a_key_leads_to_both_classes_of_its_api(key: ApiKey) -> None:
    api = API[key]
    assert api.request.__name__ == f"{key.title}Request"
    assert api.response.__name__ == f"{key.title}Response"
    assert api.request.API_KEY is api.response.API_KEY is key
    assert api.versions.low == 0


def test_keys_are_kafkas() -> None:
    gone = {ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN}
    assert {api_key_map[key]: int(key) for key in ApiKey if key not in gone} == {
        key.name.lower(): int(key) for key in ApiKey if key not in gone
    }
    assert [int(key) for key in sorted(gone)] == [4, 5, 6, 7]


def test_the_table_is_a_mapping_of_all_keys() -> None:
    assert list(API) == list(ApiKey)
    assert len(API) == len(ApiKey)
    assert 0 in API
    assert API.get(9999) is None


def test_requests_and_responses_are_decoded_by_key() -> None:
    assert decode_request(12, 0, b"\0\1g\0\0\0\7\0\1m") == HeartbeatRequest(
        group_id="g", generation_id=7, member_id="m"
    )
    assert decode_response(12, 0, b"\0\x1b") == HeartbeatResponse(error_code=27)


def test_an_unknown_key_or_version_is_refused() -> None:
    with pytest.raises(UnsupportedVersion, match="no API has key 9999"):
        decode_request(9999, 0, b"")
    with pytest.raises(UnsupportedVersion, match="HeartbeatRequest has versions 0-4, not 5"):
        decode_request(12, 5, b"")


@pytest.mark.slow
def test_a_declaration_is_imported_when_it_is_used() -> None:
    program = (
        "import sys; from barnabas.protocol.api import API; API[12];"
        "print(sorted(m.rpartition('.')[2] for m in sys.modules if '.protocol.messages.' in m))"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "['heartbeat']"
