"""The JSON of a stream's place, shares of a trigger, and what counts as lost."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.types import TopicPartition
from barnabas.spark.errors import DataLoss, SparkPartError
from barnabas.spark.offsets import (
    Loss,
    StreamOffset,
    backlog,
    clamp,
    judge,
    ranges_between,
    report,
    share,
)
from barnabas.spark.planning import OffsetRange

A, B, C = (TopicPartition("t", number) for number in range(3))
POSITIONS = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["a", "b.c", "#x"[1:]]), st.integers(0, 30)),
    st.integers(0, 2**62),
    max_size=8,
)


class TestJson:
    @given(POSITIONS, POSITIONS, st.integers(-1, 9), st.booleans())
    def test_it_comes_back_as_it_went(
        self, positions: dict[TopicPartition, int], base: dict[TopicPartition, int], batch: int, first: bool
    ) -> None:
        offset = StreamOffset(positions, base, batch, first)
        assert StreamOffset.from_json(json.loads(json.dumps(offset.to_json()))) == offset

    @given(POSITIONS, st.randoms())
    def test_one_place_has_one_text(self, positions: dict[TopicPartition, int], random: object) -> None:
        items = list(positions.items())
        random.shuffle(items)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
        assert json.dumps(StreamOffset(dict(items)).to_json()) == json.dumps(
            StreamOffset(positions).to_json()
        )

    def test_partitions_are_in_the_order_of_their_numbers(self) -> None:
        offset = StreamOffset({TopicPartition("t", 10): 1, TopicPartition("t", 9): 2}, batch=0)
        assert json.dumps(offset.to_json()) == '{"#batch": 0, "t": {"9": 2, "10": 1}}'

    def test_an_offset_of_sparks_own_source_is_understood(self) -> None:
        found = StreamOffset.from_json({"orders": {"1": 9, "0": 17}})
        assert found.positions == {TopicPartition("orders", 0): 17, TopicPartition("orders", 1): 9}
        assert (found.batch, found.initial, found.base) == (-1, False, {})

    @pytest.mark.parametrize("found", [{"logOffset": 3}, {"t": {"x": 1}}, {"t": {"0": None}}, {"#base": 3}])
    def test_an_offset_of_another_source_is_refused(self, found: dict[str, object]) -> None:
        with pytest.raises(SparkPartError, match=r"not of this source.*another source"):
            StreamOffset.from_json(found)


class TestRanges:
    def test_from_start_to_end_without_what_is_empty(self) -> None:
        found = ranges_between(StreamOffset({A: 1, B: 5}), StreamOffset({A: 4, B: 5}))
        assert found == [OffsetRange("t", 0, 1, 4)]

    def test_a_first_batch_begins_where_its_end_says(self) -> None:
        asked_again = StreamOffset({A: 90}, initial=True)
        assert ranges_between(asked_again, StreamOffset({A: 20}, base={A: 7})) == [OffsetRange("t", 0, 7, 20)]

    def test_a_new_partition_begins_where_the_end_says(self) -> None:
        found = ranges_between(StreamOffset({A: 1}), StreamOffset({A: 1, B: 6}, base={B: 2}))
        assert found == [OffsetRange("t", 1, 2, 6)]

    def test_a_beginning_that_nobody_kept_is_an_error(self) -> None:
        with pytest.raises(SparkPartError, match="does not say where t-1 begins"):
            ranges_between(StreamOffset({A: 1}), StreamOffset({A: 1, B: 6}))


class TestShare:
    def test_by_backlog_rounded_down(self) -> None:
        assert share(700, {A: 0, B: 0}, {A: 1000, B: 2000}) == {A: 233, B: 466}

    def test_nobody_starves(self) -> None:
        assert share(10, {A: 0, B: 5}, {A: 100_000, B: 6}) == {A: 9, B: 6}

    def test_all_there_is_when_it_fits(self) -> None:
        assert share(3, {A: 1, B: 1}, {A: 2, B: 3}) == {A: 2, B: 3}

    @given(
        st.dictionaries(st.sampled_from([A, B, C]), st.tuples(st.integers(0, 2**62), st.integers(0, 2**61))),
        st.integers(1, 2**40),
    )
    def test_it_moves_on_and_stays_inside(
        self, found: dict[TopicPartition, tuple[int, int]], limit: int
    ) -> None:
        begins = {where: start for where, (start, _) in found.items()}
        ends = {where: start + size for where, (start, size) in found.items()}
        shared = share(limit, begins, ends)
        assert all(begins[where] <= shared[where] <= ends[where] for where in ends)
        assert all(shared[where] > begins[where] for where in ends if ends[where] > begins[where])
        assert backlog(begins, shared) <= max(limit, 0) + len(ends)


class TestJudge:
    def test_nothing_is_wrong(self) -> None:
        assert judge({A: 5}, {A: 0}, {A: 9}) == ({A: 5}, [])

    def test_a_new_partition_begins_at_its_first_offset(self) -> None:
        assert judge({A: 5}, {A: 0, B: 0}, {A: 5, B: 3}) == ({A: 5, B: 0}, [])

    def test_a_new_partition_that_has_lost_its_beginning(self) -> None:
        begins, losses = judge({}, {B: 4}, {B: 9})
        assert begins == {B: 4}
        assert [each[:3] for each in losses] == [(B, 0, 4)]

    def test_records_deleted_by_age(self) -> None:
        begins, losses = judge({A: 5}, {A: 8}, {A: 9})
        assert begins == {A: 8}
        assert losses == [Loss(A, 5, 8, "the log begins at 8; they were deleted by age")]

    def test_a_topic_made_anew_is_read_from_its_beginning(self) -> None:
        begins, losses = judge({A: 50}, {A: 2}, {A: 9})
        assert begins == {A: 2}
        assert losses == [Loss(A, 9, 50, "the log ends at 9; the topic was made anew or cut")]

    def test_a_partition_that_is_gone(self) -> None:
        begins, losses = judge({A: 50, B: 1}, {}, {B: 1})
        assert begins == {B: 1}
        assert losses == [Loss(A, 50, None, "the partition is not there any more")]


class TestReport:
    LOSSES = (Loss(A, 5, 8, "why"), Loss(B, 7, None, "gone"))

    def test_the_first_loss_is_raised_with_its_range(self) -> None:
        with pytest.raises(
            DataLoss, match=r"^offsets 5 to 7 of t-0 are lost: why; set option failOnData"
        ) as e:
            report(self.LOSSES, fail=True)
        assert (e.value.topic, e.value.partition, e.value.start, e.value.end) == ("t", 0, 5, 8)

    def test_all_are_warned_of(self) -> None:
        assert report(self.LOSSES, fail=False) == [
            "offsets 5 to 7 of t-0 are lost: why",
            "offsets from 7 on of t-1 are lost: gone",
        ]

    def test_nothing_lost_nothing_said(self) -> None:
        assert report([], fail=True) == []


class TestClamp:
    def test_offsets_outside_the_log_are_moved_into_it_and_told(self) -> None:
        inside, losses = clamp({A: 1, B: 5, C: 99}, {A: 3, B: 0, C: 0}, {A: 9, B: 9, C: 9})
        assert inside == {A: 3, B: 5, C: 9}
        assert [each[:3] for each in losses] == [(A, 1, 3), (C, 9, 99)]

    def test_a_partition_that_vanished_meanwhile_is_left_out_and_told(self) -> None:
        inside, losses = clamp({A: 1, B: 5}, {A: 0, B: 0}, {A: 9})
        assert inside == {A: 1}
        assert losses == [Loss(B, 5, None, "the partition is not there any more")]
