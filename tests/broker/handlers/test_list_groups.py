"""barnabas.broker.handlers.list_groups: every group, filtered by state and type."""

import pytest

from barnabas.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from tests.broker._groups import Member, commit
from tests.broker._wire import WireClient

VERSIONS = range(6)


def listed(
    client: WireClient, version: int, *, states: tuple[str, ...] = (), types: tuple[str, ...] = ()
) -> dict[str, ListedGroup]:
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    response = client.call(request, version, ListGroupsResponse)
    assert response.error_code == 0
    return {found.group_id: found for found in response.groups}


@pytest.mark.parametrize("version", VERSIONS)
def test_groups_with_and_without_members(client: WireClient, group: str, topic: str, version: int) -> None:
    Member(client, group).start()
    commit(client, f"{group}-x", topic, 1)
    found = listed(client, version)
    live, empty = found[group], found[f"{group}-x"]
    assert (live.protocol_type, empty.protocol_type) == ("consumer", "")
    states = ("Stable", "Empty") if version >= 4 else ("", "")
    assert (live.group_state, empty.group_state) == states
    assert {live.group_type, empty.group_type} == {"classic" if version >= 5 else ""}


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("state", ["Empty", "empty"])
def test_version_4_filters_by_state(
    client: WireClient, group: str, topic: str, version: int, state: str
) -> None:
    Member(client, group).start()
    commit(client, f"{group}-x", topic, 1)
    found = listed(client, version, states=(state,))
    assert f"{group}-x" in found
    assert group not in found


def test_version_5_filters_by_type(client: WireClient, group: str) -> None:
    Member(client, group).start()
    assert group in listed(client, 5, types=("classic",))
    assert group in listed(client, 5, types=("Classic", "consumer"))
    assert listed(client, 5, types=("consumer",)) == {}
