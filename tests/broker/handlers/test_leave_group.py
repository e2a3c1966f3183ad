"""barnabas.broker.handlers.leave_group: one member before version 3, several from then on."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from tests.broker._groups import Member
from tests.broker._wire import WireClient

VERSIONS = range(6)


def leave(client: WireClient, group: str, version: int, *member_ids: str) -> tuple[int, list[int]]:
    """The code at the top and those of the members."""
    if version < 3:
        (member_id,) = member_ids
        request = LeaveGroupRequest(group_id=group, member_id=member_id)
    else:
        request = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=m) for m in member_ids])
    response = client.call(request, version, LeaveGroupResponse)
    return response.error_code, [each.error_code for each in response.members]


@pytest.mark.parametrize("version", VERSIONS)
def test_who_left_is_unknown(client: WireClient, group: str, version: int) -> None:
    member = Member(client, group).start()
    assert leave(client, group, version, member.member_id) == (0, [0] if version >= 3 else [])
    assert member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", VERSIONS[:3])
def test_before_version_3_a_strangers_error_is_at_the_top(
    client: WireClient, group: str, version: int
) -> None:
    Member(client, group).start()
    assert leave(client, group, version, "stranger") == (ErrorCode.UNKNOWN_MEMBER_ID, [])
    assert leave(client, f"{group}-x", version, "stranger") == (ErrorCode.UNKNOWN_MEMBER_ID, [])


@pytest.mark.parametrize("version", VERSIONS[3:])
def test_from_version_3_on_each_member_has_its_own(client: WireClient, group: str, version: int) -> None:
    member = Member(client, group).start()
    assert leave(client, group, version, "stranger", member.member_id) == (
        0,
        [ErrorCode.UNKNOWN_MEMBER_ID, 0],
    )


@pytest.mark.parametrize("version", VERSIONS[3:])
def test_an_administrator_names_only_the_instance(client: WireClient, group: str, version: int) -> None:
    member = Member(client, group, instance="i").start()
    request = LeaveGroupRequest(
        group_id=group, members=[MemberIdentity(member_id="", group_instance_id=name) for name in ("i", "j")]
    )
    response = client.call(request, version, LeaveGroupResponse)
    assert response.error_code == 0
    assert [(m.group_instance_id, m.error_code) for m in response.members] == [
        ("i", 0),
        ("j", ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    assert member.heartbeat() in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_group_without_an_id_is_refused_at_the_top(client: WireClient, group: str, version: int) -> None:
    assert leave(client, "", version, "m") == (ErrorCode.INVALID_GROUP_ID, [])


def test_nobody_leaves_when_nobody_is_named(client: WireClient, group: str) -> None:
    member = Member(client, group).start()
    assert leave(client, group, 3) == (0, [])
    assert member.heartbeat() == 0
