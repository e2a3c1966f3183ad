"""Every batch in a `.log` file as it lies there, sound or not, for the tools that look at files.

Unlike `scan`, it goes on behind a batch whose CRC is wrong, and knows message sets v0 and v1 as entries.  It
stops where the chain of lengths breaks, since nothing behind that can be told apart.
Reads around the page cache.  Any thread may walk its own file.
"""

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from barnabas.base.buffers import SharedFile
from barnabas.log.files import Files
from barnabas.records.batch import HEADER_BYTES, LENGTH_COUNTS_FROM, MAGIC, RecordBatch
from barnabas.records.errors import CorruptBatch

__all__ = ["LegacyEntry", "StoredBatches"]

_CHUNK_BYTES: Final = 2**20
_PREFIX: Final = Struct(">qi4xb")  # offset, length, magic
_PREFIX_BYTES: Final = 17
_LEGACY: Final = Struct(">qiIbb")  # offset, size, crc, magic, attributes
_LEGACY_TIMESTAMP: Final = Struct(">q")
_LEGACY_BYTES_MIN: Final = {0: 26, 1: 34}
_LEGACY_CRC_FROM: Final = 16


class LegacyEntry(NamedTuple):
    """One message of format 0 or 1, or a wrapper of several."""

    offset: int
    size_bytes: int
    magic: int
    crc: int
    attributes: int
    timestamp: int
    view: memoryview

    @property
    def is_valid(self) -> bool:
        return zlib.crc32(self.view[_LEGACY_CRC_FROM:]) == self.crc


class StoredBatches:
    """Iterate for (position, batch or legacy entry); then `fault` says why it ended early, or None.

    What is yielded is valid only until the next step.  `position` is where the walk is.
    """

    __slots__ = ("_end", "_file", "_files", "fault", "position", "size_bytes")

    def __init__(self, files: Files, file: SharedFile, max_bytes: int | None = None) -> None:
        self._files: Final = files
        self._file: Final = file
        self.size_bytes: Final = files.size(file)
        self._end: Final = self.size_bytes if max_bytes is None else min(self.size_bytes, max_bytes)
        self.position = 0
        self.fault: str | None = None

    def __iter__(self) -> Iterator[tuple[int, RecordBatch | LegacyEntry]]:
        buffer = memoryview(bytearray(min(_CHUNK_BYTES, max(self._end, _PREFIX_BYTES))))
        filled = at = 0
        while self.position < self._end:
            left = self._end - self.position
            if left < _PREFIX_BYTES:
                self.fault = f"{left} bytes are too few for a batch"
                return
            if filled - at < _PREFIX_BYTES:
                filled, at = self._fill(buffer), 0
            if filled - at < _PREFIX_BYTES:
                self.fault = "the file became shorter while it was read"
                return
            _, length, magic = _PREFIX.unpack_from(buffer, at)
            size = length + LENGTH_COUNTS_FROM
            smallest = HEADER_BYTES if magic == MAGIC else _LEGACY_BYTES_MIN.get(magic)
            if smallest is None:
                self.fault = f"magic {magic} instead of {MAGIC}"
            elif size < smallest:
                self.fault = f"a batch of {size} bytes is shorter than its header"
            elif size > left:
                self.fault = f"a batch of {size} bytes with {left} bytes left"
            if self.fault is not None:
                return
            if filled - at < size:
                if size > len(buffer):
                    buffer = memoryview(bytearray(size))
                filled, at = self._fill(buffer), 0
                if filled < size:
                    self.fault = "the file became shorter while it was read"
                    return
            if magic == MAGIC:
                yield self.position, RecordBatch(buffer[: at + size], at)
            else:
                yield self.position, _legacy(buffer[at : at + size], magic)
            at += size
            self.position += size

    def _fill(self, buffer: memoryview) -> int:
        return self._files.read_cold_into(self._file, self.position, buffer)


def _legacy(view: memoryview, magic: int) -> LegacyEntry:
    offset, _, crc, _, attributes = _LEGACY.unpack_from(view)
    timestamp = _LEGACY_TIMESTAMP.unpack_from(view, _LEGACY.size)[0] if magic else -1
    return LegacyEntry(offset, len(view), magic, crc, attributes, timestamp, view)


def crc_fault(batch: RecordBatch) -> str | None:
    """What is wrong with the batch's checksum, or None."""
    try:
        batch.check()
    except CorruptBatch as error:
        return str(error)
    return None
