"""barnabas.broker.handlers.describe_groups: state, protocol and members."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from tests.broker._groups import Member, commit
from tests.broker._wire import WireClient

VERSIONS = range(7)
NOT_ASKED = -(2**31)


def describe(client: WireClient, group: str, version: int) -> DescribedGroup:
    request = DescribeGroupsRequest(groups=[group])
    (found,) = client.call(request, version, DescribeGroupsResponse).groups
    assert found.group_id == group
    assert found.authorized_operations == NOT_ASKED
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stable_group_shows_its_members(client: WireClient, group: str, version: int) -> None:
    member = Member(client, group, instance="i").start()
    found = describe(client, group, version)
    assert (found.error_code, found.group_state) == (0, "Stable")
    assert (found.protocol_type, found.protocol_data) == ("consumer", "range")
    (seen,) = found.members
    assert seen.member_id == member.member_id
    assert seen.group_instance_id == ("i" if version >= 4 else None)
    assert (seen.client_id, seen.client_host) == ("wire-test", "/127.0.0.1")
    assert bytes(seen.member_metadata) == b"subscription"
    assert bytes(seen.member_assignment) == b"all"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_group_between_join_and_sync_hides_them(client: WireClient, group: str, version: int) -> None:
    Member(client, group).join()
    found = describe(client, group, version)
    assert (found.group_state, found.protocol_type) == ("CompletingRebalance", "consumer")
    assert [bytes(seen.member_metadata) for seen in found.members] == [b""]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_group_of_commits_only_is_empty(client: WireClient, group: str, topic: str, version: int) -> None:
    commit(client, group, topic, 1)
    found = describe(client, group, version)
    assert (found.error_code, found.group_state, found.members) == (0, "Empty", [])


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_group_is_dead(client: WireClient, group: str, version: int) -> None:
    found = describe(client, group, version)
    assert (found.group_state, found.members, found.protocol_type) == ("Dead", [], "")
    if version < 6:
        assert (found.error_code, found.error_message) == (0, None)
    else:
        assert found.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert found.error_message == f"Group {group} not found."


def test_each_group_asked_for_is_answered_in_order(client: WireClient, group: str, topic: str) -> None:
    commit(client, group, topic, 1)
    request = DescribeGroupsRequest(groups=[f"{group}-x", group])
    found = client.call(request, 5, DescribeGroupsResponse).groups
    assert [(g.group_id, g.group_state) for g in found] == [(f"{group}-x", "Dead"), (group, "Empty")]
