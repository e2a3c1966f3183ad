"""Walking the batches of a segment file without an index: headers only, or every byte with its CRC.

Reading goes through a buffer of our own and not a mapping, because a disk error then is an exception
and not a signal that ends the process.  Any thread may scan its own file.
"""

from collections.abc import Iterator
from typing import Final

import crc32c as _crc32c_package

from barnabas.base.buffers import SharedFile
from barnabas.log.files import Files
from barnabas.records.batch import (
    CRC_COVERS_FROM,
    HEADER_BYTES,
    LENGTH_COUNTS_FROM,
    MAGIC,
    RecordBatch,
    read_header,
)

__all__ = ["BatchScanner", "header_fault"]

_CHUNK_BYTES: Final = 1 << 20  # fits a second-level cache: the CRC then reads what the copy just wrote
_crc32c = _crc32c_package.crc32c


def header_fault(length: int, magic: int, last_offset_delta: int, bytes_left: int) -> str | None:
    """What is wrong with the framing of a stored batch, or None."""
    size_bytes = length + LENGTH_COUNTS_FROM
    if magic != MAGIC:
        if magic in (0, 1):
            return f"message format {magic} is not read from disk, only 2"
        return f"magic {magic} instead of {MAGIC}"
    if size_bytes < HEADER_BYTES:
        return f"a batch of {size_bytes} bytes is shorter than its header"
    if size_bytes > bytes_left:
        return f"a batch of {size_bytes} bytes with {bytes_left} bytes left"
    if last_offset_delta < 0:
        return f"last offset delta {last_offset_delta}"
    return None


class BatchScanner:
    """Every batch of `file` in [position, end), with its CRC checked.

    Iterate; then `position` is where the first bad batch begins, or `end`, and `fault` says what is
    wrong with it, or None.  A batch is valid only until the next step: its memory is reused.
    `cold` reads around the page cache, for bytes that nobody else is about to read.
    """

    __slots__ = ("_end", "_file", "_read_into", "fault", "position")

    def __init__(
        self, files: Files, file: SharedFile, position: int, end: int, *, cold: bool = False
    ) -> None:
        self._read_into: Final = files.read_cold_into if cold else files.read_into
        self._file: Final = file
        self._end: Final = end
        self.position = position
        self.fault: str | None = None

    def __iter__(self) -> Iterator[RecordBatch]:
        """The batches in turn; `position` is that of the batch in hand."""
        buffer = memoryview(bytearray(min(_CHUNK_BYTES, max(self._end - self.position, HEADER_BYTES))))
        filled = at = 0  # bytes of the file in the buffer, and how many of them are behind us
        while self.position < self._end:
            left = self._end - self.position
            if filled - at < HEADER_BYTES:
                if left < HEADER_BYTES:
                    self.fault = f"{left} bytes are too few for a batch"
                    return
                filled, at = self._read_into(self._file, self.position, buffer), 0
                if filled < HEADER_BYTES:
                    self.fault = f"the file ends after {filled} more bytes"
                    return
            header = read_header(buffer, at)
            size = header[1] + LENGTH_COUNTS_FROM
            if fault := header_fault(header[1], header[3], header[6], left):
                self.fault = fault
                return
            if filled - at < size:
                if size > len(buffer):
                    buffer = memoryview(bytearray(size))
                filled, at = self._read_into(self._file, self.position, buffer), 0
                if filled < size:
                    self.fault = f"the file ends after {filled} of {size} bytes"
                    return
            if (crc := _crc32c(buffer[at + CRC_COVERS_FROM : at + size])) != header[4]:
                self.fault = f"the stored CRC is {header[4]:#010x}, the bytes have {crc:#010x}"
                return
            yield RecordBatch(buffer, at)
            at += size
            self.position += size
