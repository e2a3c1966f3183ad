"""barnabas.broker.handlers.sync_group: assignments handed in and out."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.broker._groups import Member, join_both
from tests.broker._wire import WireClient
from tests.broker.conftest import MakeClient

VERSIONS = range(6)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_leader_gets_back_what_it_assigned_itself(client: WireClient, group: str, version: int) -> None:
    member = Member(client, group, sync=version)
    member.join()
    synced = member.sync(**{member.member_id: b"mine"})
    assert (synced.error_code, bytes(synced.assignment)) == (0, b"mine")
    echoed = ("consumer", "range") if version >= 5 else (None, None)
    assert (synced.protocol_type, synced.protocol_name) == echoed


@pytest.mark.parametrize("version", VERSIONS)
def test_who_is_not_assigned_anything_gets_empty_bytes(client: WireClient, group: str, version: int) -> None:
    member = Member(client, group, sync=version)
    member.join()
    assert bytes(member.sync().assignment) == b""


def test_followers_wait_for_the_leader(connect: MakeClient, group: str) -> None:
    leader, follower = Member(connect(), group).start(), Member(connect(), group)
    join_both(leader, follower)
    follower.begin_sync()
    assert not follower.client.has_answer()
    leader.sync(**{leader.member_id: b"a", follower.member_id: b"b"})
    assert bytes(follower.end_sync().assignment) == b"b"


@pytest.mark.parametrize("version", VERSIONS)
def test_strangers_and_wrong_generations_are_told(client: WireClient, group: str, version: int) -> None:
    member = Member(client, group, sync=version).start()
    right = member.generation
    member.generation = right + 1
    assert member.sync().error_code == ErrorCode.ILLEGAL_GENERATION
    member.generation, member.member_id = right, "stranger"
    assert member.sync().error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_group_knows_no_members(client: WireClient, group: str, version: int) -> None:
    request = SyncGroupRequest(group_id=group, generation_id=1, member_id="m")
    answer = client.call(request, version, SyncGroupResponse)
    assert (answer.error_code, bytes(answer.assignment)) == (ErrorCode.UNKNOWN_MEMBER_ID, b"")


def test_version_5_checks_the_protocol(client: WireClient, group: str) -> None:
    member = Member(client, group, join=7, sync=5).start()
    request = SyncGroupRequest(
        group_id=group,
        generation_id=member.generation,
        member_id=member.member_id,
        protocol_type="consumer",
        protocol_name="other",
    )
    answer = client.call(request, 5, SyncGroupResponse)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
