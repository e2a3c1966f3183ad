"""The aborted transactions that end in one segment: the `.txnindex` file.

Entries of 34 bytes, big-endian: version i16 = 0, producer id i64, first offset i64, last offset i64 (that of
the abort marker), last stable offset i64 at that moment.  Ordered by last offset.  The file exists only
once something was aborted.  The last stable offset bounds a search: an entry cannot be missed in a
later segment once it has passed the offset that the reader wants.
One caller at a time.
"""

from bisect import bisect_left
from struct import Struct
from typing import Final, NamedTuple

from barnabas.base.buffers import SharedFile
from barnabas.log.errors import CorruptIndex
from barnabas.log.files import Files

__all__ = ["AbortedTransaction", "TransactionIndex"]

_ENTRY: Final = Struct(">hqqqq")
_LAST_OFFSET: Final = Struct(">18xq")
_VERSION: Final = 0


class AbortedTransaction(NamedTuple):
    """A transaction whose records, from `first_offset` on, readers of committed data must skip."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The file of one segment; `exists` says whether it is there, so that opening costs nothing.

    Like the other indexes it keeps fresh entries in memory until `write_out`: adding one never fails.
    """

    __slots__ = ("_file", "_files", "_fresh", "_size_bytes", "base_offset", "path")

    def __init__(self, files: Files, path: str, base_offset: int, *, exists: bool) -> None:
        self.path = path
        self.base_offset: Final = base_offset
        self._files: Final = files
        self._file: SharedFile | None = None
        self._fresh: list[AbortedTransaction] = []
        self._size_bytes = -1 if exists else 0  # -1: there is a file, nobody looked yet

    @property
    def exists(self) -> bool:
        """Whether there is a file (it may be empty) or an entry for one."""
        return self._size_bytes != 0 or self._file is not None or bool(self._fresh)

    def _opened(self) -> SharedFile:
        if self._file is None:
            self._file = self._files.open(self.path, create=True)
            size_bytes = self._files.size(self._file)
            self._size_bytes = size_bytes - size_bytes % _ENTRY.size
        return self._file

    def append(self, transaction: AbortedTransaction) -> None:
        """Add a transaction that ends behind all that are there."""
        self._fresh.append(transaction)

    def write_out(self) -> None:
        """Bring the fresh entries into the file."""
        if self._fresh:
            file = self._opened()
            packed = [_ENTRY.pack(_VERSION, *transaction) for transaction in self._fresh]
            self._files.append(file, self._size_bytes, packed)
            self._size_bytes += _ENTRY.size * len(packed)
            self._fresh = []

    def entries(self) -> list[AbortedTransaction]:
        """All of them.  Raises CorruptIndex."""
        return self._parse(self._stored(), 0) + self._fresh

    def _stored(self) -> bytes:
        if self._size_bytes == 0:
            return b""
        file = self._opened()  # which tells the size
        return self._files.read(file, 0, self._size_bytes)

    def _parse(self, data: bytes, slot: int) -> list[AbortedTransaction]:
        found = []
        for version, *fields in _ENTRY.iter_unpack(memoryview(data)[slot * _ENTRY.size :]):
            if version != _VERSION:
                raise CorruptIndex(f"{self.path}: version {version} instead of {_VERSION}")
            found.append(AbortedTransaction(*fields))
        return found

    def overlapping(self, first: int, end: int) -> tuple[list[AbortedTransaction], bool]:
        """Those that touch offsets [first, end), and whether later segments can hold no more of them."""
        data = self._stored()
        count = len(data) // _ENTRY.size
        data = data[: count * _ENTRY.size]
        slot = bisect_left(
            range(count), first, key=lambda slot: _LAST_OFFSET.unpack_from(data, slot * _ENTRY.size)[0]
        )
        found = []
        for transaction in self._parse(data, slot) + self._fresh:
            if transaction.last_offset >= first and transaction.first_offset < end:
                found.append(transaction)
            if transaction.last_stable_offset >= end:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions that end at `offset` or above."""
        kept = [transaction for transaction in self.entries() if transaction.last_offset < offset]
        stored = max(self._size_bytes, 0) // _ENTRY.size
        self._fresh = kept[stored:]
        if len(kept) < stored:
            self._files.truncate(self._opened(), len(kept) * _ENTRY.size)
            self._size_bytes = len(kept) * _ENTRY.size

    def reset(self) -> None:
        """Drop everything."""
        self._fresh = []
        if self.exists:
            self._files.truncate(self._opened(), 0)
            self._size_bytes = 0

    def check(self) -> None:
        """Raise CorruptIndex unless the entries are whole, in order and behind the segment's base."""
        if self._size_bytes != 0:
            size_bytes = self._files.size(self._opened())
            if size_bytes % _ENTRY.size:
                raise CorruptIndex(
                    f"{self.path}: {size_bytes} bytes are not whole entries of {_ENTRY.size} bytes"
                )
        last = self.base_offset - 1
        for transaction in self.entries():
            if transaction.last_offset <= last:
                raise CorruptIndex(f"{self.path}: {transaction} comes after offset {last}")
            last = transaction.last_offset

    def synced_file(self) -> SharedFile | None:
        """The file with all entries in it, for the caller to sync; None when nothing was ever aborted."""
        self.write_out()
        return self._opened() if self.exists else None

    def release(self) -> None:
        """Write out and let go of the file; the next use opens it again."""
        self.write_out()
        if self._file is not None:
            self._file = None
            if self._size_bytes == 0:
                self._size_bytes = -1  # there is an empty file, and the next look will see it

    def moved(self, path: str) -> None:
        """The file has been renamed."""
        self.release()
        self.path = path
