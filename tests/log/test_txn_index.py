"""The index of aborted transactions: Kafka's 34-byte entries, searches and cuts."""

import struct
from pathlib import Path

import pytest

from barnabas.log.errors import CorruptIndex
from barnabas.log.files import OsFiles
from barnabas.log.txn_index import AbortedTransaction, TransactionIndex

FIRST = AbortedTransaction(7, 10, 20, 21)
SECOND = AbortedTransaction(8, 15, 30, 31)


def index_at(folder: Path, *, exists: bool = False) -> TransactionIndex:
    return TransactionIndex(OsFiles(), str(folder / "i.txnindex"), 10, exists=exists)


def test_there_is_no_file_before_something_is_aborted(tmp_path: Path) -> None:
    index = index_at(tmp_path)
    assert index.entries() == []
    assert index.overlapping(0, 100) == ([], False)
    assert index.synced_file() is None
    index.reset()
    index.truncate_to(5)
    index.check()
    assert not index.exists
    assert list(tmp_path.iterdir()) == []


def test_the_file_holds_kafkas_bytes(tmp_path: Path) -> None:
    index = index_at(tmp_path)
    index.append(FIRST)
    assert list(tmp_path.iterdir()) == []
    index.write_out()
    assert (tmp_path / "i.txnindex").read_bytes() == struct.pack(">hqqqq", 0, 7, 10, 20, 21)


def test_entries_outlive_the_object(tmp_path: Path) -> None:
    index = index_at(tmp_path)
    index.append(FIRST)
    index.append(SECOND)
    index.release()
    assert index.entries() == [FIRST, SECOND]
    again = index_at(tmp_path, exists=True)
    again.check()
    assert again.entries() == [FIRST, SECOND]


def test_a_search_finds_what_overlaps_and_knows_when_to_stop(tmp_path: Path) -> None:
    index = index_at(tmp_path)
    index.append(FIRST)
    index.append(SECOND)
    assert index.overlapping(0, 11) == ([FIRST], True)
    assert index.overlapping(21, 31) == ([SECOND], True)
    assert index.overlapping(16, 40) == ([FIRST, SECOND], False)
    assert index.overlapping(31, 40) == ([], False)


def test_truncation_drops_transactions_that_end_behind(tmp_path: Path) -> None:
    index = index_at(tmp_path)
    index.append(FIRST)
    index.append(SECOND)
    index.truncate_to(30)
    assert index.entries() == [FIRST]
    index.write_out()
    index.append(SECOND)
    index.truncate_to(30)
    assert index.entries() == [FIRST]
    index.truncate_to(10)
    assert index.entries() == []
    index.release()
    assert index.exists
    index.append(SECOND)
    assert index.entries() == [SECOND]
    index.reset()
    assert index.entries() == []


def test_damage_is_found(tmp_path: Path) -> None:
    path = tmp_path / "i.txnindex"
    path.write_bytes(b"x" * 33)
    with pytest.raises(CorruptIndex, match="33 bytes are not whole entries of 34 bytes"):
        index_at(tmp_path, exists=True).check()
    path.write_bytes(struct.pack(">hqqqq", 9, 7, 10, 20, 21))
    with pytest.raises(CorruptIndex, match="version 9 instead of 0"):
        index_at(tmp_path, exists=True).check()
    path.write_bytes(struct.pack(">hqqqq", 0, 7, 1, 5, 6))
    with pytest.raises(CorruptIndex, match="comes after offset 9"):
        index_at(tmp_path, exists=True).check()
