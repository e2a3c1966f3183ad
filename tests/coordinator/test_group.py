"""The five states and what each allows."""

import itertools

import pytest

from barnabas.coordinator.group import NEXT_STATES, Group, GroupState
from barnabas.coordinator.member import Member
from barnabas.coordinator.outbox import Outbox
from barnabas.protocol.codes import ErrorCode
from tests.coordinator._fakes import World, subscription

S = GroupState
ALLOWED = {
    (S.EMPTY, S.PREPARING_REBALANCE),
    (S.EMPTY, S.DEAD),
    (S.PREPARING_REBALANCE, S.COMPLETING_REBALANCE),
    (S.PREPARING_REBALANCE, S.EMPTY),
    (S.PREPARING_REBALANCE, S.DEAD),
    (S.COMPLETING_REBALANCE, S.STABLE),
    (S.COMPLETING_REBALANCE, S.PREPARING_REBALANCE),
    (S.COMPLETING_REBALANCE, S.DEAD),
    (S.STABLE, S.PREPARING_REBALANCE),
    (S.STABLE, S.DEAD),
}


def group(*metadata: bytes, protocol_type: str = "consumer") -> Group:
    made = Group("g", 0, Outbox(), 0)
    made.protocol_type = protocol_type
    for number, data in enumerate(metadata):
        made.roster.add(
            Member(
                f"m{number}",
                instance_id=None,
                client_id="c",
                client_host="h",
                session_timeout_ms=1,
                rebalance_timeout_ms=1,
                protocols={"range": data},
            )
        )
    return made


@pytest.mark.parametrize(("old", "new"), sorted(itertools.product(S, S), key=str))
def test_states_follow_the_arrows(old: GroupState, new: GroupState) -> None:
    assert (new in NEXT_STATES[old]) == ((old, new) in ALLOWED)


def test_a_move_against_the_arrows_is_our_bug() -> None:
    with pytest.raises(AssertionError, match="G1"):
        group().move_to(S.STABLE, 0)


def test_a_group_with_members_cannot_be_empty() -> None:
    made = group(b"")
    made.state = S.PREPARING_REBALANCE
    with pytest.raises(AssertionError, match="G3"):
        made.move_to(S.EMPTY, 0)


class TestSubscribedTopics:
    def test_are_those_of_all_members(self) -> None:
        made = group(subscription("a", "b"), subscription("b", "c"))
        made.state = S.PREPARING_REBALANCE
        made.begin_generation(0)
        assert made.subscribed_topics == {"a", "b", "c"}
        assert made.is_subscribed_to("a")
        assert not made.is_subscribed_to("d")

    @pytest.mark.parametrize("metadata", [b"", b"\0", b"rubbish", subscription("a")[:-5]])
    def test_are_unknown_if_metadata_cannot_be_read_so_any_topic_may_be_one(self, metadata: bytes) -> None:
        made = group(subscription("a"), metadata)
        made.state = S.PREPARING_REBALANCE
        made.begin_generation(0)
        assert made.subscribed_topics is None
        assert made.is_subscribed_to("anything")

    def test_are_none_in_an_empty_group(self) -> None:
        made = group()
        made.refresh_subscribed_topics()
        assert made.subscribed_topics == frozenset()

    def test_are_unknown_for_other_protocols(self) -> None:
        made = group(subscription("a"), protocol_type="connect")
        made.state = S.PREPARING_REBALANCE
        made.begin_generation(0)
        assert made.subscribed_topics is None


class TestWhoMayCommit:
    def error(self, world: World, member_id: str, generation_id: int, **how: bool) -> ErrorCode:
        transactional = how.get("transactional", False)
        return world.group().commit_error(member_id, None, generation_id, transactional=transactional)

    def test_in_an_empty_group_anybody_without_generation(self) -> None:
        world = World().own_all()
        world.commit(1)
        assert self.error(world, "", -1) is ErrorCode.NONE
        assert self.error(world, "m", -1) is ErrorCode.NONE
        assert self.error(world, "m", 0) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_in_a_stable_group_only_members_of_the_generation(self) -> None:
        world = World().own_all()
        generation_id, [leader_id] = world.stable(1)
        assert self.error(world, leader_id, generation_id) is ErrorCode.NONE
        assert self.error(world, leader_id, generation_id - 1) is ErrorCode.ILLEGAL_GENERATION
        assert self.error(world, leader_id, -1) is ErrorCode.ILLEGAL_GENERATION
        assert self.error(world, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID
        assert self.error(world, "x", generation_id) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_while_others_join_still_the_members_of_the_last_generation(self) -> None:
        world = World().own_all()
        generation_id, [leader_id] = world.stable(1)
        world.join()
        assert self.error(world, leader_id, generation_id) is ErrorCode.NONE

    def test_while_the_leader_assigns_nobody_except_transactions(self) -> None:
        world = World().own_all()
        generation_id, [leader_id] = world.joined(1)
        assert self.error(world, leader_id, generation_id) is ErrorCode.REBALANCE_IN_PROGRESS
        assert self.error(world, leader_id, generation_id, transactional=True) is ErrorCode.NONE

    def test_old_transactional_producers_without_saying_who_they_are(self) -> None:
        world = World().own_all()
        world.stable(1)
        assert self.error(world, "", -1, transactional=True) is ErrorCode.NONE

    def test_a_dead_group_sends_everybody_away(self) -> None:
        made = group()
        made.move_to(S.DEAD, 0)
        error = made.commit_error("", None, -1, transactional=False)
        assert error is ErrorCode.COORDINATOR_NOT_AVAILABLE


class TestDescriptions:
    def test_of_a_stable_group_show_metadata_and_assignment(self) -> None:
        world = World().own_all()
        _, [leader_id] = world.stable(1)
        described = world.group().describe()
        assert (described.state, described.protocol_name) == ("Stable", "range")
        [member] = described.members
        assert (member.metadata, member.assignment) == (b"any topics", leader_id.encode())
        assert (member.client_id, member.client_host) == ("c", "/127.0.0.1")

    def test_of_a_rebalancing_group_show_only_who_is_there(self) -> None:
        world = World().own_all()
        world.stable(1)
        world.join()
        described = world.group().describe()
        assert (described.state, described.protocol_name) == ("PreparingRebalance", "")
        assert [(m.metadata, m.assignment) for m in described.members] == [(b"", b"")] * 2

    def test_listings_name_state_and_type(self) -> None:
        world = World().own_all()
        world.stable(1)
        listing = world.group().listing()
        assert (listing.group_id, listing.protocol_type) == ("g", "consumer")
        assert (listing.state, listing.group_type) == ("Stable", "classic")


def test_a_group_prints_what_matters() -> None:
    assert repr(group(b"")) == "Group('g', Empty, generation 0, 1 members)"
