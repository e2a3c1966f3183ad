"""A partition's log tells the same groups and offsets that memory held."""

import pytest

from barnabas.base.types import TopicPartition
from barnabas.coordinator.calls import LeavingMember
from barnabas.coordinator.group_records import offset_record, offset_tombstone
from barnabas.coordinator.groups import OwnedPartition
from barnabas.coordinator.loading import FAULTS_KEPT_MAX, PartitionLoad
from barnabas.coordinator.offsets import CommittedOffset
from barnabas.coordinator.outbox import Outbox
from barnabas.coordinator.ports import KeyValue
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.storage.offsets import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from tests.coordinator._fakes import World, subscription

P0 = TopicPartition("t", 0)


def load() -> PartitionLoad:
    return PartitionLoad(0, OwnedPartition())


def stored(offset: int) -> KeyValue:
    return offset_record("g", P0, CommittedOffset(offset, -1, "", 0, -1, 0))


def seen(loaded: PartitionLoad) -> int | None:
    for group in loaded.groups(Outbox(), 0):
        committed = group.offsets.get(P0)
        return None if committed is None else committed.offset
    return None


class TestOffsets:
    def test_the_last_record_holds(self) -> None:
        loaded = load()
        for offset in (1, 2, 3):
            loaded.record(*stored(offset))
        assert seen(loaded) == 3
        assert loaded.record_count == 3

    def test_a_tombstone_forgets(self) -> None:
        loaded = load()
        loaded.record(*stored(1))
        loaded.record(*offset_tombstone("g", P0))
        assert loaded.groups(Outbox(), 0) == []

    def test_a_transaction_counts_from_its_commit_on(self) -> None:
        loaded = load()
        loaded.record(*stored(1))
        loaded.record(*stored(2), producer_id=7)
        assert seen(loaded) == 1
        loaded.marker(7, committed=True)
        assert seen(loaded) == 2

    def test_an_aborted_transaction_never_counts(self) -> None:
        loaded = load()
        loaded.record(*stored(2), producer_id=7)
        loaded.marker(7, committed=False)
        assert loaded.groups(Outbox(), 0) == []

    def test_a_marker_ends_only_what_came_before_it(self) -> None:
        loaded = load()
        loaded.marker(7, committed=True)
        loaded.record(*stored(2), producer_id=7)
        assert seen(loaded) is None

    def test_a_plain_commit_written_inside_a_transaction_beats_it(self) -> None:
        loaded = load()
        loaded.record(*stored(1), producer_id=7)
        loaded.record(*stored(2))
        loaded.marker(7, committed=True)
        assert seen(loaded) == 2

    def test_a_tombstone_inside_a_transaction_beats_it(self) -> None:
        loaded = load()
        loaded.record(*stored(1), producer_id=7)
        loaded.record(*offset_tombstone("g", P0))
        loaded.marker(7, committed=True)
        assert seen(loaded) is None

    def test_open_transactions_stay_open(self) -> None:
        world = World().own_all()
        world.commit(1)
        world.commit_in_transaction(7, 2)
        again = world.restarted()
        partition = again.coordinator.partition_for("g")
        assert again.group().offsets.is_unstable(P0)
        again.coordinator.offsets.end_transaction(partition, 7, committed=True)
        assert again.fetched() == 2

    def test_commits_after_the_load_beat_those_before_it(self) -> None:
        world = World().own_all()
        world.commit(1)
        again = world.restarted()
        again.commit(2)
        assert again.fetched() == 2


class TestGroups:
    def test_with_members_are_stable_and_watched(self) -> None:
        world = World().own_all()
        generation_id, [leader_id, follower_id] = world.stable(2)
        again = world.restarted()
        assert again.beat(leader_id, generation_id) is ErrorCode.NONE
        assert again.sync(follower_id, generation_id).result.assignment == follower_id.encode()
        again.timers.advance(9_000)
        assert again.beat(leader_id, generation_id) is ErrorCode.NONE
        again.timers.advance(1_000)
        assert again.beat(leader_id, generation_id) is ErrorCode.REBALANCE_IN_PROGRESS

    def test_without_members_are_empty_since_the_time_they_were(self) -> None:
        world = World().own_all()
        _, [member_id] = world.stable(1)
        world.coordinator.leave("g", [LeavingMember(member_id)])
        since_ms = world.clock.now_ms()
        world.clock.advance(1_000)
        again = world.restarted().group()
        assert (again.state.value, again.generation_id, again.state_since_ms) == ("Empty", 2, since_ms)

    def test_know_their_subscribed_topics(self) -> None:
        world = World().own_all()
        joined = world.join(protocols=[("range", subscription("a"))])
        world.timers.advance(0)
        world.sync(joined.result.member_id, 1)
        assert world.restarted().group().subscribed_topics == {"a"}

    def test_keep_leader_and_static_members(self) -> None:
        world = World().own_all()
        answers = [world.join(instance_id=name) for name in ("a", "b")]
        world.timers.advance(0)
        world.sync(answers[0].result.leader_id, 1)
        again = world.restarted()
        assert again.group().roster.leader_id == answers[0].result.leader_id
        assert again.join(instance_id="b").result.generation_id == 1

    def test_too_large_for_the_settings_rebalance(self) -> None:
        world = World().own_all()
        _, ids = world.stable(3)
        world.around.settings = World(group_max_size=2, group_initial_rebalance_delay_ms=0).around.settings
        again = world.restarted()
        assert again.beat(ids[0], 1) is ErrorCode.REBALANCE_IN_PROGRESS

    def test_with_members_that_contradict_each_other_keep_the_first(self) -> None:
        members = [
            MemberMetadata(member_id="a", group_instance_id="i", session_timeout=1),
            MemberMetadata(member_id="a", session_timeout=1),
            MemberMetadata(member_id="b", group_instance_id="i", session_timeout=1),
        ]
        value = GroupMetadataValue(protocol_type="consumer", protocol="p", leader="gone", members=members)
        loaded = load()
        loaded.record(GroupMetadataKey(group="g").encode_versioned(2), value.encode_versioned(3))
        [group] = loaded.groups(Outbox(), 0)
        group.check()
        assert [member.member_id for member in group.roster] == ["a"]
        assert group.roster.leader_id == "a"


class TestRecordsThatCannotBeRead:
    def test_are_left_out_and_counted(self) -> None:
        loaded = load()
        loaded.record(None, b"")
        loaded.record(b"\0\1\0", b"")
        loaded.record(*stored(1))
        loaded.record(stored(1).key, b"\0\3")
        assert seen(loaded) == 1
        assert loaded.fault_count == 3
        assert str(loaded.faults[0]) == "a record of __consumer_offsets has no key"

    def test_are_kept_for_the_log_only_up_to_a_limit(self) -> None:
        loaded = load()
        for _ in range(FAULTS_KEPT_MAX + 5):
            loaded.record(b"", None)
        assert loaded.fault_count == FAULTS_KEPT_MAX + 5
        assert len(loaded.faults) == FAULTS_KEPT_MAX

    def test_are_reported_at_the_end(self, caplog: pytest.LogCaptureFixture) -> None:
        world = World()
        world.coordinator.load(0, [(b"", None)])
        assert "partition 0: a key of __consumer_offsets cannot be read" in caplog.text

    def test_of_newer_kinds_are_counted_apart(self) -> None:
        loaded = load()
        loaded.record(b"\0\3\0\1g", b"")
        assert (loaded.unknown_count, loaded.fault_count) == (1, 0)
