"""JoinGroup: ids, limits, protocols, static members."""

import pytest

from barnabas.coordinator.calls import JoinedMember, LeavingMember
from barnabas.protocol.codes import ErrorCode
from tests.coordinator._fakes import World

BOTH = (("range", b"r"), ("sticky", b"s"))


@pytest.fixture
def world() -> World:
    return World().own_all()


class TestMemberIds:
    def test_a_dynamic_member_gets_an_id_first_and_joins_with_it(self, world: World) -> None:
        first = world.join(client_id="app", member_id_required=True).result
        assert (first.error, first.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "app-id1")
        second = world.join(first.member_id, member_id_required=True)
        world.timers.advance(0)
        assert second.result.error is ErrorCode.NONE
        assert second.result.member_id == "app-id1"

    def test_old_clients_are_admitted_without(self, world: World) -> None:
        answer = world.join(client_id="app")
        world.timers.advance(0)
        assert (answer.result.error, answer.result.member_id) == (ErrorCode.NONE, "app-id1")

    def test_static_members_need_no_second_call(self, world: World) -> None:
        answer = world.join(instance_id="box", member_id_required=True)
        world.timers.advance(0)
        assert (answer.result.error, answer.result.member_id) == (ErrorCode.NONE, "box-id1")

    def test_an_id_that_was_never_given_is_unknown(self, world: World) -> None:
        assert world.join("made-up").result.error is ErrorCode.UNKNOWN_MEMBER_ID
        world.stable(1)
        assert world.join("made-up").result.error is ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_promised_id_lapses_after_the_session_timeout(self, world: World) -> None:
        member_id = world.join(member_id_required=True, session_timeout_ms=6_000).result.member_id
        world.timers.advance(6_000)
        assert world.join(member_id).result.error is ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_rebalance_waits_for_who_holds_a_promised_id(self, world: World) -> None:
        _, [leader_id] = world.stable(1)
        promised = world.join(member_id_required=True).result.member_id
        rejoin = world.join(leader_id)
        assert rejoin.waits
        newcomer = world.join(promised)
        assert rejoin.result.generation_id == newcomer.result.generation_id == 2

    def test_a_rebalance_goes_on_when_the_promised_id_is_given_back(self, world: World) -> None:
        _, [leader_id] = world.stable(1)
        promised = world.join(member_id_required=True).result.member_id
        rejoin = world.join(leader_id)
        world.coordinator.leave("g", [LeavingMember(promised)])
        assert rejoin.result.generation_id == 2

    def test_a_rebalance_goes_on_when_the_promise_lapses(self, world: World) -> None:
        _, [leader_id] = world.stable(1, session_timeout_ms=30_000)
        world.join(member_id_required=True, session_timeout_ms=6_000)
        rejoin = world.join(leader_id, session_timeout_ms=30_000)
        world.timers.advance(6_000)
        assert rejoin.result.generation_id == 2

    def test_a_promised_id_cannot_be_used_with_an_instance_id(self, world: World) -> None:
        promised = world.join(member_id_required=True).result.member_id
        assert world.join(promised, instance_id="box").result.error is ErrorCode.UNKNOWN_MEMBER_ID


class TestLimits:
    @pytest.mark.parametrize("session_timeout_ms", [5_999, 1_800_001, -1])
    def test_a_session_timeout_out_of_bounds_is_refused(self, world: World, session_timeout_ms: int) -> None:
        answer = world.join(session_timeout_ms=session_timeout_ms)
        assert answer.result.error is ErrorCode.INVALID_SESSION_TIMEOUT
        assert world.coordinator.table.find("g") is None

    def test_a_full_group_takes_no_newcomer(self) -> None:
        world = World(group_max_size=2).own_all()
        world.stable(2)
        refused = world.join().result
        assert (refused.error, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")

    def test_members_of_a_full_group_may_rejoin(self) -> None:
        world = World(group_max_size=2).own_all()
        _, [leader_id, follower_id] = world.stable(2)
        leader, follower = world.join(leader_id), world.join(follower_id)
        assert leader.result.generation_id == follower.result.generation_id == 2

    def test_the_last_to_rejoin_a_group_that_became_too_large_is_shut_out(self) -> None:
        world = World().own_all()
        _, [leader_id, *others] = world.stable(3)
        world.around.settings = World(group_max_size=2, group_initial_rebalance_delay_ms=0).around.settings
        answers = [world.join(member_id) for member_id in (leader_id, *others)]
        assert [answer.result.error for answer in answers] == [
            ErrorCode.NONE,
            ErrorCode.NONE,
            ErrorCode.GROUP_MAX_SIZE_REACHED,
        ]
        assert len(world.group().roster) == 2

    def test_a_static_member_may_come_back_to_a_full_group(self) -> None:
        world = World(group_max_size=1).own_all()
        joined = world.join(instance_id="box")
        world.timers.advance(0)
        world.sync(joined.result.member_id, 1)
        assert world.join(instance_id="box").result.error is ErrorCode.NONE
        assert world.join(instance_id="can").result.error is ErrorCode.GROUP_MAX_SIZE_REACHED

    def test_promised_ids_do_not_get_around_the_limit(self) -> None:
        world = World(group_max_size=1).own_all()
        promised = [world.join(member_id_required=True).result.member_id for _ in range(2)]
        first = world.join(promised[0])
        assert world.join(promised[1]).result.error is ErrorCode.GROUP_MAX_SIZE_REACHED
        world.timers.advance(0)
        assert first.result.error is ErrorCode.NONE
        assert world.group().roster.promised == {}

    def test_ids_too_long_for_the_records_are_refused(self, world: World) -> None:
        assert world.join(instance_id="i" * 32_767).result.error is ErrorCode.INVALID_REQUEST
        assert world.join(protocols=[("p" * 40_000, b"")]).result.error is ErrorCode.INVALID_REQUEST
        assert world.join(group_id="g" * 40_000).result.error is ErrorCode.INVALID_GROUP_ID


class TestProtocols:
    @pytest.mark.parametrize("how", [{"protocols": ()}, {"protocol_type": ""}])
    def test_the_first_member_must_bring_a_type_and_a_protocol(
        self, world: World, how: dict[str, str]
    ) -> None:
        answer = world.join(**how)  # type: ignore[arg-type]  # one of two shapes
        assert answer.result.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_a_refused_first_member_leaves_no_group_behind(self, world: World) -> None:
        world.join(protocols=())
        assert world.coordinator.table.find("g") is None

    def test_another_type_is_inconsistent(self, world: World) -> None:
        world.stable(1)
        answer = world.join(protocol_type="connect")
        assert answer.result.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_no_common_protocol_is_inconsistent(self, world: World) -> None:
        world.stable(1)
        answer = world.join(protocols=[("sticky", b"")])
        assert answer.result.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_only_the_leader_is_told_the_members_and_their_metadata(self, world: World) -> None:
        first, second = world.join(protocols=[("range", b"1")]), world.join(protocols=[("range", b"2")])
        world.timers.advance(0)
        assert first.result.leader_id == first.result.member_id
        assert list(first.result.members) == [
            JoinedMember(first.result.member_id, None, b"1"),
            JoinedMember(second.result.member_id, None, b"2"),
        ]
        assert list(second.result.members) == []
        assert second.result.protocol_type == "consumer"
        assert second.result.protocol_name == "range"

    def test_the_chosen_protocol_is_common_to_all(self, world: World) -> None:
        first = world.join(protocols=BOTH)
        world.join(protocols=[("sticky", b"x")])
        world.timers.advance(0)
        assert first.result.protocol_name == "sticky"
        assert first.result.members[0].metadata == b"s"


class TestRejoining:
    def test_a_follower_with_the_same_metadata_gets_the_current_generation(self, world: World) -> None:
        generation_id, [_, follower_id] = world.stable(2)
        again = world.join(follower_id).result
        assert (again.error, again.generation_id) == (ErrorCode.NONE, generation_id)
        assert world.beat(follower_id, generation_id) is ErrorCode.NONE

    def test_a_follower_with_new_metadata_makes_the_group_rebalance(self, world: World) -> None:
        generation_id, [leader_id, follower_id] = world.stable(2)
        assert world.join(follower_id, protocols=[("range", b"other topics")]).waits
        assert world.beat(leader_id, generation_id) is ErrorCode.REBALANCE_IN_PROGRESS

    def test_the_leader_makes_the_group_rebalance_by_coming_again(self, world: World) -> None:
        generation_id, [leader_id, follower_id] = world.stable(2)
        assert world.join(leader_id).waits
        assert world.beat(follower_id, generation_id) is ErrorCode.REBALANCE_IN_PROGRESS

    def test_between_join_and_sync_a_lost_answer_is_given_again(self, world: World) -> None:
        generation_id, [leader_id, follower_id] = world.joined(2)
        leader, follower = world.join(leader_id).result, world.join(follower_id).result
        assert leader.generation_id == follower.generation_id == generation_id
        assert len(leader.members) == 2
        assert len(follower.members) == 0

    def test_between_join_and_sync_new_metadata_starts_over(self, world: World) -> None:
        generation_id, [leader_id, follower_id] = world.joined(2)
        sync = world.sync(follower_id, generation_id)
        answer = world.join(leader_id, protocols=[("range", b"other")])
        assert sync.result.error is ErrorCode.REBALANCE_IN_PROGRESS
        assert answer.waits
        world.join(follower_id)
        assert answer.result.generation_id == generation_id + 1

    def test_a_second_join_on_another_connection_takes_over(self, world: World) -> None:
        _, [leader_id, _] = world.stable(2)
        first, second = world.join(leader_id), world.join(leader_id)
        assert first.result.error is ErrorCode.REBALANCE_IN_PROGRESS
        assert second.waits


class TestStaticMembers:
    def test_one_that_comes_back_takes_its_place_without_a_rebalance(self, world: World) -> None:
        old = world.join(instance_id="box")
        world.join(instance_id="other")
        world.timers.advance(0)
        old_id, leader_id = old.result.member_id, old.result.leader_id
        world.sync(leader_id, 1, [(old_id, b"mine")])
        new = world.join(instance_id="box").result
        assert (new.error, new.generation_id) == (ErrorCode.NONE, 1)
        assert new.member_id != old_id
        assert world.sync(new.member_id, 1, instance_id="box").result.assignment == b"mine"

    def test_the_old_id_is_fenced_from_then_on(self, world: World) -> None:
        old_id = self._stable_box(world)
        world.join(instance_id="box")
        fenced = ErrorCode.FENCED_INSTANCE_ID
        assert world.beat(old_id, 1, instance_id="box") is fenced
        assert world.sync(old_id, 1, instance_id="box").result.error is fenced
        assert world.join(old_id, instance_id="box").result.error is fenced
        commit = world.commit(1, member_id=old_id, generation_id=1, instance_id="box")
        assert list(commit.result.partitions) == [fenced]
        [left] = world.coordinator.leave("g", [LeavingMember(old_id, "box")]).members
        assert left is fenced

    def test_a_leader_that_comes_back_is_told_to_skip_the_assignment(self, world: World) -> None:
        self._stable_box(world)
        back = world.join(instance_id="box", can_skip_assignment=True).result
        assert back.skip_assignment
        assert back.leader_id == back.member_id
        assert [member.member_id for member in back.members] == [back.member_id]

    def test_an_older_leader_that_comes_back_is_told_the_old_leader_id(self, world: World) -> None:
        old_id = self._stable_box(world)
        back = world.join(instance_id="box", can_skip_assignment=False).result
        assert not back.skip_assignment
        assert back.leader_id == old_id
        assert list(back.members) == []

    def test_a_follower_that_comes_back_does_not_skip(self, world: World) -> None:
        answers = [world.join(instance_id=name) for name in ("lead", "follow")]
        world.timers.advance(0)
        world.sync(answers[0].result.member_id, 1)
        back = world.join(instance_id="follow").result
        assert not back.skip_assignment
        assert list(back.members) == []

    def test_the_new_id_is_stored_before_it_is_told(self, world: World) -> None:
        self._stable_box(world)
        world.log.holds = True
        back = world.join(instance_id="box")
        assert back.waits
        world.log.release()
        member_id = back.result.member_id
        assert member_id in world.restarted().group().roster

    def test_a_failed_store_gives_the_old_member_its_place_back(self, world: World) -> None:
        old_id = self._stable_box(world)
        world.log.failing = ErrorCode.NOT_ENOUGH_REPLICAS
        back = world.join(instance_id="box").result
        assert (back.error, back.member_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
        assert world.beat(old_id, 1, instance_id="box") is ErrorCode.NONE
        world.group()

    def test_a_rebalance_during_the_store_answers_the_newcomer(self, world: World) -> None:
        self._stable_box(world)
        world.log.holds = True
        back = world.join(instance_id="box")
        other = world.join()
        world.log.release(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert back.result.generation_id == other.result.generation_id == 2

    def test_two_that_claim_one_instance_id_fence_each_other(self, world: World) -> None:
        self._stable_box(world)
        world.log.holds = True
        first, second = world.join(instance_id="box"), world.join(instance_id="box")
        assert first.result.error is ErrorCode.FENCED_INSTANCE_ID
        world.log.release()
        assert second.result.error is ErrorCode.NONE

    def test_one_that_changes_the_common_protocol_makes_the_group_rebalance(self, world: World) -> None:
        answers = [world.join(instance_id=name, protocols=BOTH) for name in ("a", "b")]
        world.timers.advance(0)
        world.sync(answers[0].result.member_id, 1)
        assert world.join(instance_id="b", protocols=[("sticky", b"s")]).waits
        assert world.beat(answers[0].result.member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS

    def test_one_that_comes_back_while_the_leader_assigns_makes_the_group_rebalance(
        self, world: World
    ) -> None:
        answers = [world.join(instance_id=name) for name in ("a", "b")]
        world.timers.advance(0)
        waiting = world.sync(answers[1].result.member_id, 1)
        assert world.join(instance_id="b").waits
        assert waiting.result.error is ErrorCode.FENCED_INSTANCE_ID
        assert world.beat(answers[0].result.member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS

    def test_one_that_comes_back_while_joining_fences_the_waiting_one(self, world: World) -> None:
        first = world.join(instance_id="box")
        second = world.join(instance_id="box")
        assert first.result.error is ErrorCode.FENCED_INSTANCE_ID
        world.timers.advance(0)
        assert second.result.error is ErrorCode.NONE

    def test_one_replaced_before_its_sync_still_owes_it(self, world: World) -> None:
        lead = world.join(instance_id="a", session_timeout_ms=1_800_000)
        world.join(instance_id="b", session_timeout_ms=1_800_000)
        world.timers.advance(0)
        world.sync(lead.result.member_id, 1)
        back = world.join(instance_id="b", session_timeout_ms=1_800_000).result
        assert world.group().owing_sync == {back.member_id}
        world.sync(back.member_id, 1)
        world.timers.advance(60_000)
        assert world.beat(lead.result.member_id, 1) is ErrorCode.NONE

    def test_an_unknown_instance_id_with_a_member_id_is_unknown(self, world: World) -> None:
        _, [member_id] = world.stable(1)
        assert world.join(member_id, instance_id="box").result.error is ErrorCode.UNKNOWN_MEMBER_ID

    def _stable_box(self, world: World) -> str:
        joined = world.join(instance_id="box")
        world.timers.advance(0)
        world.sync(joined.result.member_id, 1, [(joined.result.member_id, b"all")])
        return joined.result.member_id
