"""Partition states: sessions, stages, and what may be handed out."""

import re

import pytest

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.subscription import OffsetAndMetadata, PartitionState, Reset, Stage, Subscription

TP = TopicPartition("a", 0)


class TestPartitionState:
    def test_nothing_is_handed_out_before_there_is_a_position(self) -> None:
        state = PartitionState(TP)
        assert (state.stage, state.is_open) == (Stage.START, False)
        state.seek(5)
        assert (state.position, state.fetch_offset, state.is_open) == (5, 5, True)

    def test_a_seek_begins_a_new_session(self) -> None:
        state = PartitionState(TP)
        state.seek(5)
        before = state.session
        state.seek(5)
        assert state.session != before

    def test_a_paused_partition_is_closed_until_it_is_resumed(self) -> None:
        state = PartitionState(TP)
        state.seek(5)
        state.pause(True)
        assert not state.is_open
        state.pause(False)
        assert state.is_open

    def test_a_partition_being_revoked_is_closed_for_good(self) -> None:
        state = PartitionState(TP)
        state.seek(5)
        state.revoke()
        state.seek(7)
        assert not state.is_open

    def test_a_reset_takes_the_position_until_it_is_looked_up(self) -> None:
        state = PartitionState(TP)
        state.seek(5)
        state.want_reset(Reset(-2))
        assert not state.has_position
        assert not state.is_open

    def test_validation_drops_what_was_fetched_from_the_old_leader(self) -> None:
        state = PartitionState(TP)
        state.seek(5, epoch=1)
        state.fetch_offset = 9
        session = state.session
        state.want_validation()
        assert (state.is_open, state.stage) == (False, Stage.VALIDATE)
        state.validated(2)
        assert (state.is_open, state.stage) == (True, Stage.FETCH)
        assert (state.fetch_offset, state.leader_epoch) == (5, 2)
        assert state.session != session

    def test_an_offset_without_an_epoch_needs_no_validation(self) -> None:
        state = PartitionState(TP)
        stages = []
        for epoch in (-1, 3):
            state.seek(5, epoch=epoch, validate=True)
            stages.append(state.stage)
        assert stages == [Stage.FETCH, Stage.VALIDATE]

    def test_the_end_depends_on_the_isolation_level(self) -> None:
        state = PartitionState(TP)
        assert state.end_offset(False) is None
        state.high_watermark, state.last_stable_offset = 9, 4
        assert (state.end_offset(False), state.end_offset(True)) == (9, 4)

    def test_it_prints_where_it_is(self) -> None:
        assert repr(PartitionState(TP)) == "PartitionState(a-0, position=-1, START)"


class TestSubscription:
    def test_partitions_that_stay_keep_their_states(self) -> None:
        subscription = Subscription()
        subscription.assign([TP])
        state = subscription.state(TP)
        subscription.assign([TP, TopicPartition("b", 0)])
        assert subscription.state(TP) is state

    def test_a_partition_that_comes_back_is_a_new_one(self) -> None:
        subscription = Subscription()
        subscription.assign([TP])
        state = subscription.state(TP)
        subscription.assign([])
        subscription.assign([TP])
        assert state.is_taken_away
        assert subscription.state(TP) is not state

    def test_assigning_and_subscribing_do_not_mix(self) -> None:
        subscription = Subscription()
        subscription.assign([TP])
        with pytest.raises(Misuse, match="either subscribes or is assigned"):
            subscription.subscribe(["a"])
        subscription.unsubscribe()
        subscription.subscribe(["a"])
        with pytest.raises(Misuse, match="either subscribes or is assigned"):
            subscription.assign([TP])

    def test_a_pattern_matches_whole_names(self) -> None:
        subscription = Subscription()
        subscription.subscribe_pattern(re.compile("ab*"))
        assert subscription.match(["a", "abb", "abc", "xa"])
        assert subscription.topics == {"a", "abb"}
        assert not subscription.match(["abb", "a"])

    def test_a_partition_that_is_not_assigned_is_named(self) -> None:
        with pytest.raises(Misuse, match="a-0 is not assigned to this consumer"):
            Subscription().state(TP)

    def test_an_empty_name_is_refused(self) -> None:
        with pytest.raises(Misuse, match="not empty"):
            Subscription().subscribe([""])

    def test_changes_are_told(self) -> None:
        told: list[int] = []
        subscription = Subscription()
        subscription.on_change = lambda: told.append(1)
        subscription.assign([TP])
        subscription.unsubscribe()
        assert len(told) == 2


def test_a_negative_offset_cannot_be_committed() -> None:
    with pytest.raises(Misuse, match="not negative: -1"):
        OffsetAndMetadata(-1)
