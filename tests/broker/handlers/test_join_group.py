"""barnabas.broker.handlers.join_group: joining over the wire (WIRE 2.10), version by version."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupResponse
from tests.broker._groups import Member, join_both, join_request
from tests.broker._wire import WireClient, until
from tests.broker.conftest import MakeClient

VERSIONS = range(10)


class TestNewMembers:
    @pytest.mark.parametrize("version", VERSIONS)
    def test_a_member_alone_becomes_the_leader(self, client: WireClient, group: str, version: int) -> None:
        member = Member(client, group, join=version)
        joined = member.join()
        assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
        assert joined.leader == joined.member_id != ""
        assert joined.protocol_type == ("consumer" if version >= 7 else None)
        assert not joined.skip_assignment
        assert [(m.member_id, m.group_instance_id, bytes(m.metadata)) for m in joined.members] == [
            (joined.member_id, None, b"subscription")
        ]

    @pytest.mark.parametrize("version", VERSIONS[4:])
    def test_from_version_4_on_the_id_is_given_first(
        self, client: WireClient, group: str, version: int
    ) -> None:
        first = client.call(join_request(group), version, JoinGroupResponse)
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert first.member_id.startswith("wire-test-")
        assert (first.generation_id, first.leader, first.members) == (-1, "", [])
        assert first.protocol_name == (None if version >= 7 else "")
        again = client.call(join_request(group, first.member_id), version, JoinGroupResponse)
        assert (again.error_code, again.member_id) == (0, first.member_id)

    @pytest.mark.parametrize("version", VERSIONS[5:])
    def test_a_static_member_needs_no_id_first(self, client: WireClient, group: str, version: int) -> None:
        joined = client.call(join_request(group, instance="rack-1"), version, JoinGroupResponse)
        assert joined.error_code == 0
        assert joined.member_id.startswith("rack-1-")
        assert [m.group_instance_id for m in joined.members] == ["rack-1"]

    def test_a_client_without_a_name_may_join(self, broker_address: str, group: str) -> None:
        with WireClient(broker_address, client_id=None) as nameless:
            assert Member(nameless, group).join().error_code == 0


@pytest.fixture
def broker_address(client: WireClient) -> str:
    host, port = client._socket.getpeername()
    return f"{host}:{port}"


class TestRefusals:
    @pytest.mark.parametrize("version", VERSIONS)
    @pytest.mark.parametrize("session_ms", [0, 5_999, 1_800_001])
    def test_a_session_timeout_out_of_bounds(
        self, client: WireClient, group: str, version: int, session_ms: int
    ) -> None:
        answer = client.call(join_request(group, session_ms=session_ms), version, JoinGroupResponse)
        assert answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT

    @pytest.mark.parametrize("version", VERSIONS)
    def test_an_empty_group_id(self, client: WireClient, group: str, version: int) -> None:
        answer = client.call(join_request(""), version, JoinGroupResponse)
        assert answer.error_code == ErrorCode.INVALID_GROUP_ID

    @pytest.mark.parametrize("version", VERSIONS)
    def test_an_id_that_was_never_given(self, client: WireClient, group: str, version: int) -> None:
        answer = client.call(join_request(group, "made-up"), version, JoinGroupResponse)
        assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "made-up")

    @pytest.mark.parametrize("version", VERSIONS)
    def test_no_protocols(self, client: WireClient, group: str, version: int) -> None:
        answer = client.call(join_request(group, protocols=()), version, JoinGroupResponse)
        assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    @pytest.mark.parametrize(
        "other", [{"protocols": ("unheard-of",)}, {"protocol_type": "connect"}], ids=["protocol", "type"]
    )
    def test_what_the_group_does_not_speak(
        self, connect: MakeClient, group: str, other: dict[str, tuple[str, ...] | str]
    ) -> None:
        Member(connect(), group).start()
        answer = connect().call(join_request(group, **other), 3, JoinGroupResponse)  # type: ignore[arg-type]  # either
        assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


class TestRebalances:
    def test_a_newcomer_waits_for_the_others_and_only_the_leader_sees_all(
        self, connect: MakeClient, group: str
    ) -> None:
        leader, newcomer = Member(connect(), group).start(), Member(connect(), group)
        newcomer.begin_join()
        until(lambda: leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS)
        assert not newcomer.client.has_answer()
        seen_by_leader = leader.join()
        seen_by_newcomer = newcomer.end_join()
        assert {seen_by_leader.generation_id, seen_by_newcomer.generation_id} == {2}
        assert seen_by_newcomer.leader == seen_by_leader.leader == leader.member_id
        assert {m.member_id for m in seen_by_leader.members} == {leader.member_id, newcomer.member_id}
        assert seen_by_newcomer.members == []

    def test_the_protocol_is_one_that_all_speak(self, connect: MakeClient, group: str) -> None:
        first, second = connect(), connect()
        first.send(join_request(group, protocols=("sticky", "range")), 1)
        one = first.receive(JoinGroupResponse)
        assert one.protocol_name == "sticky"
        second.send(join_request(group, protocols=("roundrobin", "range")), 1)
        beat = HeartbeatRequest(group_id=group, member_id=one.member_id, generation_id=one.generation_id)
        until(lambda: first.call(beat, 1, HeartbeatResponse).error_code == ErrorCode.REBALANCE_IN_PROGRESS)
        first.send(join_request(group, one.member_id, protocols=("sticky", "range")), 1)
        assert first.receive(JoinGroupResponse).protocol_name == "range"
        assert second.receive(JoinGroupResponse).protocol_name == "range"

    def test_a_leader_that_joins_again_begins_a_new_generation_and_a_follower_does_not(
        self, connect: MakeClient, group: str
    ) -> None:
        leader, follower = Member(connect(), group).start(), Member(connect(), group)
        join_both(leader, follower)
        leader.sync()
        follower.sync()
        assert follower.join().generation_id == 2
        leader.begin_join()
        until(lambda: follower.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS)
        assert follower.join().generation_id == 3
        assert leader.end_join().generation_id == 3


class TestStaticMembers:
    def test_a_restarted_member_takes_its_place_without_a_rebalance(
        self, connect: MakeClient, group: str
    ) -> None:
        old = Member(connect(), group, instance="i").start()
        new = Member(connect(), group, instance="i", join=9, sync=5)
        joined = new.join()
        assert (joined.error_code, joined.generation_id) == (0, old.generation)
        assert joined.member_id != old.member_id
        assert (joined.leader, joined.skip_assignment) == (joined.member_id, True)
        assert [m.group_instance_id for m in joined.members] == ["i"]
        assert bytes(new.sync().assignment) == b"all"
        assert old.heartbeat() == ErrorCode.FENCED_INSTANCE_ID

    def test_before_version_9_it_is_told_an_old_leader_so_that_it_does_not_assign(
        self, connect: MakeClient, group: str
    ) -> None:
        old = Member(connect(), group, instance="i").start()
        joined = Member(connect(), group, instance="i", join=8).join()
        assert (joined.error_code, joined.generation_id, joined.skip_assignment) == (0, old.generation, False)
        assert joined.leader == old.member_id
        assert joined.members == []
