"""The group APIs as handlers call them."""

import pytest

from barnabas.coordinator.calls import (
    JoinCall,
    JoinResult,
    LeaveResult,
    LeavingMember,
    SyncCall,
    SyncResult,
)
from barnabas.protocol.codes import ErrorCode
from tests.coordinator._fakes import Answer, World


@pytest.fixture
def world() -> World:
    return World().own_all()


class TestWhoIsAsked:
    def test_another_broker_coordinates_the_group(self) -> None:
        world = World()
        elsewhere = ErrorCode.NOT_COORDINATOR
        assert world.join().result.error is elsewhere
        assert world.sync("m", 1).result.error is elsewhere
        assert world.beat("m", 1) is elsewhere
        assert world.coordinator.leave("g", [LeavingMember("m")]) == LeaveResult(elsewhere)
        assert world.coordinator.describe_group("g").error is elsewhere
        assert list(world.commit(1).result.partitions) == [elsewhere]
        deleted = Answer[ErrorCode]()
        world.coordinator.delete_group("g", deleted)
        assert deleted.result is elsewhere

    def test_while_loading_members_are_asked_to_wait(self) -> None:
        world = World()
        world.coordinator.begin_load(world.coordinator.partition_for("g"), 0)
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert world.join().result.error is loading
        assert world.coordinator.leave("g", []).error is loading
        assert list(world.commit(1).result.partitions) == [loading]
        assert world.coordinator.list_groups().error is loading

    def test_while_loading_heartbeats_are_well_and_syncs_start_over(self) -> None:
        world = World()
        world.coordinator.begin_load(world.coordinator.partition_for("g"), 0)
        assert world.beat("m", 1) is ErrorCode.NONE
        assert world.sync("m", 1).result.error is ErrorCode.REBALANCE_IN_PROGRESS

    def test_after_the_stop_nobody(self, world: World) -> None:
        world.stable(1)
        world.coordinator.stop()
        gone = ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert world.join().result.error is gone
        assert world.coordinator.list_groups().error is gone

    def test_an_empty_group_id_has_no_members(self, world: World) -> None:
        invalid = ErrorCode.INVALID_GROUP_ID
        assert world.join(group_id="").result.error is invalid
        assert world.sync("m", 1, group_id="").result.error is invalid
        assert world.beat("m", 1, group_id="") is invalid
        assert world.coordinator.leave("", []).error is invalid

    def test_an_unknown_group_has_no_members(self, world: World) -> None:
        assert world.sync("m", 1).result.error is ErrorCode.UNKNOWN_MEMBER_ID
        assert world.beat("m", 1) is ErrorCode.UNKNOWN_MEMBER_ID
        left = world.coordinator.leave("g", [LeavingMember("m")])
        assert list(left.members) == [ErrorCode.UNKNOWN_MEMBER_ID]


class TestHeartbeats:
    def test_tell_the_member_to_rejoin_while_others_join(self, world: World) -> None:
        generation_id, [leader_id] = world.stable(1)
        assert world.beat(leader_id, generation_id) is ErrorCode.NONE
        world.join()
        assert world.beat(leader_id, generation_id) is ErrorCode.REBALANCE_IN_PROGRESS

    def test_succeed_between_join_and_sync(self, world: World) -> None:
        generation_id, [leader_id] = world.joined(1)
        assert world.beat(leader_id, generation_id) is ErrorCode.NONE

    def test_of_strangers_and_other_generations_are_refused(self, world: World) -> None:
        generation_id, [leader_id] = world.stable(1)
        assert world.beat("x", generation_id) is ErrorCode.UNKNOWN_MEMBER_ID
        assert world.beat(leader_id, generation_id - 1) is ErrorCode.ILLEGAL_GENERATION

    def test_keep_the_session_alive(self, world: World) -> None:
        generation_id, [leader_id] = world.stable(1)
        for _ in range(10):
            world.timers.advance(9_999)
            assert world.beat(leader_id, generation_id) is ErrorCode.NONE
        world.timers.advance(10_000)
        assert world.beat(leader_id, generation_id) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_cost_no_timer_each(self, world: World) -> None:
        generation_id, [leader_id] = world.stable(1)
        made = world.timers.made
        for _ in range(100):
            world.beat(leader_id, generation_id)
        assert world.timers.made == made


class TestLeaving:
    def test_several_at_once_each_gets_its_code(self, world: World) -> None:
        static = world.join(instance_id="box")
        dynamic = world.join()
        world.timers.advance(0)
        result = world.coordinator.leave(
            "g",
            [
                LeavingMember("", "box"),
                LeavingMember(dynamic.result.member_id),
                LeavingMember(static.result.member_id),
                LeavingMember("", "no such box"),
                LeavingMember("", None),
            ],
        )
        unknown = ErrorCode.UNKNOWN_MEMBER_ID
        assert list(result.members) == [ErrorCode.NONE, ErrorCode.NONE, unknown, unknown, unknown]
        assert world.group().state.value == "Empty"

    def test_a_dynamic_member_cannot_leave_under_an_instance_id(self, world: World) -> None:
        _, [leader_id] = world.stable(1)
        [error] = world.coordinator.leave("g", [LeavingMember(leader_id, "box")]).members
        assert error is ErrorCode.UNKNOWN_MEMBER_ID


class TestLosingLeadership:
    def test_ends_joins_and_syncs_that_wait(self, world: World) -> None:
        generation_id, [_, follower_id] = world.joined(2, group_id="g1")
        sync = world.sync(follower_id, generation_id, group_id="g1")
        world.stable(1, group_id="g2")
        join = world.join(group_id="g2")
        for partition in range(4):
            world.coordinator.unload(partition, 1)
        assert sync.result.error is join.result.error is ErrorCode.NOT_COORDINATOR

    def test_ends_a_join_in_the_initial_delay(self) -> None:
        world = World(group_initial_rebalance_delay_ms=3_000).own_all()
        join = world.join()
        world.coordinator.unload(world.coordinator.partition_for("g"), 1)
        assert join.result.error is ErrorCode.NOT_COORDINATOR
        world.timers.advance(60_000)

    def test_during_a_write_leaves_the_answer_to_the_log(self, world: World) -> None:
        world.log.holds = True
        commit = world.commit(1)
        generation_id, [leader_id] = world.joined(1, group_id="h")
        sync = world.sync(leader_id, generation_id, group_id="h")
        for partition in range(4):
            world.coordinator.unload(partition, 1)
        assert sync.result.error is ErrorCode.NOT_COORDINATOR
        world.log.release(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert list(commit.result.partitions) == [ErrorCode.NOT_COORDINATOR]

    def test_is_forgotten_when_it_is_old_news(self, world: World) -> None:
        generation_id, [leader_id] = world.stable(1)
        partition = world.coordinator.partition_for("g")
        world.coordinator.unload(partition, -1)
        assert world.beat(leader_id, generation_id) is ErrorCode.NONE

    def test_in_the_middle_of_a_load_makes_its_end_void(self) -> None:
        world = World()
        load = world.coordinator.begin_load(0, 1)
        assert load is not None
        world.coordinator.unload(0, 2)
        world.coordinator.finish_load(load)
        assert world.coordinator.table.owned(0) is None

    def test_and_winning_it_back_reads_the_log_again(self, world: World) -> None:
        world.commit(5)
        partition = world.coordinator.partition_for("g")
        world.coordinator.unload(partition, 1)
        world.load(partition, epoch=2)
        assert world.fetched() == 5


class TestAdministration:
    def test_an_unknown_group_is_described_as_dead(self, world: World) -> None:
        described = world.coordinator.describe_group("nobody")
        assert (described.error, described.state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")

    def test_groups_are_listed_by_state_and_type_in_any_case(self, world: World) -> None:
        world.stable(1, group_id="live")
        world.commit(1, group_id="idle")

        def names(*states: str, types: tuple[str, ...] = ()) -> set[str]:
            return {group.group_id for group in world.coordinator.list_groups(states, types).groups}

        assert names() == {"live", "idle"}
        assert names("stable") == {"live"}
        assert names("EMPTY", "Stable") == {"live", "idle"}
        assert names("Dead") == set()
        assert names(types=("Classic",)) == {"live", "idle"}
        assert names(types=("consumer",)) == set()

    def test_a_group_with_members_cannot_be_deleted(self, world: World) -> None:
        world.stable(1)
        assert self.deleted(world) is ErrorCode.NON_EMPTY_GROUP

    def test_an_unknown_group_cannot_be_deleted(self, world: World) -> None:
        assert self.deleted(world) is ErrorCode.GROUP_ID_NOT_FOUND

    def test_a_deleted_group_is_gone_for_good(self, world: World) -> None:
        generation_id, [member_id] = world.stable(1)
        world.commit(1, member_id=member_id, generation_id=generation_id)
        world.coordinator.leave("g", [LeavingMember(member_id)])
        assert self.deleted(world) is ErrorCode.NONE
        assert world.fetched() == -1
        assert world.restarted().coordinator.table.find("g") is None

    def deleted(self, world: World) -> ErrorCode:
        answer = Answer[ErrorCode]()
        world.coordinator.delete_group("g", answer)
        return answer.result


def test_a_reply_may_call_straight_back(world: World) -> None:
    synced = Answer[SyncResult]()

    def sync_at_once(result: JoinResult) -> None:
        assignments = [(result.member_id, b"mine")]
        call = SyncCall(result.generation_id, result.member_id, assignments=assignments)
        world.coordinator.sync("g", call, synced)

    call = JoinCall(
        member_id="",
        instance_id=None,
        client_id="c",
        client_host="h",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[("range", b"")],
        member_id_required=False,
    )
    world.coordinator.join("g", call, sync_at_once)
    world.timers.advance(0)
    assert synced.result.assignment == b"mine"
    assert world.group().state.value == "Stable"
