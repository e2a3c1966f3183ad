"""Which commit holds, and what is not visible yet."""

from barnabas.base.types import TopicPartition
from barnabas.coordinator.offsets import CommittedOffset, GroupOffsets

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def commit(offset: int, sequence: int) -> CommittedOffset:
    return CommittedOffset(offset, -1, "", 0, -1, sequence)


def test_the_later_of_two_commits_holds_whichever_ends_first() -> None:
    offsets = GroupOffsets()
    offsets.commit(P0, commit(20, sequence=2))
    offsets.commit(P0, commit(10, sequence=1))
    assert offsets.get(P0) == commit(20, sequence=2)


def test_a_partition_is_unstable_while_any_write_is_under_way() -> None:
    offsets = GroupOffsets()
    offsets.begin_write([P0])
    offsets.begin_write([P0, P1])
    offsets.end_write([P0])
    assert offsets.is_unstable(P0)
    offsets.end_write([P0, P1])
    assert not offsets.is_unstable(P0)
    assert not offsets.is_unstable(P1)
    assert offsets.is_idle


class TestTransactions:
    def test_hold_offsets_back_until_they_commit(self) -> None:
        offsets = GroupOffsets()
        offsets.hold(7, P0, commit(10, sequence=1))
        assert offsets.get(P0) is None
        assert offsets.is_unstable(P0)
        offsets.end_transaction(7, committed=True)
        assert offsets.get(P0) == commit(10, sequence=1)
        assert not offsets.is_unstable(P0)

    def test_leave_nothing_when_they_abort(self) -> None:
        offsets = GroupOffsets()
        offsets.commit(P0, commit(5, sequence=1))
        offsets.hold(7, P0, commit(10, sequence=2))
        offsets.end_transaction(7, committed=False)
        assert offsets.get(P0) == commit(5, sequence=1)

    def test_lose_against_a_plain_commit_written_later_even_if_they_commit_after_it(self) -> None:
        offsets = GroupOffsets()
        offsets.hold(7, P0, commit(10, sequence=1))
        offsets.commit(P0, commit(20, sequence=2))
        offsets.end_transaction(7, committed=True)
        assert offsets.get(P0) == commit(20, sequence=2)

    def test_of_other_producers_are_left_alone(self) -> None:
        offsets = GroupOffsets()
        offsets.hold(7, P0, commit(10, sequence=1))
        offsets.hold(8, P0, commit(11, sequence=2))
        offsets.end_transaction(7, committed=True)
        assert list(offsets.producers) == [8]
        assert offsets.is_unstable(P0)

    def test_that_never_touched_the_group_end_without_effect(self) -> None:
        offsets = GroupOffsets()
        offsets.end_transaction(9, committed=True)
        assert offsets.is_idle


class TestRemoval:
    def test_takes_visible_and_pending_offsets(self) -> None:
        offsets = GroupOffsets()
        offsets.commit(P0, commit(1, sequence=1))
        offsets.hold(7, P0, commit(2, sequence=2))
        assert offsets.remove([P0], before=3) == 1
        assert offsets.is_idle

    def test_spares_what_was_written_after_the_tombstone(self) -> None:
        offsets = GroupOffsets()
        offsets.commit(P0, commit(1, sequence=5))
        offsets.hold(7, P1, commit(2, sequence=6))
        assert offsets.remove([P0, P1], before=4) == 0
        assert offsets.partitions() == {P0, P1}


def test_partitions_are_all_that_anything_is_known_of() -> None:
    offsets = GroupOffsets()
    offsets.commit(P0, commit(1, sequence=1))
    offsets.begin_write([P1])
    offsets.hold(7, TopicPartition("u", 0), commit(2, sequence=2))
    assert offsets.partitions() == {P0, P1, ("u", 0)}
