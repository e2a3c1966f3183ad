"""Walking the batches of a segment file without an index: headers only, or every byte with its CRC.

Reading goes through a buffer of our own and not a mapping, because a disk error then is an exception
and not a signal that ends the process.  Any thread may scan its own file.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

import crc32c as _crc32c_package

from barnabas.base.buffers import SharedFile
from barnabas.log.errors import CorruptSegment
from barnabas.log.files import Files
from barnabas.records.batch import (
    CRC_COVERS_FROM,
    HEADER_BYTES,
    LENGTH_COUNTS_FROM,
    MAGIC,
    RecordBatch,
    read_header,
)

__all__ = ["BatchPlace", "BatchScanner", "batch_at", "first_batch_ending_at", "header_fault", "walk_batches"]

_CHUNK_BYTES: Final = 1 << 20  # fits a second-level cache: the CRC then reads what the copy just wrote
_WALK_BYTES: Final = 8192  # what one look at the file reads: an index interval and a header behind it
_crc32c = _crc32c_package.crc32c

# base_offset, length, magic, last_offset_delta, max_timestamp
_read_place = Struct(">qi4xb6xi8xq").unpack_from
_new = tuple.__new__  # half the cost of calling a NamedTuple


class BatchPlace(NamedTuple):
    """A batch in a file."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    max_timestamp: int


def header_fault(length: int, magic: int, last_offset_delta: int, bytes_left: int) -> str | None:
    """What is wrong with the framing of a stored batch, or None."""
    size_bytes = length + LENGTH_COUNTS_FROM
    if magic != MAGIC:
        if length == 0 and magic == 0:
            return "no batch, but zeros"
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


def walk_batches(
    files: Files, file: SharedFile, position: int, end: int, ends_by: int | None = None
) -> Iterator[BatchPlace]:
    """The batches of `file` in [position, end), by their headers, read in small pieces.

    The first one must not end behind offset `ends_by`, if that is given: an index has promised it.
    Raises CorruptSegment where the chain of lengths breaks or the promise is broken.
    """
    data, at = b"", 0
    while position < end:
        if len(data) - at < HEADER_BYTES:
            data, at = _header_bytes(files, file, position, at), 0
        base_offset, length, magic, delta, max_timestamp = _read_place(data, at)
        last_offset, size_bytes = base_offset + delta, length + LENGTH_COUNTS_FROM
        if magic != MAGIC or size_bytes < HEADER_BYTES or size_bytes > end - position or delta < 0:
            raise CorruptSegment(file.path, position, str(header_fault(length, magic, delta, end - position)))
        if ends_by is not None:
            _check_promise(file, position, last_offset, ends_by)
            ends_by = None
        yield BatchPlace(position, size_bytes, base_offset, last_offset, max_timestamp)
        at += size_bytes
        position += size_bytes


def batch_at(files: Files, file: SharedFile, position: int, end: int) -> BatchPlace:
    """The batch that begins at `position`, before `end`.  Raises CorruptSegment unless one does."""
    data = _header_bytes(files, file, position, _WALK_BYTES)
    base_offset, length, magic, delta, max_timestamp = _read_place(data)
    size_bytes = length + LENGTH_COUNTS_FROM
    if magic != MAGIC or size_bytes < HEADER_BYTES or size_bytes > end - position or delta < 0:
        raise CorruptSegment(file.path, position, str(header_fault(length, magic, delta, end - position)))
    return _new(BatchPlace, (position, size_bytes, base_offset, base_offset + delta, max_timestamp))


def first_batch_ending_at(
    files: Files, file: SharedFile, position: int, end: int, offset: int, ends_by: int | None
) -> tuple[int, int, int] | None:
    """(position, end, last offset) of the first batch that ends with `offset` or behind it.

    As `walk_batches`, without an object per batch: every read of old data comes through here.
    """
    data, at = b"", 0
    while position < end:
        if len(data) - at < HEADER_BYTES:
            data, at = _header_bytes(files, file, position, at), 0
        base_offset, length, magic, delta, _ = _read_place(data, at)
        last_offset, size_bytes = base_offset + delta, length + LENGTH_COUNTS_FROM
        if magic != MAGIC or size_bytes < HEADER_BYTES or size_bytes > end - position or delta < 0:
            raise CorruptSegment(file.path, position, str(header_fault(length, magic, delta, end - position)))
        if ends_by is not None:
            _check_promise(file, position, last_offset, ends_by)
            ends_by = None
        if last_offset >= offset:
            return position, position + size_bytes, last_offset
        at += size_bytes
        position += size_bytes
    return None


def _header_bytes(files: Files, file: SharedFile, position: int, stepped: int) -> bytes:
    """The next header; with those behind it, unless the last step went past all that one read would bring."""
    if position < 0:
        raise CorruptSegment(file.path, position, "there is no such position")
    data = files.read(file, position, HEADER_BYTES if stepped >= _WALK_BYTES else _WALK_BYTES)
    if len(data) < HEADER_BYTES:
        raise CorruptSegment(file.path, position, f"{len(data)} bytes are too few for a batch")
    return data


def _check_promise(file: SharedFile, position: int, last_offset: int, ends_by: int) -> None:
    if last_offset > ends_by:
        raise CorruptSegment(
            file.path, position, f"the index has a batch here that ends with {ends_by}, not {last_offset}"
        )


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
