"""barnabas.coordinator.txn_loading: of each id the last record counts."""

from dataclasses import replace

from barnabas.coordinator.txn_loading import FAULTS_KEPT_MAX, TransactionLoad
from barnabas.coordinator.txn_records import transaction_record, transaction_tombstone
from barnabas.coordinator.txn_state import Snapshot
from barnabas.coordinator.txn_table import OwnedTransactions

FIRST = Snapshot(7, 0, 1_000)


def load(*records: tuple[bytes | None, bytes | None]) -> TransactionLoad:
    made = TransactionLoad(3, OwnedTransactions(0))
    for key, value in records:
        made.record(key, value)
    return made


def test_the_last_record_of_each_id_counts() -> None:
    second = replace(FIRST, producer_epoch=1)
    found = load(
        transaction_record("a", FIRST, 0),
        transaction_record("b", FIRST, 1),
        transaction_record("a", second, 1),
    )
    assert {each.transactional_id: each.durable for each in found.transactions()} == {"a": second, "b": FIRST}
    assert {each.partition for each in found.transactions()} == {3}
    assert (found.record_count, found.fault_count) == (3, 0)


def test_a_tombstone_forgets_an_id() -> None:
    found = load(transaction_record("a", FIRST, 0), transaction_tombstone("a"), transaction_tombstone("b"))
    assert found.transactions() == []


def test_records_of_newer_kinds_are_counted_and_left_out() -> None:
    found = load((b"\x00\x07whatever", b"x"), transaction_record("a", FIRST, 0))
    assert found.unknown_count == 1
    assert len(found.transactions()) == 1


def test_a_bad_record_takes_no_other_id_away() -> None:
    bad = [(None, b"x"), (b"", b"x"), (transaction_record("b", FIRST, 0).key, b"\x00\x00")]
    found = load(transaction_record("a", FIRST, 0), *bad, *bad, *bad, *bad)
    assert [each.transactional_id for each in found.transactions()] == ["a"]
    assert found.fault_count == 12
    assert len(found.faults) == FAULTS_KEPT_MAX
