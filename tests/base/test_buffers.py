"""barnabas.base.buffers: bytes that travel without being copied."""

import os
from pathlib import Path

import pytest

from barnabas.base.buffers import Buffer, FileSlice, SharedFile, buffers_bytes, join_buffers


def opened(path: Path, content: bytes) -> SharedFile:
    path.write_bytes(content)
    return SharedFile(os.open(path, os.O_RDONLY), str(path))


def test_a_slice_reads_its_range(tmp_path: Path) -> None:
    piece = FileSlice(opened(tmp_path / "f", b"0123456789"), 2, 5)
    assert len(piece) == 5
    assert piece.read() == b"23456"


def test_a_slice_of_a_file_that_was_cut_reads_what_is_left(tmp_path: Path) -> None:
    piece = FileSlice(opened(tmp_path / "f", b"0123456789"), 2, 5)
    os.truncate(tmp_path / "f", 4)
    assert piece.read() == b"23"


def test_a_slice_keeps_a_deleted_file_open(tmp_path: Path) -> None:
    piece = FileSlice(opened(tmp_path / "f", b"0123456789"), 0, 10)
    (tmp_path / "f").unlink()
    assert piece.read() == b"0123456789"


def test_the_descriptor_closes_with_the_last_reference(tmp_path: Path) -> None:
    file = opened(tmp_path / "f", b"abc")
    fd, piece = file.fileno(), FileSlice(file, 0, 3)
    del file
    os.fstat(fd)
    del piece
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_buffers_of_all_kinds_add_up_and_join(tmp_path: Path) -> None:
    piece = FileSlice(opened(tmp_path / "f", b"xghx"), 1, 2)
    buffers: list[Buffer] = [b"ab", bytearray(b"cd"), memoryview(b"ef"), piece]
    assert buffers_bytes(buffers) == 8
    assert join_buffers(buffers) == b"abcdefgh"
