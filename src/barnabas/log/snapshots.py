"""The producer snapshots of one partition folder: which there are, writing, and the newest that is whole.

A snapshot is written when a segment is rolled (named by the new base offset) and at a clean shutdown
(named by the log end offset).  One caller at a time.
"""

import logging
from collections.abc import Iterable

from barnabas.log.errors import CorruptSnapshot
from barnabas.log.files import Files
from barnabas.log.layout import SNAPSHOT, offset_name
from barnabas.log.producer_snapshot import decode_snapshot, encode_snapshot
from barnabas.log.producers import ProducerStates

__all__ = ["Snapshots"]

_log = logging.getLogger(__name__)


class Snapshots:
    """Offsets of the snapshot files in `folder`."""

    __slots__ = ("_files", "_folder", "_offsets")

    def __init__(self, files: Files, folder: str, offsets: Iterable[int] = ()) -> None:
        self._files = files
        self._folder = folder
        self._offsets = sorted(offsets)

    @property
    def offsets(self) -> list[int]:
        return list(self._offsets)

    def path(self, offset: int) -> str:
        return f"{self._folder}/{offset_name(offset)}{SNAPSHOT}"

    def moved(self, folder: str) -> None:
        """The partition's folder has been renamed."""
        self._folder = folder

    def write(self, producers: ProducerStates, offset: int, *, sync: bool) -> str:
        """Write the state as it is at `offset`; returns the path."""
        path = self.path(offset)
        self._files.replace(path, encode_snapshot(producers.producers.values()), sync=sync)
        if offset not in self._offsets:
            self._offsets.append(offset)
            self._offsets.sort()
        return path

    def newest(self, at_most: int) -> ProducerStates:
        """The state of the newest whole snapshot not above an offset; empty when there is none.

        Damaged ones on the way are removed.  An empty state's `end_offset` is 0: replay everything.
        """
        for offset in [offset for offset in reversed(self._offsets) if offset <= at_most]:
            path = self.path(offset)
            try:
                if (content := self._files.load(path)) is not None:
                    producers = ProducerStates()
                    producers.restore(decode_snapshot(path, content), offset)
                    return producers
            except CorruptSnapshot as error:
                _log.warning("%s; it goes, an older one serves", error)
            self.remove(offset)
        return ProducerStates()

    def remove(self, offset: int) -> None:
        if offset in self._offsets:
            self._offsets.remove(offset)
            self._files.remove(self.path(offset))

    def remove_above(self, offset: int) -> None:
        for stale in [snapshot for snapshot in self._offsets if snapshot > offset]:
            self.remove(stale)

    def remove_all(self) -> None:
        for offset in tuple(self._offsets):
            self.remove(offset)

    def remove_strays(self, segment_bases: list[int], log_end_offset: int) -> None:
        """Keep those that belong to a segment, and the newest, which a clean shutdown leaves."""
        self.remove_above(log_end_offset)
        newest = self._offsets[-1:]
        for offset in tuple(self._offsets):
            if offset not in segment_bases and offset not in newest:
                self.remove(offset)
