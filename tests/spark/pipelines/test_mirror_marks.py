"""barnabas.spark.pipelines.mirror_marks: what is committed for a partition, and read back."""

import pytest

from barnabas.spark.pipelines.mirror_marks import KEPT_NOTE, Mark, read_mark
from barnabas.spark.pipelines.mirror_offsets import OffsetMap, OffsetMapError, Span


def test_a_mark_comes_back_as_it_was() -> None:
    mark = Mark(500, OffsetMap([Span(0, 10, 300), Span(350, 311, 150)]))
    offset, note = mark.committed(1_700_000_000)
    assert offset == 500
    back = read_mark((offset, note))
    assert (back.position, back.offsets, back.written_s) == (500, mark.offsets, 1_700_000_000)


def test_a_first_mark_knows_nothing() -> None:
    back = read_mark(Mark(7).committed(5))
    assert back.offsets.translate(7) is None


@pytest.mark.parametrize("note", ["", "x", KEPT_NOTE, "1:0.0.5", "1:0.0.5@", "1:0.0.5@x", "9:@5"])
def test_what_others_committed_is_no_mark(note: str) -> None:
    with pytest.raises(OffsetMapError, match="not a mirror's"):
        read_mark((5, note))
