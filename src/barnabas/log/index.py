"""The sparse indexes of one segment: offset → byte position, and timestamp → offset.

Files are Apache Kafka's, big-endian.  `.index`: 8-byte entries (relative offset i32, position i32), the
offset being the *last* one of the batch that begins at the position.  `.timeindex`: 12-byte entries
(timestamp i64, relative offset i32): no record up to that offset is younger than the timestamp.

I1  Keys and values rise strictly from entry to entry (offset index), timestamps strictly and offsets
    weakly (time index).
I2  Entries are the file's first `_stored`, then `_fresh`: the newest stay in memory until `make_room` finds
    that enough came together, or `write_out` is called.  Adding an entry never fails.  What a crash takes
    with it, recovery rebuilds.
I3  Nothing is opened, read or mapped before it is asked for: an idle index is a path.

The file is mapped for look-ups and trimmed to its entries at all times, unlike Kafka's, which reserves
segment.index.bytes for the active segment.  One caller at a time.
"""

import weakref
from collections.abc import Callable
from struct import Struct
from typing import ClassVar, Final, NamedTuple

from barnabas.base.buffers import SharedFile
from barnabas.log.errors import CorruptIndex
from barnabas.log.files import Files, MappedFile

__all__ = ["OffsetIndex", "OffsetPosition", "TimeIndex", "TimestampOffset"]

_FRESH_BYTES_MAX: Final = 4096  # write to the file once that much waits
_GUESS_ENTRIES_MIN: Final = 64  # below that, halving is as quick as guessing

_pack_offset = Struct(">ii").pack
_pack_time = Struct(">qi").pack


class OffsetPosition(NamedTuple):
    """The batch that begins at `position` has `offset` as its last."""

    offset: int
    position: int


class TimestampOffset(NamedTuple):
    """A time, and the last offset of the batch that holds it."""

    timestamp: int
    offset: int


class _SparseIndex:
    """Entries of one fixed layout, (key, value), in a file and a fresh tail in memory."""

    __slots__ = ("_files", "_fresh", "_map", "_mapped", "_stored", "base_offset", "path")

    entry: ClassVar[Struct]
    key: ClassVar[Struct]
    value: ClassVar[Struct]

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        self.path = path
        self.base_offset: Final = base_offset
        self._files: Final = files
        self._map: weakref.ref[MappedFile] | None = None
        self._mapped = 0  # entries that the map covers
        self._stored = -1  # entries in the file; -1 before the first look
        self._fresh = bytearray()

    def __len__(self) -> int:
        return self._stored_entries() + len(self._fresh) // self.entry.size

    def _stored_entries(self) -> int:
        if self._stored < 0:
            self._stored = self._files.size(self._opened()) // self.entry.size
        return self._stored

    def _opened(self, *, create: bool = False) -> SharedFile:
        """The file, opened for this one use: entries are written in runs and read by mapping."""
        return self._files.open(self.path, create=create)

    def _mapping(self) -> MappedFile:
        """The file's entries; call only when there are some."""
        stored = self._stored_entries()
        mapping = self._map() if self._map is not None and self._mapped == stored else None
        if mapping is None:
            mapping = self._files.map(self._opened(), stored * self.entry.size)
            self._map, self._mapped = weakref.ref(mapping), stored
            self._files.remember(mapping)
        return mapping

    def _at(self, slot: int) -> tuple[int, int]:
        stored = self._stored_entries()
        size = self.entry.size
        key, value = (
            self.entry.unpack_from(self._mapping(), slot * size)
            if slot < stored
            else self.entry.unpack_from(self._fresh, (slot - stored) * size)
        )
        return key, value

    def _last_at_most(self, target: int, field: Struct, shift: int) -> int:
        """The last slot whose field at byte `shift` is not above `target`; -1 when all are."""
        stored = self._stored_entries()
        size, unpack = self.entry.size, field.unpack_from
        if self._fresh and unpack(self._fresh, shift)[0] <= target:
            buffer: bytearray | MappedFile = self._fresh
            low, high, first = 1, len(self._fresh) // size, stored
        elif stored:
            buffer = self._mapping()
            low, high, first = 0, stored, 0
        else:
            return -1
        if high - low > _GUESS_ENTRIES_MIN:
            low, high = _narrow(buffer, unpack, size, shift, low, high, target)
        while low < high:
            middle = (low + high) >> 1
            if unpack(buffer, middle * size + shift)[0] <= target:
                low = middle + 1
            else:
                high = middle
        return first + low - 1

    def make_room(self) -> None:
        """Write out if enough entries wait; for a caller about to add one, and ready for a DiskFault."""
        if len(self._fresh) >= _FRESH_BYTES_MAX:
            self.write_out()

    def write_out(self) -> None:
        """Bring the fresh entries into the file; makes an empty file when there was none."""
        file = self._opened(create=True)
        stored = self._stored_entries()
        if self._fresh:
            self._files.append(file, stored * self.entry.size, [self._fresh])
            self._stored = stored + len(self._fresh) // self.entry.size
            self._fresh = bytearray()

    def synced_file(self) -> SharedFile:
        """The file with all entries in it, for the caller to sync."""
        self.write_out()
        return self._opened()

    def release(self) -> None:
        """Write out and let go of the mapping; the next use makes another."""
        if self._fresh:
            self.write_out()
        self._unmap()

    def _unmap(self) -> None:
        if self._map is not None and (mapping := self._map()) is not None:
            self._files.drop(mapping)
        self._map, self._mapped = None, 0

    def moved(self, path: str) -> None:
        """The file has been renamed."""
        self.release()
        self.path = path

    def reset(self) -> None:
        """Drop every entry; makes the file when there was none."""
        file = self._opened(create=True)
        self._fresh = bytearray()
        self._unmap()
        self._files.truncate(file, 0)  # also what is no whole entry
        self._stored = 0

    def _keep(self, entries: int) -> None:
        stored = self._stored_entries()
        if entries >= stored:
            del self._fresh[(entries - stored) * self.entry.size :]
            return
        self._fresh = bytearray()
        self._unmap()
        self._files.truncate(self._opened(), entries * self.entry.size)
        self._stored = entries

    def _check_size(self) -> None:
        size_bytes = self._files.size(self._opened())
        if size_bytes % self.entry.size:
            raise CorruptIndex(
                f"{self.path}: {size_bytes} bytes are not whole entries of {self.entry.size} bytes"
            )


def _narrow(
    buffer: bytearray | MappedFile,
    unpack: Callable[[bytearray | MappedFile, int], tuple[int, ...]],
    size: int,
    shift: int,
    low: int,
    high: int,
    target: int,
) -> tuple[int, int]:
    """A smaller [low, high) that holds the answer of a binary search: guess by proportion, then gallop.

    Entries lie about evenly, so that the guess is near and two thirds of the probes are saved.
    """
    first = unpack(buffer, low * size + shift)[0]
    last = unpack(buffer, (high - 1) * size + shift)[0]
    if not first <= target < last:
        return (high, high) if target >= last else (low, low)
    guess = low + (high - 1 - low) * (target - first) // (last - first)
    step = 2
    if unpack(buffer, guess * size + shift)[0] <= target:
        while guess + step < high and unpack(buffer, (guess + step) * size + shift)[0] <= target:
            guess += step
            step *= 8
        return guess + 1, min(guess + step, high)
    while guess - step > low and unpack(buffer, (guess - step) * size + shift)[0] > target:
        guess -= step
        step *= 8
    return max(guess - step, low), guess


class OffsetIndex(_SparseIndex):
    """offset → position of its batch or one before it."""

    __slots__ = ()

    entry = Struct(">ii")
    key = Struct(">i")
    value = Struct(">i")

    def append(self, offset: int, position: int) -> None:
        """Note that the batch at `position` ends with `offset`; both must be above the last entry's."""
        self._fresh += _pack_offset(offset - self.base_offset, position)

    def floor(self, offset: int) -> OffsetPosition:
        """The last entry not above `offset`, or the segment's beginning."""
        slot = self._last_at_most(offset - self.base_offset, self.key, 0)
        return OffsetPosition(self.base_offset, 0) if slot < 0 else self[slot]

    def floor_position(self, position: int) -> OffsetPosition | None:
        """The last entry whose batch begins not behind `position`, or None."""
        slot = self._last_at_most(position, self.value, 4)
        return None if slot < 0 else self[slot]

    def last(self) -> OffsetPosition:
        """The last entry, or the segment's beginning."""
        return OffsetPosition(self.base_offset, 0) if not len(self) else self[len(self) - 1]

    def __getitem__(self, slot: int) -> OffsetPosition:
        relative, position = self._at(slot)
        return OffsetPosition(self.base_offset + relative, position)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of `offset` and above."""
        self._keep(self._last_at_most(offset - self.base_offset - 1, self.key, 0) + 1)

    def check(self, log_bytes: int) -> None:
        """Raise CorruptIndex when the file cannot belong to a segment of `log_bytes`.

        Looks at both ends only, so it is cheap; `barnabas log verify` compares every entry.
        """
        self._check_size()
        if not (count := len(self)):
            return
        first, last = self._at(0), self._at(count - 1)
        if not 0 <= first[0] <= last[0] or not 0 <= first[1] <= last[1] < log_bytes:
            raise CorruptIndex(f"{self.path}: from {first} to {last} cannot lie in {log_bytes} bytes")
        if count > 1 and (first[0] >= last[0] or first[1] >= last[1]):
            raise CorruptIndex(f"{self.path}: does not rise from {first} to {last}")


class TimeIndex(_SparseIndex):
    """timestamp → last offset of a batch before which nothing is younger."""

    __slots__ = ("_last_timestamp",)

    entry = Struct(">qi")
    key = Struct(">q")
    value = Struct(">i")

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        super().__init__(files, path, base_offset)
        self._last_timestamp: int | None = None  # of the last entry, once it was asked for

    def reset(self) -> None:
        super().reset()
        self._last_timestamp = None

    def append(self, timestamp: int, offset: int) -> None:
        """Note the largest timestamp so far and where it is; nothing happens unless it grew (I1)."""
        if self._last_timestamp is None:
            self._last_timestamp = self.last().timestamp
        if timestamp > self._last_timestamp:
            self._last_timestamp = timestamp
            self._fresh += _pack_time(timestamp, offset - self.base_offset)

    def floor(self, timestamp: int) -> TimestampOffset:
        """The last entry not younger than `timestamp`, or (-1, base offset)."""
        slot = self._last_at_most(timestamp, self.key, 0)
        return TimestampOffset(-1, self.base_offset) if slot < 0 else self[slot]

    def last(self) -> TimestampOffset:
        return TimestampOffset(-1, self.base_offset) if not len(self) else self[len(self) - 1]

    def __getitem__(self, slot: int) -> TimestampOffset:
        timestamp, relative = self._at(slot)
        return TimestampOffset(timestamp, self.base_offset + relative)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries that name `offset` or above."""
        self._last_timestamp = None
        self._keep(self._last_at_most(offset - self.base_offset - 1, self.value, 8) + 1)

    def check(self) -> None:
        """Raise CorruptIndex when the file's ends contradict each other."""
        self._check_size()
        if not (count := len(self)):
            return
        first, last = self._at(0), self._at(count - 1)
        if not 0 <= first[1] <= last[1] or first[0] > last[0] or (count > 1 and first[0] == last[0]):
            raise CorruptIndex(f"{self.path}: does not rise from {first} to {last}")
