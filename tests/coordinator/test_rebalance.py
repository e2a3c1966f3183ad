"""From one generation to the next: delays, timeouts, assignments."""

import pytest

from barnabas.coordinator.calls import LeavingMember
from barnabas.coordinator.joining import NEWCOMER_TIMEOUT_MS
from barnabas.protocol.codes import ErrorCode
from tests.coordinator._fakes import World


@pytest.fixture
def world() -> World:
    return World().own_all()


class TestTheFirstRebalance:
    @pytest.fixture
    def world(self) -> World:
        return World(group_initial_rebalance_delay_ms=3_000).own_all()

    def test_waits_the_initial_delay(self, world: World) -> None:
        answer = world.join()
        world.timers.advance(2_999)
        assert answer.waits
        world.timers.advance(1)
        assert answer.result.generation_id == 1

    def test_waits_again_when_somebody_came(self, world: World) -> None:
        first = world.join()
        world.timers.advance(2_000)
        second = world.join()
        world.timers.advance(3_999)
        assert first.waits
        world.timers.advance(1)
        assert first.result.generation_id == second.result.generation_id == 1

    def test_never_waits_longer_than_the_rebalance_timeout(self, world: World) -> None:
        first = world.join(rebalance_timeout_ms=7_000)
        for _ in range(6):
            world.timers.advance(1_000)
            world.join(rebalance_timeout_ms=7_000)
        world.timers.advance(999)
        assert first.waits
        world.timers.advance(1)
        assert len(first.result.members) == 7

    def test_is_not_prolonged_in_a_group_that_had_generations(self, world: World) -> None:
        world.join()
        world.timers.advance(3_000)
        member_id = world.group().roster.leader_id or ""
        world.coordinator.leave("g", [LeavingMember(member_id)])
        answer = world.join()
        world.timers.advance(2_000)
        world.join()
        world.timers.advance(1_000)
        assert answer.result.error is ErrorCode.NONE

    def test_ends_empty_if_everybody_left_meanwhile(self, world: World) -> None:
        member_id = world.join(member_id_required=True).result.member_id
        answer = world.join(member_id)
        world.coordinator.leave("g", [LeavingMember(member_id)])
        assert answer.result.error is ErrorCode.UNKNOWN_MEMBER_ID
        world.timers.advance(3_000)
        assert world.group().state.value == "Empty"


class TestTheJoinPhase:
    def test_ends_when_all_members_rejoined(self, world: World) -> None:
        _, ids = world.stable(3)
        newcomer = world.join()
        answers = [world.join(member_id) for member_id in ids]
        assert {answer.result.generation_id for answer in (newcomer, *answers)} == {2}

    def test_ends_after_the_longest_rebalance_timeout_without_those_who_stayed_away(
        self, world: World
    ) -> None:
        _, [leader_id, slow_id] = world.stable(2, session_timeout_ms=300_000)
        answer = world.join(leader_id, rebalance_timeout_ms=30_000, session_timeout_ms=300_000)
        world.timers.advance(59_999)
        assert answer.waits
        world.timers.advance(1)
        assert [member.member_id for member in answer.result.members] == [leader_id]
        assert world.beat(slow_id, 1) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_keeps_static_members_that_stay_away(self, world: World) -> None:
        away = world.join(instance_id="box", session_timeout_ms=300_000)
        present = world.join(session_timeout_ms=300_000)
        world.timers.advance(0)
        world.sync(away.result.member_id, 1)
        world.sync(present.result.member_id, 1)
        rejoined = world.join(
            present.result.member_id, session_timeout_ms=300_000, protocols=[("range", b"new")]
        )
        world.timers.advance(60_000)
        assert rejoined.result.generation_id == 2
        assert rejoined.result.leader_id == present.result.member_id
        assert len(rejoined.result.members) == 2

    def test_waits_on_if_only_static_members_are_left_and_all_stay_away(self, world: World) -> None:
        away = world.join(instance_id="box", session_timeout_ms=100_000)
        gone = world.join(session_timeout_ms=100_000)
        world.timers.advance(0)
        for answer in (gone, away):
            world.sync(answer.result.member_id, 1)
        world.coordinator.leave("g", [LeavingMember(gone.result.member_id)])
        world.timers.advance(99_999)
        assert world.group().state.value == "PreparingRebalance"
        assert world.group().generation_id == 1
        world.timers.advance(1)
        assert world.group().state.value == "Empty"
        assert world.group().generation_id == 2

    def test_a_member_that_waits_does_not_lose_its_session(self, world: World) -> None:
        _, [leader_id, follower_id] = world.stable(2)
        answer = world.join(leader_id, session_timeout_ms=6_000)
        for _ in range(5):
            world.timers.advance(9_000)
            assert world.beat(follower_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS
        world.join(follower_id)
        assert answer.result.generation_id == 2

    def test_a_newcomer_that_waits_too_long_is_let_go(self, world: World) -> None:
        world.stable(1, rebalance_timeout_ms=1_800_000, session_timeout_ms=1_800_000)
        newcomer = world.join(rebalance_timeout_ms=1_800_000)
        world.timers.advance(NEWCOMER_TIMEOUT_MS)
        assert newcomer.result.error is ErrorCode.UNKNOWN_MEMBER_ID
        assert newcomer.result.member_id == ""
        assert len(world.group().roster) == 1

    def test_a_session_that_expires_lets_the_others_go_on(self, world: World) -> None:
        _, [leader_id, _] = world.stable(2)
        answer = world.join(leader_id)
        world.timers.advance(10_000)
        assert answer.result.generation_id == 2
        assert len(answer.result.members) == 1


class TestTheSyncPhase:
    def test_everybody_gets_its_part_of_the_leaders_assignment(self, world: World) -> None:
        generation_id, [leader_id, follower_id] = world.joined(2)
        follower = world.sync(follower_id, generation_id)
        assert follower.waits
        leader = world.sync(leader_id, generation_id, [(leader_id, b"L"), (follower_id, b"F")])
        assert (leader.result.assignment, follower.result.assignment) == (b"L", b"F")
        assert (leader.result.protocol_type, leader.result.protocol_name) == ("consumer", "range")

    def test_who_is_not_mentioned_gets_nothing_and_strangers_are_left_out(self, world: World) -> None:
        generation_id, [leader_id, follower_id] = world.joined(2)
        leader = world.sync(leader_id, generation_id, [("stranger", b"S")])
        assert leader.result.assignment == b""
        assert world.sync(follower_id, generation_id).result.assignment == b""

    def test_nobody_is_answered_before_the_assignment_is_durable(self, world: World) -> None:
        generation_id, [leader_id] = world.joined(1)
        world.log.holds = True
        answer = world.sync(leader_id, generation_id, [(leader_id, b"L")])
        assert answer.waits
        world.log.release()
        assert answer.result.assignment == b"L"

    def test_a_second_assignment_of_the_same_generation_is_not_taken(self, world: World) -> None:
        generation_id, [leader_id] = world.joined(1)
        world.log.holds = True
        first = world.sync(leader_id, generation_id, [(leader_id, b"1")])
        second = world.sync(leader_id, generation_id, [(leader_id, b"2")])
        world.log.release()
        assert first.result.error is ErrorCode.REBALANCE_IN_PROGRESS
        assert second.result.assignment == b"1"
        assert world.restarted().group().roster[leader_id].assignment == b"1"

    def test_an_assignment_that_cannot_be_stored_makes_all_join_again(self, world: World) -> None:
        generation_id, [leader_id, follower_id] = world.joined(2)
        follower = world.sync(follower_id, generation_id)
        world.log.failing = ErrorCode.NOT_LEADER_OR_FOLLOWER
        leader = world.sync(leader_id, generation_id)
        assert leader.result.error is follower.result.error is ErrorCode.NOT_COORDINATOR
        assert world.group().state.value == "PreparingRebalance"

    def test_an_assignment_stored_after_the_next_rebalance_began_is_not_handed_out(
        self, world: World
    ) -> None:
        generation_id, [leader_id] = world.joined(1)
        world.log.holds = True
        sync = world.sync(leader_id, generation_id, [(leader_id, b"late")])
        world.join()
        assert sync.result.error is ErrorCode.REBALANCE_IN_PROGRESS
        world.log.release()
        assert world.group().state.value == "PreparingRebalance"
        assert world.group().roster[leader_id].assignment == b""

    def test_in_a_stable_group_the_assignment_is_told_again(self, world: World) -> None:
        generation_id, [leader_id] = world.stable(1)
        assert world.sync(leader_id, generation_id).result.assignment == leader_id.encode()

    def test_who_sends_no_sync_in_time_is_removed(self, world: World) -> None:
        generation_id, [leader_id, silent_id] = world.joined(2, session_timeout_ms=300_000)
        world.sync(leader_id, generation_id)
        world.timers.advance(60_000)
        assert world.beat(silent_id, generation_id) is ErrorCode.UNKNOWN_MEMBER_ID
        assert world.beat(leader_id, generation_id) is ErrorCode.REBALANCE_IN_PROGRESS

    def test_if_the_leader_sends_no_sync_the_followers_join_again(self, world: World) -> None:
        generation_id, [leader_id, follower_id] = world.joined(2, session_timeout_ms=300_000)
        sync = world.sync(follower_id, generation_id)
        world.timers.advance(60_000)
        assert sync.result.error is ErrorCode.REBALANCE_IN_PROGRESS
        assert leader_id not in world.group().roster

    def test_the_timeout_ends_with_the_last_sync(self, world: World) -> None:
        world.stable(2, session_timeout_ms=300_000)
        world.timers.advance(60_000)
        assert world.group().state.value == "Stable"

    def test_a_member_that_waits_for_the_leader_does_not_lose_its_session(self, world: World) -> None:
        generation_id, [leader_id, follower_id] = world.joined(2)
        world.sync(follower_id, generation_id)
        for _ in range(3):
            world.timers.advance(9_000)
            assert world.beat(leader_id, generation_id) is ErrorCode.NONE
        world.sync(leader_id, generation_id)
        world.timers.advance(9_999)
        assert world.beat(follower_id, generation_id) is ErrorCode.NONE


class TestRefusedSyncs:
    def test_by_reason(self, world: World) -> None:
        generation_id, [leader_id] = world.stable(1)
        sync = world.sync
        assert sync("x", generation_id).result.error is ErrorCode.UNKNOWN_MEMBER_ID
        assert sync(leader_id, generation_id + 1).result.error is ErrorCode.ILLEGAL_GENERATION
        inconsistent = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert sync(leader_id, generation_id, protocol_type="connect").result.error is inconsistent
        assert sync(leader_id, generation_id, protocol_name="sticky").result.error is inconsistent
        right = sync(leader_id, generation_id, protocol_type="consumer", protocol_name="range")
        assert right.result.error is ErrorCode.NONE

    def test_while_others_join(self, world: World) -> None:
        generation_id, [leader_id] = world.stable(1)
        world.join()
        assert world.sync(leader_id, generation_id).result.error is ErrorCode.REBALANCE_IN_PROGRESS


class TestLeaving:
    def test_the_last_member_leaves_an_empty_group_of_the_next_generation(self, world: World) -> None:
        _, [leader_id] = world.stable(1)
        world.coordinator.leave("g", [LeavingMember(leader_id)])
        assert world.group().state.value == "Empty"
        assert world.group().generation_id == 2
        assert world.restarted().group().generation_id == 2

    def test_the_others_rebalance(self, world: World) -> None:
        generation_id, [leader_id, follower_id] = world.stable(2)
        world.coordinator.leave("g", [LeavingMember(leader_id)])
        assert world.beat(follower_id, generation_id) is ErrorCode.REBALANCE_IN_PROGRESS
        assert world.join(follower_id).result.leader_id == follower_id

    def test_who_leaves_while_waiting_for_the_leader_is_answered(self, world: World) -> None:
        generation_id, [_, follower_id] = world.joined(2)
        sync = world.sync(follower_id, generation_id)
        world.coordinator.leave("g", [LeavingMember(follower_id)])
        assert sync.result.error is ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_lost_record_of_an_empty_group_is_only_reported(
        self, world: World, caplog: pytest.LogCaptureFixture
    ) -> None:
        _, [leader_id] = world.stable(1)
        world.log.failing = ErrorCode.NOT_ENOUGH_REPLICAS
        world.coordinator.leave("g", [LeavingMember(leader_id)])
        assert world.group().state.value == "Empty"
        assert "could not be stored: COORDINATOR_NOT_AVAILABLE" in caplog.text


def test_timers_of_a_group_that_is_gone_are_cancelled(world: World) -> None:
    before = world.timers.armed
    world.stable(3)
    world.join(member_id_required=True)
    world.join()
    for partition in range(4):
        world.coordinator.unload(partition)
    assert world.timers.armed == before
