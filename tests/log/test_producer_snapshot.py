"""Snapshots of producer state: Kafka's bytes with their checksum."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.log.errors import CorruptSnapshot
from barnabas.log.producer_snapshot import decode_snapshot, encode_snapshot
from barnabas.log.producers import ProducerEntry, SeenBatch

ENTRIES = st.lists(
    st.builds(
        ProducerEntry,
        st.integers(0, 2**63 - 1),
        st.integers(0, 2**15 - 1),
        st.integers(-1, 2**31 - 1),
        st.integers(-1, 2**50),
        st.integers(-1, 2**50),
        st.lists(
            st.builds(
                SeenBatch,
                st.integers(0, 2**31 - 1),
                st.integers(0, 2**50),
                st.integers(0, 1000),
                st.integers(0, 9),
            ),
            max_size=5,
        ),
    ),
    max_size=5,
)


def test_the_bytes_are_kafkas() -> None:
    entry = ProducerEntry(1000, 2, 3, 1_700_000_000_000, -1, [SeenBatch(9, 99, 9, 1_700_000_000_000)])
    assert encode_snapshot([entry]).hex() == (
        "0001"  # version
        "5cadec7c"  # CRC-32C of what follows
        "00000001"  # entries
        "00000000000003e8"
        "0002"
        "00000009"
        "0000000000000063"
        "00000009"
        "0000018bcfe56800"
        "00000003"
        "ffffffffffffffff"
    )


@given(ENTRIES)
def test_the_newest_batch_of_each_producer_comes_back(entries: list[ProducerEntry]) -> None:
    found = decode_snapshot("s", encode_snapshot(entries))
    assert [(e.producer_id, e.epoch, e.coordinator_epoch, e.transaction_first_offset) for e in found] == [
        (e.producer_id, e.epoch, e.coordinator_epoch, e.transaction_first_offset) for e in entries
    ]
    assert [(e.last_sequence, e.last_offset) for e in found] == [
        (e.last_sequence, e.last_offset) for e in entries
    ]
    assert all(len(entry.batches) <= 1 for entry in found)


@given(ENTRIES, st.data())
def test_every_cut_and_every_flipped_bit_is_found(entries: list[ProducerEntry], data: st.DataObject) -> None:
    content = bytearray(encode_snapshot(entries))
    cut = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(CorruptSnapshot, match=r"^s: "):
        decode_snapshot("s", bytes(content[:cut]))
    content[cut] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptSnapshot):
        decode_snapshot("s", bytes(content))


@given(st.binary(max_size=100))
def test_rubbish_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptSnapshot):
        decode_snapshot("s", content)
