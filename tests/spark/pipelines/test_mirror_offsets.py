"""barnabas.spark.pipelines.mirror_offsets: a group that moves skips nothing (O1-O3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.spark.pipelines.mirror_offsets import (
    SPANS_MAX,
    TEXT_BYTES_MAX,
    OffsetMap,
    OffsetMapError,
    Span,
)


class TestTranslating:
    def test_nothing_is_known_of_nothing(self) -> None:
        assert OffsetMap().translate(5) is None

    def test_inside_a_span_it_is_exact(self) -> None:
        mapped = OffsetMap([Span(100, 7, 50)])
        assert [mapped.translate(at) for at in (100, 101, 149, 150)] == [7, 8, 56, 57]

    def test_before_the_first_record_that_was_copied_all_is_to_be_read(self) -> None:
        assert OffsetMap([Span(100, 7, 50)]).translate(3) == 7

    def test_behind_the_last_one_the_group_waits_there(self) -> None:
        assert OffsetMap([Span(100, 7, 50)]).translate(5_000) == 57

    def test_in_a_gap_of_the_source_the_next_record_is_next(self) -> None:
        mapped = OffsetMap([Span(0, 0, 10), Span(20, 15, 10)])
        assert [mapped.translate(at) for at in (10, 11, 19, 20)] == [10, 15, 15, 15]

    def test_where_something_is_not_known_it_goes_back_to_what_is(self) -> None:
        mapped = OffsetMap([Span(0, 0, 10), Span(100, 80, 10, follows=False)])
        assert mapped.translate(60) == 10


class TestAdding:
    def test_what_joins_becomes_one(self) -> None:
        mapped = OffsetMap()
        mapped.add(0, 0, 10)
        mapped.add(10, 10, 5)
        mapped.add(15, 16, 5)
        assert mapped.spans == (Span(0, 0, 15), Span(15, 16, 5))

    def test_a_loose_stretch_is_told_by_its_start_only(self) -> None:
        mapped = OffsetMap()
        mapped.add(0, 0, 10)
        mapped.add_loose(10, 10)
        mapped.add_loose(30, 14)
        mapped.add(50, 20, 5)
        assert mapped.spans == (Span(0, 0, 10), Span(50, 20, 5, follows=False))
        assert mapped.translate(40) == 10

    def test_the_oldest_and_the_newest_stay(self) -> None:
        mapped = OffsetMap()
        for number in range(10_000):
            mapped.add(number * 100, number * 101, 100)
        assert len(mapped.spans) == SPANS_MAX
        assert mapped.spans[0] == Span(0, 0, 100)
        assert mapped.translate(999_950) == 9_999 * 101 + 50
        assert mapped.translate(998_000) == 9_980 * 101

    def test_the_further_back_the_coarser(self) -> None:
        mapped = OffsetMap()
        for number in range(10_000):
            mapped.add(number * 100, number * 101, 100)
        for behind in (3_000, 30_000, 300_000):
            offset = 1_000_000 - behind
            found = mapped.translate(offset)
            assert found is not None
            assert found >= offset * 1.01 - behind


class TestText:
    def test_it_is_short_whatever_is_in_it(self) -> None:
        mapped = OffsetMap()
        for number in range(500):
            mapped.add(number * 10**15, number * 10**16, 10**14)
        assert len(mapped.encode()) <= TEXT_BYTES_MAX

    def test_it_is_readable(self) -> None:
        assert OffsetMap([Span(100, 7, 50), Span(160, 60, 1, follows=False)]).encode() == "1:2s.7.1e,~a.3.1"

    @pytest.mark.parametrize(
        "text", ["", "2:", "kept", "1", "1:x", "1:1.2", "1:1.2.3.4", "1:é.1.1", "1:-1.2.3"]
    )
    def test_other_notes_are_refused(self, text: str) -> None:
        with pytest.raises(OffsetMapError, match="note"):
            OffsetMap.decode(text)


STEPS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 40), st.integers(0, 3), st.booleans()), max_size=150
)


@given(STEPS, st.integers(0, 6_000))
def test_no_record_is_ever_skipped(steps: list[tuple[int, int, int, bool]], offset: int) -> None:
    """(O1), with a plain dict of every record as the judge."""
    mapped, where = OffsetMap(), {}
    source = target = 0
    for gap, count, markers, loose in steps:
        source, target = source + gap, target + markers
        if loose:  # every second record was compacted away
            mapped.add_loose(source, target)
            for number in range(count):
                where[source + 2 * number] = target + number
            source += 2 * count
        else:
            mapped.add(source, target, count)
            where.update((source + number, target + number) for number in range(count))
            source += count
        target += count
        if len(where) % 7 == 0:
            mapped = OffsetMap.decode(mapped.encode())
    found = mapped.translate(offset)
    unread = [at for record, at in where.items() if record >= offset]
    if found is None:
        assert not where
    elif unread:
        assert found <= min(unread)
    else:
        assert found <= target
    assert OffsetMap.decode(mapped.encode()) == mapped
