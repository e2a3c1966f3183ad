"""Records seen before are found again, by place or by identity."""

import pytest

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.dedup import Deduplicator
from barnabas.records.record import Record


def record(offset: int, key: bytes | None = None, partition: int = 0) -> Record:
    return Record(offset, 0, key, b"v", (), "t", partition)


def test_a_record_counts_only_when_it_was_added() -> None:
    seen = Deduplicator()
    assert seen.is_new(record(0))
    assert seen.is_new(record(0))
    seen.add(record(0))
    assert not seen.is_new(record(0))


def test_by_offset_everything_before_is_known() -> None:
    seen = Deduplicator()
    seen.add(record(7))
    assert [seen.is_new(record(offset)) for offset in (6, 7, 8)] == [False, False, True]
    assert seen.is_new(record(3, partition=1))


def test_by_key_equal_keys_are_one_and_records_without_are_always_new() -> None:
    seen = Deduplicator(by="key")
    found = seen.new([record(0, b"a"), record(1, b"a"), record(2, b"b"), record(3), record(4)])
    assert [one.offset for one in found] == [0, 2, 3, 4]


def test_a_function_may_say_what_makes_records_the_same() -> None:
    seen = Deduplicator(by=lambda one: one.offset % 2)
    assert [one.offset for one in seen.new([record(0), record(1), record(2)])] == [0, 1]


def test_the_oldest_identity_is_forgotten_at_the_limit() -> None:
    seen = Deduplicator(by="key", limit=2)
    seen.new([record(0, b"a"), record(1, b"b")])
    seen.add(record(2, b"a"))  # seen again, so it is the younger one
    seen.add(record(3, b"c"))
    assert seen.is_new(record(4, b"b"))
    assert not seen.is_new(record(4, b"a"))


def test_partitions_that_went_are_forgotten() -> None:
    seen = Deduplicator()
    seen.add(record(7))
    seen.forget([TopicPartition("t", 0)])
    assert seen.is_new(record(7))


def test_the_state_can_be_stored_and_restored() -> None:
    by_offset, by_key = Deduplicator(), Deduplicator(by="key")
    by_offset.add(record(7))
    by_key.add(record(7, b"a"))
    other, another = Deduplicator(), Deduplicator(by="key")
    other.restore(*by_offset.state())
    another.restore(*by_key.state())
    assert not other.is_new(record(7))
    assert not another.is_new(record(9, b"a"))


@pytest.mark.parametrize(("by", "limit"), [("value", 1), ("key", 0)])
def test_what_cannot_be_meant_is_refused(by: str, limit: int) -> None:
    with pytest.raises(Misuse):
        Deduplicator(by, limit=limit)  # type: ignore[arg-type]  # that is what is refused
