"""The map from keys to last offsets: a dict with a bound."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.log.offset_map import BYTES_PER_SLOT, OffsetMap


def test_the_last_offset_of_a_key_wins() -> None:
    known = OffsetMap(10_000)
    assert known.add([b"a", b"b", b"a"], [10, 11, 12]) == 3
    assert (known.get(b"a"), known.get(b"b"), known.get(b"c")) == (12, 11, -1)
    assert len(known) == 2


def test_a_null_key_is_neither_kept_nor_found() -> None:
    known = OffsetMap(10_000)
    known.add([None, b"", None], [1, 2, 3])
    assert known.superseding([None, b""]) == [-1, 2]
    assert len(known) == 1


def test_latest_offset_counts_keyless_records_too() -> None:
    known = OffsetMap(10_000)
    known.add([b"a", None], [5, 6])
    assert known.latest_offset == 6
    known.speak_up_to(9)
    known.speak_up_to(8)
    assert known.latest_offset == 9


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

    def test_a_new_key_that_finds_no_room_is_refused_with_its_index(self) -> None:
        known = OffsetMap(10 * BYTES_PER_SLOT, load_factor=0.5)
        keys: list[bytes | None] = [b"%d" % number for number in range(10)]
        offsets = list(range(100, 110))
        assert known.add(keys, offsets) == known.entries_max
        assert known.latest_offset == 100 + known.entries_max - 1

    def test_a_full_map_still_takes_keys_it_knows(self) -> None:
        known = OffsetMap(10 * BYTES_PER_SLOT, load_factor=0.5)
        known.add([b"%d" % number for number in range(known.entries_max)], list(range(known.entries_max)))
        assert known.utilization == 1.0
        assert known.add([b"0", b"1"], [50, 51]) == 2
        assert known.superseding([b"0", b"1"]) == [50, 51]
        assert known.add([b"0", b"new"], [60, 61]) == 1
        assert known.latest_offset == 60

    def test_there_is_room_for_one_key_whatever_the_memory(self) -> None:
        known = OffsetMap(0)
        assert known.add([b"only"], [7]) == 1
        assert known.get(b"only") == 7


@given(st.lists(st.tuples(st.binary(max_size=3) | st.none(), st.integers(1, 5))), st.integers(1, 40))
def test_it_agrees_with_a_dict_as_far_as_it_goes(history: list[tuple[bytes | None, int]], slots: int) -> None:
    known, expected, offset = OffsetMap(slots * BYTES_PER_SLOT), dict[bytes, int](), 0
    for key, gap in history:
        offset += gap
        if known.add([key], [offset]) == 0:
            assert key not in expected
            assert known.latest_offset == offset - 1
            break
        if key is not None:
            expected[key] = offset
    assert known.superseding(list(expected)) == list(expected.values())
    assert len(known) == len(expected) <= known.entries_max
