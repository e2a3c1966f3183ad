"""The offset map of compaction, in both kernels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import Misuse
from barnabas.records._compact_plain import OffsetMap, Retained
from barnabas.records.faults import MalformedRecord
from barnabas.records.kernel import Kernel
from tests.records._kernels import KERNELS, raw_record

both = pytest.mark.parametrize("kernel", KERNELS)

SEED = bytes(range(16))
Entry = tuple[bytes | None, bytes | None]


def payload_of(kernel: Kernel, entries: list[Entry]) -> bytes:
    return bytes(kernel.encode([(0, key, value, ()) for key, value in entries]))


def offset_map(kernel: Kernel, keys_max: int) -> OffsetMap:
    return kernel.OffsetMap(keys_max + keys_max // 9 + 1, SEED, keys_max=keys_max)


def compact(kernel: Kernel, entries: list[Entry], *, tombstones: bool = True) -> list[Entry]:
    """The entries that stay when all of them are in the map."""
    payload = payload_of(kernel, entries)
    offsets = offset_map(kernel, 1000)
    assert offsets.put(payload, len(entries), 0)
    retained = offsets.retain(payload, len(entries), 0, tombstones=tombstones)
    rest, kept = kernel.filter(payload, len(entries), retained.keep)
    assert kept == retained.kept
    return [(record.key, record.value) for record in kernel.decode(rest, kept, 0, 0)]


@both
def test_the_last_record_of_each_key_stays(kernel: Kernel) -> None:
    entries: list[Entry] = [(b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"", b"1"), (b"b", b"2"), (b"", b"")]
    assert compact(kernel, entries) == [(b"a", b"2"), (b"b", b"2"), (b"", b"")]


@both
def test_a_tombstone_deletes_and_goes_when_it_may(kernel: Kernel) -> None:
    entries: list[Entry] = [(b"a", b"1"), (b"a", None), (b"b", b"1")]
    assert compact(kernel, entries, tombstones=True) == [(b"a", None), (b"b", b"1")]
    assert compact(kernel, entries, tombstones=False) == [(b"b", b"1")]


@both
def test_records_without_a_key_go(kernel: Kernel) -> None:
    assert compact(kernel, [(None, b"1"), (b"a", b"1"), (None, None)]) == [(b"a", b"1")]


@both
def test_what_lies_behind_the_map_stays(kernel: Kernel) -> None:
    offsets = offset_map(kernel, 10)
    offsets.put(payload_of(kernel, [(b"a", b"1")]), 1, 100)
    later = payload_of(kernel, [(b"a", b"2"), (None, b"3"), (b"b", None)])
    assert offsets.retain(later, 3, 101, tombstones=False) == Retained(bytearray(b"\1\1\1"), 3, 0)
    assert offsets.retain(later, 3, 98, tombstones=False) == Retained(bytearray(3), 0, 0)


@both
def test_keys_below_the_start_are_not_learnt(kernel: Kernel) -> None:
    offsets = offset_map(kernel, 10)
    offsets.put(payload_of(kernel, [(b"a", b"1"), (b"b", b"1"), (b"c", b"1")]), 3, 10, start_offset=12)
    assert (len(offsets), offsets.latest_offset) == (1, 12)


@both
def test_the_latest_offset_only_rises(kernel: Kernel) -> None:
    offsets = offset_map(kernel, 10)
    assert offsets.latest_offset == -1
    offsets.reach(7)
    offsets.reach(3)
    offsets.put(payload_of(kernel, [(None, b"1")]), 1, 5)
    assert (len(offsets), offsets.latest_offset) == (0, 7)


@both
def test_an_older_payload_does_not_take_a_key_back(kernel: Kernel) -> None:
    offsets = offset_map(kernel, 10)
    entry = payload_of(kernel, [(b"a", b"1")])
    offsets.put(entry, 1, 50)
    offsets.put(entry, 1, 20)
    assert offsets.retain(entry, 1, 20, tombstones=True).kept == 0
    assert offsets.retain(entry, 1, 50, tombstones=True).kept == 1


@both
def test_a_full_map_says_so_and_speaks_for_what_it_knows(kernel: Kernel) -> None:
    offsets = offset_map(kernel, 3)
    assert offsets.put(payload_of(kernel, [(b"a", b"1"), (b"b", b"1")]), 2, 0)
    more = payload_of(kernel, [(b"a", b"2"), (b"c", b"2"), (None, b""), (b"d", b"2"), (b"a", b"3")])
    assert offsets.put(more, 5, 2) is False
    assert (len(offsets), offsets.latest_offset) == (3, 4)
    assert [offsets.get(key) for key in (b"a", b"b", b"c", b"d")] == [2, 1, 3, -1]
    assert offsets.put(payload_of(kernel, [(b"c", b"3")]), 1, 5)
    assert offsets.get(b"c") == 5


@both
def test_malformed_payloads_are_refused(kernel: Kernel) -> None:
    offsets = offset_map(kernel, 10)
    for payload, text in (
        (raw_record() + b"x", "1 bytes follow"),
        (raw_record(length=50), "its length is 50"),
    ):
        with pytest.raises(MalformedRecord, match=text):
            offsets.put(payload, 1, 0)
        with pytest.raises(MalformedRecord, match=text):
            offsets.retain(payload, 1, 0, tombstones=True)
    with pytest.raises(MalformedRecord, match="5 records cannot be in 9 bytes"):
        offsets.retain(raw_record(), 5, 0, tombstones=True)


@both
def test_size_and_seed_are_checked(kernel: Kernel) -> None:
    for slots, keys_max in ((10, 0), (10, 10), (0, 0), (2**31, 5)):
        with pytest.raises(Misuse, match=f"^a map of {slots} slots cannot hold {keys_max} keys$"):
            kernel.OffsetMap(slots, SEED, keys_max=keys_max)
    with pytest.raises(Misuse, match=r"^a seed has 16 bytes, not 3$"):
        kernel.OffsetMap(10, b"abc", keys_max=5)


@both
@pytest.mark.slow
def test_many_keys_of_all_lengths_are_kept_apart(kernel: Kernel) -> None:
    """Full to the last key, so that probing runs long; large payloads, so without the GIL."""
    keys = [b"%d" % i + b"x" * (i % 40) for i in range(3000)]
    offsets = offset_map(kernel, 3000)
    assert offsets.put(payload_of(kernel, [(key, b"1" * 50) for key in keys]), 3000, 0)
    assert len(offsets) == 3000
    again = payload_of(kernel, [(key, b"2" * 50) for key in keys])
    offsets.reach(10_000)
    assert offsets.retain(again, 3000, 3000, tombstones=True).kept == 3000
    assert offsets.retain(again, 3000, -1, tombstones=True).kept == 0


@both
@given(
    st.lists(
        st.lists(st.tuples(st.none() | st.binary(max_size=2), st.none() | st.just(b"v")), max_size=8),
        max_size=5,
    ),
    st.booleans(),
)
def test_it_is_what_a_dict_would_say(kernel: Kernel, batches: list[list[Entry]], tombstones: bool) -> None:
    offsets, latest, base = offset_map(kernel, 1000), {}, 0
    for entries in batches:
        assert offsets.put(payload_of(kernel, entries), len(entries), base)
        latest.update({key: base + at for at, (key, _) in enumerate(entries) if key is not None})
        base += len(entries)
    assert len(offsets) == len(latest)
    base = 0
    for entries in batches:
        keep = [
            key is not None and latest[key] == base + at and (value is not None or tombstones)
            for at, (key, value) in enumerate(entries)
        ]
        found = offsets.retain(payload_of(kernel, entries), len(entries), base, tombstones=tombstones)
        deleted = sum(kept and value is None for kept, (_, value) in zip(keep, entries, strict=True))
        assert found == Retained(bytearray(keep), sum(keep), deleted)
        base += len(entries)
