"""The map from keys to last offsets: a dict with a bound."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.log.offset_map import BYTES_PER_SLOT, OffsetMap
from barnabas.records import kernel

Entry = tuple[int, bytes | None, bytes | None]
"""Offset, key, value."""


def rows(*records: tuple[int, bytes | None]) -> list[Entry]:
    return [(offset, key, b"v") for offset, key in records]


def payload(log: list[Entry]) -> bytearray:
    """The records with their offsets as deltas, so that the base offset is 0."""
    builder = kernel.PayloadBuilder(1_000_000)
    for offset, key, value in log:
        assert builder.append(0, key, value, (), offset)
    return builder.take()


def add(known: OffsetMap, log: list[Entry], first_offset: int = 0) -> bool:
    return known.add(payload(log), len(log), 0, first_offset)


def kept(known: OffsetMap, log: list[Entry], *, tombstones: bool) -> bytes:
    return bytes(known.retain(payload(log), len(log), 0, tombstones=tombstones).keep)


def test_the_last_offset_of_a_key_wins() -> None:
    known = OffsetMap(10_000)
    assert add(known, rows((10, b"a"), (11, b"b"), (12, b"a")))
    assert (known.get(b"a"), known.get(b"b"), known.get(b"c")) == (12, 11, -1)
    assert len(known) == 2


def test_a_null_key_is_not_counted_and_an_empty_one_is() -> None:
    known = OffsetMap(10_000)
    add(known, rows((1, None), (2, b""), (3, None)))
    assert known.get(b"") == 2
    assert len(known) == 1


def test_records_below_the_first_offset_are_passed_over() -> None:
    known = OffsetMap(10_000)
    add(known, rows((1, b"a"), (2, b"b")), first_offset=2)
    assert (known.get(b"a"), known.get(b"b")) == (-1, 2)


def test_latest_offset_counts_keyless_records_too() -> None:
    known = OffsetMap(10_000)
    add(known, rows((5, b"a"), (6, None)))
    assert known.latest_offset == 6
    known.speak_up_to(9)
    known.speak_up_to(8)
    assert known.latest_offset == 9


class TestWhatStays:
    def test_only_the_last_record_of_a_key(self) -> None:
        known = OffsetMap(10_000)
        log = rows((1, b"a"), (2, b"b"), (3, b"a"))
        add(known, log)
        assert kept(known, log, tombstones=True) == bytes([0, 1, 1])

    def test_a_key_that_the_dirty_part_does_not_have(self) -> None:
        known = OffsetMap(10_000)
        add(known, rows((3, b"a")))
        assert kept(known, rows((1, b"z"), (2, b"a")), tombstones=True) == bytes([1, 0])

    def test_no_record_without_a_key(self) -> None:
        known = OffsetMap(10_000)
        add(known, rows((3, b"a")))
        assert kept(known, rows((1, None)), tombstones=True) == bytes([0])

    def test_everything_that_the_map_does_not_speak_for(self) -> None:
        known = OffsetMap(10_000)
        add(known, rows((3, b"a")))
        late: list[Entry] = [*rows((4, b"a"), (5, None)), (6, b"a", None)]
        assert kept(known, late, tombstones=False) == bytes([1, 1, 1])

    def test_a_tombstone_until_its_time_is_over(self) -> None:
        known = OffsetMap(10_000)
        log: list[Entry] = [*rows((1, b"a")), (2, b"a", None)]
        add(known, log)
        assert kept(known, log, tombstones=True) == bytes([0, 1])
        assert kept(known, log, tombstones=False) == bytes([0, 0])


class TestTheBound:
    def test_memory_holds_as_many_keys_as_promised(self) -> None:
        known = OffsetMap(128 * 1024 * 1024, keys_expected=1000)
        assert known.entries_max >= 1000
        assert known.memory_bytes < 40_000
        full = 128 * 1024 * 1024 // BYTES_PER_SLOT * 9 // 10
        assert full > 5_000_000

    def test_it_never_takes_more_memory_than_given(self) -> None:
        assert OffsetMap(24_000).memory_bytes <= 24_000
        assert OffsetMap(24_000, keys_expected=10**9).memory_bytes <= 24_000

    def test_a_new_key_that_finds_no_room_is_refused(self) -> None:
        known = OffsetMap(10 * BYTES_PER_SLOT, load_factor=0.5)
        assert not add(known, rows(*((100 + number, b"%d" % number) for number in range(10))))
        assert known.latest_offset == 100 + known.entries_max - 1

    def test_a_full_map_still_takes_keys_it_knows(self) -> None:
        known = OffsetMap(10 * BYTES_PER_SLOT, load_factor=0.5)
        add(known, rows(*((number, b"%d" % number) for number in range(known.entries_max))))
        assert known.utilization == 1.0
        assert add(known, rows((50, b"0"), (51, b"1")))
        assert (known.get(b"0"), known.get(b"1")) == (50, 51)
        assert not add(known, rows((60, b"0"), (61, b"new"), (62, b"1")))
        assert known.latest_offset == 60
        assert known.get(b"1") == 51

    def test_there_is_room_for_one_key_whatever_the_memory(self) -> None:
        known = OffsetMap(0)
        assert add(known, rows((7, b"only")))
        assert known.get(b"only") == 7


@given(st.lists(st.tuples(st.binary(max_size=3) | st.none(), st.integers(1, 5))), st.integers(1, 40))
def test_it_agrees_with_a_dict_as_far_as_it_goes(history: list[tuple[bytes | None, int]], slots: int) -> None:
    known, expected, offset = OffsetMap(slots * BYTES_PER_SLOT), dict[bytes, int](), 0
    log: list[Entry] = []
    for key, gap in history:
        offset += gap
        log += rows((offset, key))
        if not add(known, log[-1:]):
            assert key not in expected
            assert known.latest_offset < offset
            break
        if key is not None:
            expected[key] = offset
    assert [known.get(key) for key in expected] == list(expected.values())
    assert len(known) == len(expected) <= known.entries_max
    staying = [row for row, keep in zip(log, kept(known, log, tombstones=True), strict=True) if keep]
    taken = [row for row in staying if row[0] <= known.latest_offset]
    assert [(row[1], row[0]) for row in taken] == sorted(expected.items(), key=lambda item: item[1])
