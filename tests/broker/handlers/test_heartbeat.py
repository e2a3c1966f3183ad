"""barnabas.broker.handlers.heartbeat: sessions kept, and news of rebalances."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.broker._groups import Member
from tests.broker._wire import WireClient, until
from tests.broker.conftest import MakeClient

VERSIONS = range(5)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_member_of_the_generation_lives(client: WireClient, group: str, version: int) -> None:
    member = Member(client, group)
    member.join()
    assert member.heartbeat(version) == 0, "also between join and sync"
    member.sync()
    assert member.heartbeat(version) == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_wrong_generation_unknown_member_unknown_group(client: WireClient, group: str, version: int) -> None:
    member = Member(client, group).start()
    assert member.heartbeat(version, generation=9) == ErrorCode.ILLEGAL_GENERATION
    member.member_id = "stranger"
    assert member.heartbeat(version) == ErrorCode.UNKNOWN_MEMBER_ID
    nowhere = HeartbeatRequest(group_id=f"{group}-x", member_id="m", generation_id=0)
    assert client.call(nowhere, version, HeartbeatResponse).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    nameless = HeartbeatRequest(group_id="", member_id="m", generation_id=0)
    assert client.call(nameless, version, HeartbeatResponse).error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("version", VERSIONS)
def test_a_rebalance_is_told(connect: MakeClient, group: str, version: int) -> None:
    member, newcomer = Member(connect(), group).start(), Member(connect(), group)
    newcomer.begin_join()
    until(lambda: member.heartbeat(version) == ErrorCode.REBALANCE_IN_PROGRESS)
    member.join()
    newcomer.end_join()
    assert member.heartbeat(version) == 0


@pytest.mark.parametrize("version", [3, 4])
def test_a_replaced_static_member_is_fenced(connect: MakeClient, group: str, version: int) -> None:
    old = Member(connect(), group, instance="i").start()
    Member(connect(), group, instance="i").join()
    assert old.heartbeat(version) == ErrorCode.FENCED_INSTANCE_ID
