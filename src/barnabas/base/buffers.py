"""Bytes that travel without being copied: memory, or a range of an open file.

A response is a list of `Buffer`s.  The log hands out FileSlices, the protocol layer passes them
through its encoders, the network sends them with sendfile.  A slice keeps its file open, so a
segment may be deleted while an answer that names it is still being sent.
"""

import os
from collections.abc import Iterable
from typing import Final

__all__ = ["Buffer", "FileSlice", "SharedFile", "buffers_bytes", "join_buffers"]


class SharedFile:
    """Owns a file descriptor that several slices may name; closes it with the last reference."""

    __slots__ = ("__weakref__", "_fd", "path")

    def __init__(self, fd: int, path: str) -> None:
        self._fd: Final = fd
        self.path: Final = path

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        # Reference counting closes at once; an explicit close could pull the descriptor from
        # under a transfer in flight and let the kernel reuse its number for another file.
        os.close(self._fd)

    def __repr__(self) -> str:
        return f"SharedFile({self._fd}, {self.path!r})"


class FileSlice:
    """`length` bytes of `file` from byte `position`; the bytes never change once sliced."""

    __slots__ = ("file", "length", "position")

    def __init__(self, file: SharedFile, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"FileSlice({self.file.path!r}, {self.position}, {self.length})"

    def read(self) -> bytes:
        """The bytes themselves, copied; shorter than `length` only if the file was cut."""
        chunks: list[bytes] = []
        position, left = self.position, self.length
        while left and (chunk := os.pread(self.file.fileno(), left, position)):
            chunks.append(chunk)
            position += len(chunk)
            left -= len(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)


Buffer = bytes | bytearray | memoryview | FileSlice


def buffers_bytes(buffers: Iterable[Buffer]) -> int:
    """How many bytes the buffers hold together."""
    return sum(len(buffer) for buffer in buffers)


def join_buffers(buffers: Iterable[Buffer]) -> bytes:
    """All bytes in one piece; file slices are read.  For tests, tools and TLS, not the data path."""
    return b"".join(b.read() if isinstance(b, FileSlice) else b for b in buffers)
