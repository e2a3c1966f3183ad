"""What is cleaned, and when."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.log.cleaner_plan import (
    CleanableRange,
    Dirt,
    GroupMember,
    cleanable_range,
    compaction_delay_ms,
    group_segments,
    measure_dirt,
)
from barnabas.log.retention import SegmentSummary

NOW = 1_000_000
LOG = [
    SegmentSummary(0, 100, NOW - 900),
    SegmentSummary(100, 100, NOW - 500),
    SegmentSummary(200, 100, NOW - 300),
    SegmentSummary(300, 50, NOW - 10),
]


def range_of(
    *,
    start: int = 0,
    end: int = 350,
    stable: int | None = None,
    checkpoint: int | None = None,
    lag: int = 0,
) -> CleanableRange:
    return cleanable_range(
        LOG,
        log_start_offset=start,
        log_end_offset=end,
        last_stable_offset=end if stable is None else stable,
        checkpoint=checkpoint,
        min_compaction_lag_ms=lag,
        now_ms=NOW,
    )


class TestWhichOffsets:
    def test_a_log_never_cleaned_is_dirty_up_to_its_active_segment(self) -> None:
        assert range_of() == CleanableRange(0, 300, False)

    def test_cleaning_goes_on_from_the_checkpoint(self) -> None:
        assert range_of(checkpoint=200) == CleanableRange(200, 300, False)

    def test_nothing_unstable_is_cleaned(self) -> None:
        assert range_of(stable=150) == CleanableRange(0, 150, False)

    def test_a_stable_offset_below_the_checkpoint_leaves_nothing(self) -> None:
        assert range_of(checkpoint=200, stable=150) == CleanableRange(200, 200, False)

    def test_segments_younger_than_the_lag_wait_with_all_behind_them(self) -> None:
        assert range_of(lag=400) == CleanableRange(0, 200, False)
        assert range_of(lag=600) == CleanableRange(0, 100, False)

    def test_the_lag_does_not_look_at_clean_segments(self) -> None:
        assert range_of(checkpoint=200, lag=400) == CleanableRange(200, 200, False)

    def test_a_checkpoint_below_the_log_start_starts_over_there(self) -> None:
        assert range_of(start=120, checkpoint=50) == CleanableRange(120, 300, True)

    def test_a_checkpoint_above_the_log_end_starts_over(self) -> None:
        assert range_of(checkpoint=351) == CleanableRange(0, 300, True)

    def test_a_checkpoint_at_the_log_end_is_right(self) -> None:
        assert range_of(checkpoint=350) == CleanableRange(350, 350, False)


class TestHowDirty:
    def test_the_ratio_is_the_dirty_share_of_what_a_clean_reads(self) -> None:
        dirt = measure_dirt(LOG, CleanableRange(100, 300, False))
        assert dirt == Dirt(clean_bytes=100, cleanable_bytes=200, first_uncleanable_offset=300)
        assert dirt.ratio == 200 / 300

    def test_a_bound_inside_a_segment_leaves_that_segment_out(self) -> None:
        assert measure_dirt(LOG, CleanableRange(0, 250, False)) == Dirt(0, 200, 200)

    def test_a_first_dirty_offset_inside_a_segment_makes_it_dirty(self) -> None:
        assert measure_dirt(LOG, CleanableRange(150, 300, False)) == Dirt(100, 200, 300)

    def test_nothing_cleanable_is_a_ratio_of_zero(self) -> None:
        assert measure_dirt(LOG, CleanableRange(300, 300, False)).ratio == 0
        assert measure_dirt([SegmentSummary(0, 0, NOW)], CleanableRange(0, 0, False)).ratio == 0


class TestOverdue:
    def test_dirty_records_older_than_the_lag_are_overdue(self) -> None:
        times = [NOW - 500, NOW - 900]
        assert compaction_delay_ms(times, max_compaction_lag_ms=600, now_ms=NOW) == 300

    def test_young_ones_are_not(self) -> None:
        assert compaction_delay_ms([NOW - 500], max_compaction_lag_ms=600, now_ms=NOW) == 0

    def test_segments_without_a_time_do_not_count(self) -> None:
        assert compaction_delay_ms([-1, 0], max_compaction_lag_ms=600, now_ms=NOW) == 0


def members(*sizes: int, records: int = 10) -> list[GroupMember]:
    return [GroupMember(index * records, size, 8, 12) for index, size in enumerate(sizes)]


def bases(groups: list[list[GroupMember]]) -> list[list[int]]:
    return [[member.base_offset for member in group] for group in groups]


class TestWhichSegmentsBecomeOne:
    def test_neighbours_go_together_while_they_fit(self) -> None:
        groups = group_segments(
            members(40, 40, 40, 90, 10), segment_bytes=100, index_bytes=1000, end_offset=50
        )
        assert bases(groups) == [[0, 10], [20], [30, 40]]

    def test_index_bytes_are_a_limit_of_their_own(self) -> None:
        groups = group_segments(members(1, 1, 1), segment_bytes=100, index_bytes=24, end_offset=30)
        assert bases(groups) == [[0, 10], [20]]

    def test_an_oversized_segment_stays_alone(self) -> None:
        groups = group_segments(members(500, 1), segment_bytes=100, index_bytes=1000, end_offset=20)
        assert bases(groups) == [[0], [10]]

    def test_offsets_further_apart_than_31_bits_do_not_share_a_segment(self) -> None:
        far = members(1, 1, 1, records=2**30)
        groups = group_segments(far, segment_bytes=100, index_bytes=1000, end_offset=3 * 2**30)
        assert bases(groups) == [[0, 2**30], [2**31]]

    def test_an_empty_segment_joins_however_far_it_is(self) -> None:
        far = [GroupMember(0, 1, 0, 0), GroupMember(2**31, 0, 0, 0)]
        assert len(group_segments(far, segment_bytes=100, index_bytes=10, end_offset=2**32)) == 1

    @given(st.lists(st.integers(0, 120), min_size=1), st.integers(1, 200))
    def test_every_segment_is_in_one_group_in_order(self, sizes: list[int], limit: int) -> None:
        all_members = members(*sizes)
        groups = group_segments(all_members, segment_bytes=limit, index_bytes=10**6, end_offset=10**6)
        assert [member for group in groups for member in group] == all_members
        assert all(len(group) == 1 or sum(m.size_bytes for m in group) <= limit for group in groups)
