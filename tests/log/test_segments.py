"""The ordered chain of segments."""

import pytest

from barnabas.log.files import OsFiles
from barnabas.log.segment import Segment
from barnabas.log.segments import Segments


def segment(base_offset: int) -> Segment:
    return Segment(OsFiles(), "/nowhere", base_offset)


def chain(*bases: int) -> Segments:
    segments = Segments()
    for base in bases:
        segments.add(segment(base))
    return segments


def test_they_are_ordered_however_they_come() -> None:
    segments = chain(20, 0, 10)
    assert segments.bases == [each.base_offset for each in segments] == [0, 10, 20]
    assert segments.active.base_offset == 20
    assert [each.base_offset for each in segments.from_slot(1)] == [10, 20]


@pytest.mark.parametrize(("offset", "slot"), [(-5, 0), (0, 0), (9, 0), (10, 1), (15, 1), (20, 2), (999, 2)])
def test_an_offset_lies_in_the_last_segment_that_begins_before_it(offset: int, slot: int) -> None:
    assert chain(0, 10, 20).floor_slot(offset) == slot


def test_one_can_be_removed_while_iterating() -> None:
    segments = chain(0, 10, 20)
    for each in segments:
        if each.base_offset < 20:
            segments.remove(each)
    assert (segments.bases, len(segments), segments.size_bytes) == ([20], 1, 0)


def test_a_base_offset_occurs_once() -> None:
    with pytest.raises(AssertionError, match="twice"):
        chain(5, 5)
