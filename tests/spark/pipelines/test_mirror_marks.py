"""barnabas.spark.pipelines.mirror_marks: what is committed for a partition, and read back."""

from dataclasses import replace

import pytest

from barnabas.spark.pipelines.mirror_marks import (
    KEPT_NOTE,
    Mark,
    is_kept,
    kept_note,
    read_mark,
    topic_id_of,
)
from barnabas.spark.pipelines.mirror_offsets import OffsetMap, OffsetMapError, Span


def test_a_mark_comes_back_as_it_was() -> None:
    for topic_id in ("", "RkUxnnqHze83fivFVWUBTA"):
        mark = Mark(500, OffsetMap([Span(0, 10, 300), Span(350, 311, 150)]), topic_id=topic_id)
        offset, note = mark.committed(1_700_000_000)
        assert offset == 500
        assert topic_id_of(note) == topic_id
        assert not is_kept(note)
        assert read_mark((offset, note)) == replace(mark, written_s=1_700_000_000)


@pytest.mark.parametrize("topic_id", ["", "RkUxnnqHze83fivFVWUBTA"])
def test_the_note_of_a_partition_that_keeps_offsets_is_told_from_a_mark(topic_id: str) -> None:
    note = kept_note(topic_id)
    assert is_kept(note)
    assert topic_id_of(note) == topic_id
    with pytest.raises(OffsetMapError, match="not a mirror's"):
        read_mark((5, note))


def test_a_first_mark_knows_nothing() -> None:
    back = read_mark(Mark(7).committed(5))
    assert back.offsets.translate(7) is None


@pytest.mark.parametrize("note", ["", "x", KEPT_NOTE, "1:0.0.5", "1:0.0.5@", "1:0.0.5@x", "9:@5"])
def test_what_others_committed_is_no_mark(note: str) -> None:
    with pytest.raises(OffsetMapError, match="not a mirror's"):
        read_mark((5, note))
