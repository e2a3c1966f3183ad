"""Index files as they lie there, for the tools: read whole, never opened for writing, never made.

A broker of Apache Kafka reserves index files at full size, so zeros may follow the last entry; they are cut
off here.
Raises CorruptIndex for files that are not whole entries, DiskFault when there is none.
"""

from itertools import pairwise
from struct import Struct
from typing import Final

from barnabas.log.errors import CorruptIndex
from barnabas.log.files import Files
from barnabas.log.index import OffsetIndex, OffsetPosition, TimeIndex, TimestampOffset
from barnabas.log.txn_index import AbortedTransaction

__all__ = ["load_aborted", "load_offset_index", "load_time_index", "sanity_fault"]

_ABORTED: Final = Struct(">hqqqq")


def _entries(files: Files, path: str, entry: Struct) -> list[tuple[int, ...]]:
    content = files.load(path)
    if content is None:
        raise CorruptIndex(f"{path}: there is no such file")
    if len(content) % entry.size:
        raise CorruptIndex(f"{path}: {len(content)} bytes are not whole entries of {entry.size} bytes")
    return list(entry.iter_unpack(content))


def load_offset_index(files: Files, path: str, base_offset: int) -> list[OffsetPosition]:
    """The entries, offsets absolute."""
    entries = _entries(files, path, OffsetIndex.entry)
    while len(entries) > 1 and entries[-1] == (0, 0):
        entries.pop()
    if entries == [(0, 0)]:
        return []
    return [OffsetPosition(base_offset + relative, position) for relative, position in entries]


def load_time_index(files: Files, path: str, base_offset: int) -> list[TimestampOffset]:
    """The entries, offsets absolute."""
    entries = _entries(files, path, TimeIndex.entry)
    while entries and entries[-1] == (0, 0):
        entries.pop()
    return [TimestampOffset(timestamp, base_offset + relative) for timestamp, relative in entries]


def load_aborted(files: Files, path: str) -> list[AbortedTransaction]:
    """The aborted transactions of a `.txnindex`."""
    found = []
    for version, *fields in _entries(files, path, _ABORTED):
        if version != 0:
            raise CorruptIndex(f"{path}: version {version} instead of 0")
        found.append(AbortedTransaction(*fields))
    return found


def sanity_fault(entries: list[OffsetPosition] | list[TimestampOffset]) -> str | None:
    """What makes a broker rebuild the index at its start, or None: entries that do not rise."""
    for before, after in pairwise(entries):
        if isinstance(after, OffsetPosition):
            rises = after[0] > before[0] and after[1] > before[1]
        else:
            rises = after[0] > before[0] and after[1] >= before[1]
        if not rises:
            return f"{tuple(after)} follows {tuple(before)}"
    return None
