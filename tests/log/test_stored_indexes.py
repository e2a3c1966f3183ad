"""Index files read whole."""

import struct
from pathlib import Path

import pytest

from barnabas.log.errors import CorruptIndex
from barnabas.log.files import OsFiles
from barnabas.log.index import OffsetPosition, TimestampOffset
from barnabas.log.stored_indexes import load_aborted, load_offset_index, load_time_index, sanity_fault
from barnabas.log.txn_index import AbortedTransaction

FILES = OsFiles()


def written(path: Path, layout: str, *entries: tuple[int, ...], tail: bytes = b"") -> str:
    path.write_bytes(b"".join(struct.pack(layout, *entry) for entry in entries) + tail)
    return str(path)


def test_offsets_are_absolute(tmp_path: Path) -> None:
    path = written(tmp_path / "i", ">ii", (4, 100), (9, 200))
    assert load_offset_index(FILES, path, 1000) == [OffsetPosition(1004, 100), OffsetPosition(1009, 200)]


def test_times(tmp_path: Path) -> None:
    path = written(tmp_path / "i", ">qi", (5000, 4))
    assert load_time_index(FILES, path, 1000) == [TimestampOffset(5000, 1004)]


def test_aborted_transactions(tmp_path: Path) -> None:
    path = written(tmp_path / "i", ">hqqqq", (0, 7, 1, 2, 3))
    assert load_aborted(FILES, path) == [AbortedTransaction(7, 1, 2, 3)]


def test_a_version_from_the_future_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "i", ">hqqqq", (1, 7, 1, 2, 3))
    with pytest.raises(CorruptIndex, match="version 1 instead of 0"):
        load_aborted(FILES, path)


def test_reserved_space_is_cut_off(tmp_path: Path) -> None:
    path = written(tmp_path / "i", ">ii", (4, 100), tail=bytes(800))
    assert load_offset_index(FILES, path, 0) == [OffsetPosition(4, 100)]
    assert load_offset_index(FILES, written(tmp_path / "j", ">ii", tail=bytes(800)), 0) == []
    assert load_time_index(FILES, written(tmp_path / "k", ">qi", tail=bytes(1200)), 0) == []


def test_half_an_entry_is_corrupt(tmp_path: Path) -> None:
    path = written(tmp_path / "i", ">ii", (4, 100), tail=b"123")
    with pytest.raises(CorruptIndex, match="11 bytes are not whole entries of 8 bytes"):
        load_offset_index(FILES, path, 0)


def test_a_missing_file_is_corrupt_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(CorruptIndex, match="there is no such file"):
        load_time_index(FILES, str(tmp_path / "none"), 0)
    assert not (tmp_path / "none").exists()


def test_entries_must_rise() -> None:
    assert sanity_fault([OffsetPosition(1, 10), OffsetPosition(2, 20)]) is None
    assert sanity_fault([OffsetPosition(1, 10), OffsetPosition(1, 20)]) == "(1, 20) follows (1, 10)"
    assert sanity_fault([TimestampOffset(1, 5), TimestampOffset(2, 5)]) is None
    assert sanity_fault([TimestampOffset(2, 5), TimestampOffset(2, 6)]) == "(2, 6) follows (2, 5)"
