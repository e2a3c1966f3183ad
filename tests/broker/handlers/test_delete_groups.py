"""barnabas.broker.handlers.delete_groups: empty groups go with their offsets."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from tests.broker._groups import Member, commit, committed
from tests.broker._wire import WireClient

VERSIONS = range(3)


def delete(client: WireClient, version: int, *groups: str) -> list[tuple[str, int]]:
    request = DeleteGroupsRequest(groups_names=list(groups))
    results = client.call(request, version, DeleteGroupsResponse).results
    return [(result.group_id, result.error_code) for result in results]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_group_goes_with_its_offsets(
    client: WireClient, group: str, topic: str, version: int
) -> None:
    commit(client, group, topic, 5)
    assert delete(client, version, group) == [(group, 0)]
    assert committed(client, group, topic)[0] == -1
    assert delete(client, version, group) == [(group, ErrorCode.GROUP_ID_NOT_FOUND)]


@pytest.mark.parametrize("version", VERSIONS)
def test_each_group_has_its_own_answer(client: WireClient, group: str, topic: str, version: int) -> None:
    Member(client, group).start()
    commit(client, f"{group}-x", topic, 5)
    assert delete(client, version, group, f"{group}-x", "unheard-of", group) == [
        (group, ErrorCode.NON_EMPTY_GROUP),
        (f"{group}-x", 0),
        ("unheard-of", ErrorCode.GROUP_ID_NOT_FOUND),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_no_groups_are_no_answers(client: WireClient, version: int) -> None:
    assert delete(client, version) == []
