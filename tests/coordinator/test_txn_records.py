"""barnabas.coordinator.txn_records: Kafka's record formats of `__transaction_state`."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.types import TopicPartition
from barnabas.coordinator.txn_records import (
    CorruptTransactionRecord,
    can_be_stored,
    decode_key,
    decode_value,
    transaction_record,
    transaction_tombstone,
)
from barnabas.coordinator.txn_state import Snapshot, TransactionState
from barnabas.protocol.storage.stored import stored_version
from barnabas.protocol.storage.transactions import TransactionLogValue

OPEN = Snapshot(
    producer_id=7,
    producer_epoch=3,
    timeout_ms=60_000,
    state=TransactionState.ONGOING,
    partitions=frozenset({TopicPartition("b", 1), TopicPartition("a", 2), TopicPartition("a", 0)}),
    started_ms=11,
    updated_ms=12,
)
STORED = [state for state in TransactionState if state.text not in ("Dead", "PrepareEpochFence")]

snapshots = st.builds(
    Snapshot,
    producer_id=st.integers(0, 2**63 - 1),
    producer_epoch=st.integers(0, 2**15 - 1),
    timeout_ms=st.integers(1, 2**31 - 1),
    state=st.sampled_from(STORED),
    partitions=st.frozensets(
        st.builds(TopicPartition, st.text("abc", min_size=1, max_size=3), st.integers(0, 9)), max_size=5
    ),
    started_ms=st.integers(0, 2**62),
    updated_ms=st.integers(0, 2**62),
    previous_producer_id=st.integers(-1, 2**63 - 1),
    next_producer_id=st.integers(-1, 2**63 - 1),
    version=st.integers(0, 2),
)


@given(snapshots, st.integers(0, 2), st.text(max_size=20))
def test_what_is_written_is_read_back(snapshot: Snapshot, version: int, name: str) -> None:
    if snapshot.state.is_idle:
        snapshot = replace(snapshot, partitions=frozenset())
    key, value = transaction_record(name, snapshot, version)
    assert value is not None
    assert decode_key(key) == name
    found = decode_value(name, value)
    if version == 0 and snapshot.version == 0:  # the old format has no room for the rest
        snapshot = replace(snapshot, previous_producer_id=-1, next_producer_id=-1)
    if not snapshot.state.is_decided:
        snapshot = replace(snapshot, next_producer_id=-1)
    assert found == snapshot


def test_the_version_follows_the_feature() -> None:
    def written(snapshot: Snapshot, level: int) -> int:
        value = transaction_record("tx", snapshot, level).value
        assert value is not None
        return stored_version(value)

    assert [written(OPEN, level) for level in range(3)] == [0, 1, 1]
    assert written(replace(OPEN, version=2), 0) == 1


def test_version_0_is_byte_for_byte_kafka_s() -> None:
    key, value = transaction_record("tx", OPEN, 0)
    assert key == b"\x00\x00\x00\x02tx"
    assert value == bytes.fromhex(
        "0000"  # version
        "0000000000000007 0003 0000ea60 01"  # producer, epoch, timeout, state
        "00000002"
        "0001 61 00000002 00000000 00000002"  # a: 0, 2
        "0001 62 00000001 00000001"  # b: 1
        "000000000000000c 000000000000000b"  # last update, start
    )


def test_an_empty_transaction_has_null_partitions() -> None:
    value = transaction_record("tx", Snapshot(7, 3, 60_000), 0).value
    assert value is not None
    assert TransactionLogValue.decode_versioned(value).transaction_partitions is None


def test_a_tombstone_has_no_value() -> None:
    assert transaction_tombstone("tx") == (b"\x00\x00\x00\x02tx", None)


def test_a_key_of_a_newer_kind_is_not_ours() -> None:
    assert decode_key(b"\x00\x05anything") is None


@pytest.mark.parametrize("key", [b"", b"\x00", b"\x00\x00", b"\x00\x00\x00\x09short"])
def test_a_broken_key_is_one_clear_fault(key: bytes) -> None:
    with pytest.raises(CorruptTransactionRecord, match="a key of __transaction_state cannot be read"):
        decode_key(key)


@given(st.binary(max_size=60))
def test_rubbish_gives_a_fault_and_never_another_exception(data: bytes) -> None:
    for decode in (lambda: decode_key(data), lambda: decode_value("tx", data)):
        try:
            decode()
        except CorruptTransactionRecord:
            continue


def _value(**fields: int) -> bytes:
    stored = TransactionLogValue(
        producer_id=7, transaction_status=1, transaction_start_timestamp_ms=1, transaction_timeout_ms=1
    )
    for name, number in fields.items():
        setattr(stored, name, number)
    return stored.encode_versioned(0)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"transaction_status": 6}, "is in state Dead"),
        ({"transaction_status": 7}, "is in state PrepareEpochFence"),
        ({"transaction_status": 8}, "cannot be read"),
        ({"producer_id": -1}, "names producer -1"),
        ({"producer_epoch": -1}, "epoch -1"),
        ({"transaction_start_timestamp_ms": -1}, "never began"),
    ],
)
def test_a_value_that_cannot_be_is_refused(fields: dict[str, int], text: str) -> None:
    with pytest.raises(CorruptTransactionRecord, match=text):
        decode_value("tx", _value(**fields))


def test_ids_must_fit_into_a_record() -> None:
    assert can_be_stored("é" * 10)
    assert not can_be_stored("x" * 32_768)
    assert not can_be_stored("\ud800")
