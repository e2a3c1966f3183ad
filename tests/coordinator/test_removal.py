"""What expires when, and what a tombstone takes."""

import pytest

from barnabas.base.types import TopicPartition
from barnabas.coordinator.calls import LeavingMember
from barnabas.coordinator.group_records import group_tombstone, offset_tombstone
from barnabas.coordinator.removal import expired_partitions
from barnabas.protocol.codes import ErrorCode
from tests.coordinator._fakes import Answer, World, subscription

WEEK_MS = 7 * 24 * 3_600_000
P0 = TopicPartition("t", 0)


@pytest.fixture
def world() -> World:
    return World().own_all()


def expired(world: World) -> list[TopicPartition]:
    return expired_partitions(world.group(), world.clock.now_ms(), world.around.settings.retention_ms)


def consumers(world: World, *topics: str) -> str:
    joined = world.join(protocols=[("range", subscription(*topics))], session_timeout_ms=1_800_000)
    world.timers.advance(0)
    world.sync(joined.result.member_id, 1)
    return joined.result.member_id


class TestOffsetsExpire:
    def test_without_a_group_a_week_after_their_commit(self, world: World) -> None:
        world.commit(1)
        world.clock.advance(WEEK_MS - 1)
        assert expired(world) == []
        world.clock.advance(1)
        assert expired(world) == [P0]

    def test_of_an_empty_group_a_week_after_it_became_empty(self, world: World) -> None:
        member_id = consumers(world, "t")
        world.commit(1, member_id=member_id, generation_id=1)
        world.clock.advance(2 * WEEK_MS)
        world.coordinator.leave("g", [LeavingMember(member_id)])
        assert expired(world) == []
        world.clock.advance(WEEK_MS)
        assert expired(world) == [P0]

    def test_of_an_empty_group_by_commit_time_if_its_record_does_not_say_when(self, world: World) -> None:
        member_id = consumers(world, "t")
        world.commit(1, member_id=member_id, generation_id=1)
        world.coordinator.leave("g", [LeavingMember(member_id)])
        world.group().state_since_ms = None
        world.clock.advance(WEEK_MS)
        assert expired(world) == [P0]

    def test_of_live_consumers_only_for_topics_they_do_not_subscribe_to(self, world: World) -> None:
        member_id = consumers(world, "t")
        world.commit(1, member_id=member_id, generation_id=1)
        world.commit(1, topic="u", member_id=member_id, generation_id=1)
        world.clock.advance(WEEK_MS)
        assert expired(world) == [TopicPartition("u", 0)]

    def test_of_other_protocols_never_while_members_live(self, world: World) -> None:
        joined = world.join(protocol_type="connect")
        world.timers.advance(0)
        world.sync(joined.result.member_id, 1)
        world.commit(1, member_id=joined.result.member_id, generation_id=1)
        world.clock.advance(WEEK_MS)
        assert expired(world) == []

    def test_never_while_the_group_rebalances(self, world: World) -> None:
        member_id = consumers(world)
        world.commit(1, member_id=member_id, generation_id=1)
        world.join()
        world.clock.advance(WEEK_MS)
        assert expired(world) == []

    def test_at_the_time_their_commit_named(self, world: World) -> None:
        world.commit(1, retention_ms=1_000)
        world.clock.advance(999)
        assert expired(world) == []
        world.clock.advance(1)
        assert expired(world) == [P0]

    def test_never_while_a_new_one_is_being_written_or_pending(self, world: World) -> None:
        world.commit(1)
        world.commit(1, partition=1)
        world.clock.advance(WEEK_MS)
        world.commit_in_transaction(7, 2, partition=1)
        world.log.holds = True
        world.commit(2)
        assert expired(world) == []


class TestSweeps:
    def test_run_by_themselves_and_leave_tombstones(self, world: World) -> None:
        world.commit(1)
        world.timers.advance(WEEK_MS + 600_000)
        assert world.coordinator.table.find("g") is None
        partition = world.coordinator.partition_for("g")
        assert world.log.records(partition)[-1] == offset_tombstone("g", P0)
        assert world.coordinator.removal.removed_count == 1

    def test_take_groups_that_hold_nothing(self, world: World) -> None:
        _, [member_id] = world.stable(1)
        world.coordinator.leave("g", [LeavingMember(member_id)])
        world.timers.advance(600_000)
        assert world.coordinator.table.find("g") is None
        partition = world.coordinator.partition_for("g")
        assert world.log.records(partition)[-1] == group_tombstone("g")
        assert world.restarted().coordinator.table.find("g") is None

    def test_spare_groups_with_promised_ids(self, world: World) -> None:
        world.join(member_id_required=True, session_timeout_ms=1_800_000)
        world.timers.advance(600_000)
        assert world.group().roster.promised

    def test_try_again_after_a_failed_write(self, world: World) -> None:
        world.commit(1, retention_ms=0)
        world.log.failing = ErrorCode.NOT_ENOUGH_REPLICAS
        world.timers.advance(600_000)
        assert world.fetched() == 1
        world.log.failing = ErrorCode.NONE
        world.timers.advance(600_000)
        assert world.coordinator.table.find("g") is None

    def test_keep_a_group_whose_other_offsets_live_on(self, world: World) -> None:
        world.commit(1, retention_ms=0)
        world.commit(2, partition=1)
        world.timers.advance(600_000)
        assert world.fetched() == -1
        assert world.fetched(partition=1) == 2

    def test_stop_with_the_coordinator(self, world: World) -> None:
        world.coordinator.stop()
        assert world.timers.armed == 0


class TestTombstonesAndTime:
    def test_a_commit_after_the_tombstone_survives_it(self, world: World) -> None:
        world.commit(1)
        world.log.holds = True
        deleted = Answer[ErrorCode]()
        world.coordinator.delete_group("g", deleted)
        world.commit(2)
        world.log.release()
        assert deleted.result is ErrorCode.NONE
        assert world.fetched() == 2
        assert world.restarted().fetched() == 2

    def test_a_commit_still_being_written_before_the_tombstone_does_not(self, world: World) -> None:
        world.log.holds = True
        world.commit(1)
        world.coordinator.delete_group("g", Answer[ErrorCode]())
        world.log.release()
        assert world.coordinator.table.find("g") is None
        assert world.restarted().coordinator.table.find("g") is None

    def test_nothing_disappears_before_the_tombstone_is_durable(self, world: World) -> None:
        world.commit(1)
        world.log.holds = True
        answer = Answer[ErrorCode]()
        world.coordinator.delete_group("g", answer)
        assert world.fetched() == 1
        world.log.release(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert answer.result is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert world.fetched() == 1

    def test_a_member_that_joins_meanwhile_keeps_the_group_alive(self, world: World) -> None:
        world.commit(1)
        world.log.holds = True
        world.coordinator.delete_group("g", Answer[ErrorCode]())
        joined = world.join()
        world.log.release()
        world.timers.advance(0)
        assert joined.result.error is ErrorCode.NONE
        assert world.fetched() == -1

    def test_a_group_used_again_without_members_starts_over(self, world: World) -> None:
        _, [member_id] = world.stable(1)
        world.coordinator.leave("g", [LeavingMember(member_id)])
        world.log.holds = True
        world.coordinator.delete_group("g", Answer[ErrorCode]())
        world.commit(1)
        world.log.release()
        assert (world.group().generation_id, world.group().protocol_type) == (0, None)
        again = world.restarted().group()
        assert (again.generation_id, again.protocol_type) == (0, None)

    def test_a_record_written_after_the_tombstone_says_what_the_group_is(self, world: World) -> None:
        generation_id, [member_id] = world.stable(1)
        world.log.holds = True
        world.commit(1, member_id=member_id, generation_id=generation_id)
        world.coordinator.leave("g", [LeavingMember(member_id)])
        world.coordinator.offsets.topics_deleted({"t"})
        world.commit(2)
        world.join(rebalance_timeout_ms=12_000)
        world.timers.advance(12_000)  # it never sends SyncGroup: the group is Empty once more
        world.log.release()
        assert world.group().generation_id == 4
        assert world.restarted().group().generation_id == 4
        assert world.fetched() == 2

    def test_two_deletions_on_their_way_take_the_commit_between_them(self, world: World) -> None:
        _, [member_id] = world.stable(1)
        world.coordinator.leave("g", [LeavingMember(member_id)])
        world.log.holds = True
        world.coordinator.delete_group("g", Answer[ErrorCode]())
        world.commit(1)
        world.coordinator.delete_group("g", Answer[ErrorCode]())
        world.log.release()
        assert world.coordinator.table.find("g") is None
        assert world.restarted().coordinator.table.find("g") is None


class TestDeletionAndPromisedIds:
    @pytest.mark.parametrize("used_before", [False, True])
    def test_a_deleted_group_is_gone_at_once(self, world: World, used_before: bool) -> None:
        if used_before:
            _, [member_id] = world.stable(1)
            world.commit(1, member_id=member_id, generation_id=1)
            world.coordinator.leave("g", [LeavingMember(member_id)])
        promised = world.join(member_id_required=True)
        assert promised.result.error is ErrorCode.MEMBER_ID_REQUIRED
        deleted, again = Answer[ErrorCode](), Answer[ErrorCode]()
        world.coordinator.delete_group("g", deleted)
        world.coordinator.delete_group("g", again)
        assert (deleted.result, again.result) == (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND)
        assert world.coordinator.list_groups().groups == []
        refused = world.join(promised.result.member_id, member_id_required=True)
        assert refused.result.error is ErrorCode.UNKNOWN_MEMBER_ID
        assert world.restarted().coordinator.table.find("g") is None

    def test_an_id_promised_after_the_tombstone_holds(self, world: World) -> None:
        world.commit(1)
        before = world.join(member_id_required=True)
        world.log.holds = True
        world.coordinator.delete_group("g", Answer[ErrorCode]())
        after = world.join(member_id_required=True)
        world.log.holds = False
        world.log.release()
        assert set(world.group().roster.promised) == {after.result.member_id}
        assert world.join(before.result.member_id).result.error is ErrorCode.UNKNOWN_MEMBER_ID
        joined = world.join(after.result.member_id)
        world.timers.advance(0)
        assert joined.result.error is ErrorCode.NONE

    def test_a_deletion_that_could_not_be_written_breaks_no_promise(self, world: World) -> None:
        world.commit(1)
        promised = world.join(member_id_required=True)
        world.log.failing = ErrorCode.NOT_ENOUGH_REPLICAS
        world.coordinator.delete_group("g", Answer[ErrorCode]())
        assert set(world.group().roster.promised) == {promised.result.member_id}
        assert world.fetched() == 1
