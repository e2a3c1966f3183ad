"""Counting members, choosing a leader and a protocol."""

import pytest

from barnabas.coordinator.calls import JoinCall, JoinResult, SyncResult
from barnabas.coordinator.member import Member
from barnabas.coordinator.outbox import Outbox
from barnabas.coordinator.roster import Roster
from barnabas.protocol.codes import ErrorCode
from tests.coordinator._fakes import Answer, FakeTimer


def call(*protocols: str, instance_id: str | None = None) -> JoinCall:
    return JoinCall(
        member_id="",
        instance_id=instance_id,
        client_id="c",
        client_host="h",
        session_timeout_ms=10,
        rebalance_timeout_ms=20,
        protocol_type="consumer",
        protocols=[(name, b"") for name in protocols],
    )


def roster(**members: list[str]) -> Roster:
    made = Roster(Outbox())
    for member_id, protocols in members.items():
        made.add(Member.of_call(member_id, call(*protocols)))
    made.check()
    return made


class TestTheProtocol:
    def test_is_one_that_all_members_list(self) -> None:
        assert roster(a=["x", "y"], b=["y", "z"]).select_protocol() == "y"

    def test_is_the_one_most_members_prefer(self) -> None:
        group = roster(a=["x", "y"], b=["y", "x"], c=["y", "x"])
        assert group.select_protocol() == "y"

    def test_is_the_first_named_one_when_votes_are_even(self) -> None:
        assert roster(a=["x", "y"], b=["y", "x"]).select_protocol() == "x"

    def test_must_be_common_with_newcomers(self) -> None:
        group = roster(a=["x", "y"], b=["y"])
        assert group.has_common_protocol(["z", "y"])
        assert not group.has_common_protocol(["x"])

    def test_support_follows_updates_and_removals(self) -> None:
        group = roster(a=["x"], b=["x", "y"])
        group.update(group["a"], call("y"))
        group.check()
        assert group.select_protocol() == "y"
        group.remove(group["a"])
        group.check()
        assert group.has_common_protocol(["x"])


class TestTheLeader:
    def test_is_the_first_member_and_after_it_the_next(self) -> None:
        group = roster(a=["x"], b=["x"])
        assert group.leader_id == "a"
        group.remove(group["a"])
        assert group.leader_id == "b"
        group.remove(group["b"])
        assert group.leader_id is None

    def test_stays_if_it_rejoined(self) -> None:
        group = roster(a=["x"], b=["x"])
        for member in group:
            group.await_join(member, Answer[JoinResult]())
        assert group.elect_joined_leader()
        assert group.leader_id == "a"

    def test_passes_to_a_member_that_rejoined(self) -> None:
        group = roster(a=["x"], b=["x"])
        group.await_join(group["b"], Answer[JoinResult]())
        assert group.elect_joined_leader()
        assert group.leader_id == "b"

    def test_cannot_be_elected_among_absent_members(self) -> None:
        group = roster(a=["x"])
        assert not group.elect_joined_leader()

    def test_keeps_its_role_when_a_static_member_is_replaced(self) -> None:
        group = Roster(Outbox())
        old, new = (Member.of_call(name, call("x", instance_id="i")) for name in ("old", "new"))
        group.add(old)
        group.add(Member.of_call("other", call("x")))
        group.replace(old, new)
        group.check()
        assert group.leader_id == "new"
        assert group.instances == {"i": "new"}


class TestWaitingMembers:
    def test_all_have_joined_only_without_promised_ids(self) -> None:
        assert not roster(a=["x"]).all_joined
        joined, promising = roster(a=["x"]), roster(a=["x"])
        joined.await_join(joined["a"], Answer[JoinResult]())
        assert joined.all_joined
        promising.await_join(promising["a"], Answer[JoinResult]())
        promising.promised["b"] = FakeTimer(lambda: None)
        assert not promising.all_joined

    def test_a_second_join_ends_the_first(self) -> None:
        outbox = Outbox()
        group = Roster(outbox)
        group.add(Member.of_call("a", call("x")))
        first, second = Answer[JoinResult](), Answer[JoinResult]()
        group.await_join(group["a"], first)
        group.await_join(group["a"], second)
        outbox.flush()
        group.check()
        assert first.result.error is ErrorCode.REBALANCE_IN_PROGRESS
        assert second.waits

    def test_a_join_ends_the_members_sync(self) -> None:
        outbox = Outbox()
        group = Roster(outbox)
        group.add(Member.of_call("a", call("x")))
        sync, join = Answer[SyncResult](), Answer[JoinResult]()
        group.await_sync(group["a"], sync)
        group.await_join(group["a"], join)
        outbox.flush()
        group.check()
        assert sync.result.error is ErrorCode.REBALANCE_IN_PROGRESS

    def test_a_member_that_waits_cannot_be_removed_unanswered(self) -> None:
        group = roster(a=["x"])
        group.await_join(group["a"], Answer[JoinResult]())
        with pytest.raises(AssertionError, match="R3"):
            group.remove(group["a"])


def test_two_members_cannot_share_an_instance_id() -> None:
    group = Roster(Outbox())
    group.add(Member.of_call("a", call("x", instance_id="i")))
    with pytest.raises(AssertionError, match="R1"):
        group.add(Member.of_call("b", call("x", instance_id="i")))


def test_a_promise_is_withdrawn_once() -> None:
    group, fired = roster(), list[str]()
    timer = FakeTimer(lambda: fired.append("lapsed"))
    group.promised["a"] = timer
    assert group.withdraw_promise("a")
    assert not group.withdraw_promise("a")
    assert timer.callback is None
