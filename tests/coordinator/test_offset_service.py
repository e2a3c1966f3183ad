"""OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete."""

import pytest

from barnabas.base.types import TopicPartition
from barnabas.coordinator.calls import FetchedOffset, OffsetsResult, OffsetToCommit
from barnabas.coordinator.ports import Producer
from barnabas.protocol.codes import ErrorCode
from tests.coordinator._fakes import Answer, World, subscription

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def world() -> World:
    return World().own_all()


def errors(answer: Answer[OffsetsResult]) -> list[ErrorCode]:
    assert answer.result.error is ErrorCode.NONE
    return list(answer.result.partitions)


class TestCommits:
    def test_without_a_group_make_one_that_only_stores_offsets(self, world: World) -> None:
        assert errors(world.commit(7)) == [ErrorCode.NONE]
        assert world.fetched() == 7
        assert world.group().state.value == "Empty"
        assert world.group().protocol_type is None

    def test_of_a_generation_nobody_knows_are_refused(self, world: World) -> None:
        assert errors(world.commit(7, generation_id=3, member_id="m")) == [ErrorCode.ILLEGAL_GENERATION]
        assert world.coordinator.table.find("g") is None

    def test_for_the_empty_group_id_are_taken_as_ever(self, world: World) -> None:
        assert errors(world.commit(7, group_id="")) == [ErrorCode.NONE]
        assert world.fetched(group_id="") == 7

    def test_are_answered_only_when_durable_and_seen_only_then(self, world: World) -> None:
        world.commit(1)
        world.log.holds = True
        answer = world.commit(2)
        assert answer.waits
        assert world.fetched() == 1
        world.log.release()
        assert errors(answer) == [ErrorCode.NONE]
        assert world.fetched() == 2

    def test_that_the_log_refuses_change_nothing(self, world: World) -> None:
        world.commit(1)
        world.log.failing = ErrorCode.NOT_ENOUGH_REPLICAS
        assert errors(world.commit(2)) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        assert world.fetched() == 1
        assert not world.group().offsets.is_unstable(P0)

    def test_for_unknown_partitions_are_refused_one_by_one(self, world: World) -> None:
        answer = Answer[OffsetsResult]()
        world.coordinator.offsets.commit(
            "g",
            member_id="",
            generation_id=-1,
            offsets=[
                OffsetToCommit(P0, 1),
                OffsetToCommit(TopicPartition("t", 99), 2),
                OffsetToCommit(P1, 3, metadata="m" * 4_097),
                OffsetToCommit(TopicPartition("t", 2), 4),
            ],
            reply=answer,
        )
        assert errors(answer) == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.OFFSET_METADATA_TOO_LARGE,
            ErrorCode.NONE,
        ]
        assert world.fetched(partition=2) == 4
        assert world.fetched(partition=1) == -1

    def test_with_a_failed_write_keep_the_reason_of_each_partition(self, world: World) -> None:
        world.log.failing = ErrorCode.MESSAGE_TOO_LARGE
        world.topics.gone.add("u")
        answer = Answer[OffsetsResult]()
        world.coordinator.offsets.commit(
            "g",
            member_id="",
            generation_id=-1,
            offsets=[OffsetToCommit(TopicPartition("u", 0), 1), OffsetToCommit(P0, 1)],
            reply=answer,
        )
        assert errors(answer) == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
        ]

    def test_count_metadata_as_kafka_does(self, world: World) -> None:
        assert errors(world.commit(1, metadata="é" * 4_096)) == [ErrorCode.NONE]
        assert errors(world.commit(1, metadata="\U0001f600" * 2_048)) == [ErrorCode.NONE]
        assert errors(world.commit(1, metadata="\U0001f600" * 2_049)) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]

    def test_never_store_metadata_that_no_record_can_hold(self) -> None:
        world = World(offset_metadata_max_bytes=100_000).own_all()
        assert errors(world.commit(1, metadata="m" * 40_000)) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]

    def test_without_metadata_store_empty_text(self, world: World) -> None:
        world.commit(1, metadata=None)
        assert world.restarted().group().offsets.committed[P0].metadata == ""

    def test_of_the_last_generation_are_taken_while_others_join(self, world: World) -> None:
        generation_id, [leader_id] = world.stable(1)
        world.join()
        answer = world.commit(1, member_id=leader_id, generation_id=generation_id)
        assert errors(answer) == [ErrorCode.NONE]

    def test_are_a_sign_of_life(self, world: World) -> None:
        generation_id, [leader_id] = world.stable(1)
        for offset in range(5):
            world.timers.advance(9_000)
            answer = world.commit(offset, member_id=leader_id, generation_id=generation_id)
            assert errors(answer) == [ErrorCode.NONE]

    def test_cost_no_timer(self, world: World) -> None:
        generation_id, [leader_id] = world.stable(1)
        made = world.timers.made
        for offset in range(50):
            world.commit(offset, member_id=leader_id, generation_id=generation_id)
        assert world.timers.made == made

    def test_go_to_the_partition_of_their_group(self, world: World) -> None:
        world.commit(1, group_id="some group")
        partition = world.coordinator.partition_for("some group")
        assert list(world.log.partitions) == [partition]

    def test_may_bring_their_own_time(self, world: World) -> None:
        answer = Answer[OffsetsResult]()
        offsets = [OffsetToCommit(P0, 1, timestamp_ms=123)]
        world.coordinator.offsets.commit("g", member_id="", generation_id=-1, offsets=offsets, reply=answer)
        assert world.restarted().group().offsets.committed[P0].commit_ms == 123

    def test_by_id_too_long_for_a_key_are_refused(self, world: World) -> None:
        assert errors(world.commit(1, group_id="g" * 40_000)) == [ErrorCode.INVALID_GROUP_ID]


class TestTransactionalCommits:
    def test_are_seen_after_the_commit_marker(self, world: World) -> None:
        world.commit(1)
        assert errors(world.commit_in_transaction(7, 10)) == [ErrorCode.NONE]
        assert world.fetched() == 1
        world.coordinator.offsets.end_transaction(self._partition(world), 7, committed=True)
        assert world.fetched() == 10

    def test_are_forgotten_after_the_abort_marker(self, world: World) -> None:
        world.commit(1)
        world.commit_in_transaction(7, 10)
        world.coordinator.offsets.end_transaction(self._partition(world), 7, committed=False)
        assert world.fetched() == 1
        assert not world.group().offsets.is_unstable(P0)

    def test_make_a_fetch_that_requires_stability_wait(self, world: World) -> None:
        world.commit(1)
        world.commit_in_transaction(7, 10)
        fetched = world.coordinator.offsets.fetch("g", [P0, P1], require_stable=True)
        assert list(fetched.partitions) == [
            FetchedOffset(P0, error=ErrorCode.UNSTABLE_OFFSET_COMMIT),
            FetchedOffset(P1),
        ]

    def test_are_written_as_a_batch_of_their_producer(self, world: World) -> None:
        world.commit_in_transaction(7, 10)
        [entry] = world.log.partitions[self._partition(world)]
        assert entry.producer == Producer(7, 0)

    def test_that_the_log_refuses_leave_nothing_behind(self, world: World) -> None:
        world.log.failing = ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert errors(world.commit_in_transaction(7, 10)) == [ErrorCode.NOT_COORDINATOR]
        assert world.group().offsets.is_idle

    def test_end_in_all_groups_of_the_partition(self, world: World) -> None:
        groups = [f"g{number}" for number in range(20)]
        for group_id in groups:
            world.commit_in_transaction(7, 10, group_id=group_id)
        partition = world.coordinator.partition_for("g0")
        world.coordinator.offsets.end_transaction(partition, 7, committed=True)
        seen = {group_id: world.fetched(group_id=group_id) for group_id in groups}
        assert seen == {
            group_id: 10 if world.coordinator.partition_for(group_id) == partition else -1
            for group_id in groups
        }

    def test_need_a_group_id(self, world: World) -> None:
        assert errors(world.commit_in_transaction(7, 1, group_id="")) == [ErrorCode.INVALID_GROUP_ID]

    def test_of_a_member_that_is_not_one_are_refused(self, world: World) -> None:
        world.stable(1)
        refused = world.commit_in_transaction(7, 1, member_id="zombie")
        assert errors(refused) == [ErrorCode.UNKNOWN_MEMBER_ID]

    def test_whose_partition_moved_away_meanwhile_are_left_to_its_new_leader(self, world: World) -> None:
        world.log.holds = True
        answer = world.commit_in_transaction(7, 10)
        world.coordinator.unload(self._partition(world))
        world.log.release()
        assert errors(answer) == [ErrorCode.NONE]
        world.coordinator.offsets.end_transaction(self._partition(world), 7, committed=True)

    def _partition(self, world: World) -> int:
        return world.coordinator.partition_for("g")


class TestFetches:
    def test_of_an_unknown_group_answer_minus_one_without_error(self, world: World) -> None:
        fetched = world.coordinator.offsets.fetch("nobody", [P0])
        assert fetched.error is ErrorCode.NONE
        assert list(fetched.partitions) == [FetchedOffset(P0)]

    def test_of_everything_list_what_is_committed_topic_by_topic(self, world: World) -> None:
        world.commit(5, partition=1, metadata="note")
        world.commit(7, topic="a")
        world.commit(6, partition=0)
        fetched = world.coordinator.offsets.fetch("g", None)
        assert list(fetched.partitions) == [
            FetchedOffset(TopicPartition("a", 0), 7),
            FetchedOffset(P0, 6),
            FetchedOffset(P1, 5, metadata="note"),
        ]
        assert list(world.coordinator.offsets.fetch("nobody", None).partitions) == []

    def test_while_a_write_is_under_way_are_unstable_only_if_asked(self, world: World) -> None:
        world.commit(1)
        world.log.holds = True
        world.commit(2)
        fetch = world.coordinator.offsets.fetch
        assert fetch("g", [P0]).partitions[0].offset == 1
        assert fetch("g", [P0], require_stable=True).partitions[0].error is ErrorCode.UNSTABLE_OFFSET_COMMIT
        assert fetch("g", None, require_stable=True).partitions[0].error is ErrorCode.UNSTABLE_OFFSET_COMMIT

    def test_go_to_the_coordinator(self) -> None:
        world = World()
        assert world.coordinator.offsets.fetch("g", [P0]).error is ErrorCode.NOT_COORDINATOR
        world.coordinator.begin_load(world.coordinator.partition_for("g"), 0)
        assert world.coordinator.offsets.fetch("g", [P0]).error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class TestDeletes:
    def delete(self, world: World, *partitions: TopicPartition, group_id: str = "g") -> OffsetsResult:
        answer = Answer[OffsetsResult]()
        world.coordinator.offsets.delete(group_id, partitions, answer)
        return answer.result

    def test_of_an_empty_group_take_the_offsets_away(self, world: World) -> None:
        world.commit(1)
        world.commit(2, partition=1)
        assert list(self.delete(world, P0, TopicPartition("t", 5)).partitions) == [ErrorCode.NONE] * 2
        assert world.fetched() == -1
        assert world.fetched(partition=1) == 2
        assert world.restarted().fetched() == -1

    def test_spare_topics_that_consumers_subscribe_to(self, world: World) -> None:
        joined = world.join(protocols=[("range", subscription("t"))])
        world.timers.advance(0)
        member_id = joined.result.member_id
        world.sync(member_id, 1)
        world.commit(1, member_id=member_id, generation_id=1)
        world.commit(1, topic="u", member_id=member_id, generation_id=1)
        result = self.delete(world, P0, TopicPartition("u", 0))
        assert list(result.partitions) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE]
        assert world.fetched() == 1
        assert world.fetched("u") == -1

    def test_of_other_live_groups_are_refused(self, world: World) -> None:
        world.join(protocol_type="connect")
        assert self.delete(world, P0).error is ErrorCode.NON_EMPTY_GROUP

    def test_of_unknown_groups_and_partitions_say_so(self, world: World) -> None:
        assert self.delete(world, P0).error is ErrorCode.GROUP_ID_NOT_FOUND
        assert self.delete(world, P0, group_id="").error is ErrorCode.INVALID_GROUP_ID
        world.commit(1)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert list(self.delete(world, TopicPartition("t", 77)).partitions) == [unknown]

    def test_that_the_log_refuses_change_nothing(self, world: World) -> None:
        world.commit(1)
        world.log.failing = ErrorCode.KAFKA_STORAGE_ERROR
        assert list(self.delete(world, P0).partitions) == [ErrorCode.NOT_COORDINATOR]
        assert world.fetched() == 1


class TestDeletedTopics:
    def test_take_their_offsets_with_them_in_every_group(self, world: World) -> None:
        world.commit(1)
        world.commit(2, topic="u")
        world.commit(3, group_id="h")
        world.commit_in_transaction(7, 4, partition=1)
        world.coordinator.offsets.topics_deleted({"t"})
        assert world.fetched() == -1
        assert world.fetched("u") == 2
        assert world.coordinator.table.find("h") is None
        assert not world.group().offsets.is_unstable(P1)
        again = world.restarted()
        assert again.fetched("u") == 2
        assert again.coordinator.offsets.fetch("g", None).partitions == [
            FetchedOffset(TopicPartition("u", 0), 2)
        ]
