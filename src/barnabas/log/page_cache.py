"""Keeping readers that are far behind from pushing hot data out of the page cache.

A reader of old records touches every page once; left alone, the kernel caches them all and gives up the tail
of other partitions, which every other reader needs.  The policy:

C1  A read that begins less than `barnabas.page.cache.hot.bytes` before the end of its partition is hot: the
    kernel rules.
C2  A colder read is judged in windows of 4 MiB, *before* it brings anything in (cachestat): a window of which
    more than a quarter is cached belongs to somebody else and is never dropped.  Windows are judged 32 MiB
    ahead of the reader, or the kernel's read-ahead for this very reader would look like somebody else.
    That verdict holds until a reader reaches the window's end.
C3  The other windows are ours: those that are not being sent from hold at most
    `barnabas.page.cache.cold.bytes` together.  The one not read for the longest time is dropped first
    (posix_fadvise DONTNEED), so readers that follow each other share what they read.
C4  The next window of ours is asked for ahead (WILLNEED): the reader finds it there, and sendfile does not
    wait for the disk.

Where the kernel has no cachestat (before Linux 6.5) every cold window counts as ours: distance alone decides.
Compaction and the verifying tools read with RWF_DONTCACHE instead (`Files.read_cold_into`).

`reading` is called on the event loop for every slice before it is sent; within a window it costs a dict
look-up, at the beginning of one a few microseconds.  Files are held weakly: a deleted segment gives its
space back.  One caller at a time; the slices it gives out may end their lives in any thread.
"""

import weakref
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.base.buffers import FileSlice, SharedFile
from barnabas.base.config import Settings
from barnabas.log.errors import DiskFault
from barnabas.log.files import Files

__all__ = ["WINDOW_BYTES", "ColdSlice", "PageCacheCare", "PageCacheSettings", "PageCacheStats"]

WINDOW_BYTES: Final = 4 * 2**20
_AHEAD_WINDOWS: Final = 8
_CACHED_SHARE_MAX: Final = 0.25
_JUDGED_MAX: Final = 16_384  # windows ahead of readers that never came
_FOREIGN_MAX: Final = 256  # windows that readers are in and that are somebody else's

_Window = tuple[str, int]  # path, number


@dataclass(frozen=True, slots=True)
class PageCacheSettings:
    """The `barnabas.page.cache.*` settings of a broker."""

    hot_bytes: int = 64 * 2**20
    cold_bytes: int = 64 * 2**20

    @classmethod
    def of(cls, settings: Settings) -> "PageCacheSettings":
        """The settings of a `BROKER_LOG` table."""
        return cls(
            settings.integer("barnabas.page.cache.hot.bytes"),
            settings.integer("barnabas.page.cache.cold.bytes"),
        )


class PageCacheStats(NamedTuple):
    """What the policy did so far, for the broker's metrics."""

    cold_bytes_now: int
    windows_ours: int
    windows_dropped: int
    reads_left_alone: int


class ColdSlice(FileSlice):
    """A slice from windows of ours; when its last reference goes, it has been sent or given up."""

    __slots__ = ("_done", "_windows")

    def __init__(self, data: FileSlice, windows: list[_Window], done: deque[list[_Window]]) -> None:
        super().__init__(data.file, data.position, data.length)
        self._windows = windows
        self._done = done

    def __del__(self) -> None:
        self._done.append(self._windows)  # atomic: this may be another thread than the caller's


class PageCacheCare:
    """The policy of one broker, over all its partitions."""

    __slots__ = (
        "_cold_bytes",
        "_done",
        "_files",
        "_foreign",
        "_handles",
        "_hot_bytes",
        "_judged",
        "_ours",
        "_reads_left_alone",
        "_windows_dropped",
        "_windows_ours",
    )

    def __init__(self, files: Files, settings: PageCacheSettings) -> None:
        self._files: Final = files
        self._hot_bytes = settings.hot_bytes
        self._cold_bytes = settings.cold_bytes
        self._handles: dict[str, weakref.ref[SharedFile]] = {}
        self._judged: OrderedDict[_Window, bool] = OrderedDict()  # ahead of readers: is it ours?
        self._foreign: dict[_Window, None] = {}  # judged not ours, and being read; oldest first
        self._ours: OrderedDict[_Window, int] = OrderedDict()  # slices in flight; least recently read first
        self._done: deque[list[_Window]] = deque()
        self._reads_left_alone = 0
        self._windows_ours = 0
        self._windows_dropped = 0

    def configure(self, settings: PageCacheSettings) -> None:
        """Take new settings.  `cold_bytes` 0 switches the whole care off."""
        self._hot_bytes = settings.hot_bytes
        self._cold_bytes = settings.cold_bytes
        self._settle()

    @property
    def hot_bytes(self) -> int:
        """How near to its partition's end a read is left to the kernel."""
        return self._hot_bytes

    @property
    def stats(self) -> PageCacheStats:
        return PageCacheStats(
            len(self._ours) * WINDOW_BYTES,
            self._windows_ours,
            self._windows_dropped,
            self._reads_left_alone,
        )

    def reading(self, data: FileSlice, bytes_behind: int) -> FileSlice:
        """What to send in place of `data`, which begins `bytes_behind` bytes before its partition's end.

        Let go of the answer as soon as it is sent, or will not be.
        """
        if bytes_behind < self._hot_bytes or self._cold_bytes <= 0:
            return data
        file, end = data.file, data.position + data.length
        path, first, last = file.path, data.position // WINDOW_BYTES, (end - 1) // WINDOW_BYTES
        if first == last and (path, first) in self._foreign and end % WINDOW_BYTES:
            self._reads_left_alone += 1  # the usual case of a reader that others have gone before
            return data
        windows = [(path, number) for number in range(first, last + 1) if self._enter(file, number)]
        for number in range(first, end // WINDOW_BYTES):
            self._foreign.pop((path, number), None)  # if it stays cached, the next one's verdict is the same
        if len(windows) <= last - first:
            self._reads_left_alone += 1
        for window in windows:
            self._ours[window] += 1
        self._settle()
        return ColdSlice(data, windows, self._done) if windows else data

    def _enter(self, file: SharedFile, number: int) -> bool:
        """A cold reader is in a window; says whether it is ours."""
        window = (file.path, number)
        if window in self._ours:
            self._ours.move_to_end(window)
            return True
        if window in self._foreign:
            return False
        for ahead in range(number, number + 1 + _AHEAD_WINDOWS):
            self._judge(file, ahead)
        if not self._judged.pop(window):
            self._foreign[window] = None
            if len(self._foreign) > _FOREIGN_MAX:
                del self._foreign[next(iter(self._foreign))]
            return False
        self._ours[window] = 0
        self._windows_ours += 1
        self._handles[file.path] = weakref.ref(file)
        if self._judged.get((file.path, number + 1)):
            self._files.prefetch(file, (number + 1) * WINDOW_BYTES, WINDOW_BYTES)
        return True

    def _judge(self, file: SharedFile, number: int) -> None:
        window = (file.path, number)
        if window in self._judged or window in self._ours:
            return
        cached = self._files.cached_bytes(file, number * WINDOW_BYTES, WINDOW_BYTES)
        self._judged[window] = cached is None or cached <= WINDOW_BYTES * _CACHED_SHARE_MAX
        if len(self._judged) > _JUDGED_MAX:
            self._judged.popitem(last=False)

    def _settle(self) -> None:
        """Take note of finished slices and drop what is too much (C3)."""
        while self._done:
            for window in self._done.popleft():
                if window in self._ours:
                    self._ours[window] -= 1
        excess = len(self._ours) - max(self._cold_bytes // WINDOW_BYTES, 1)
        if excess > 0:
            idle = [window for window, in_flight in self._ours.items() if in_flight == 0]
            for window in idle[:excess]:
                del self._ours[window]
                self._drop(*window)

    def _drop(self, path: str, number: int) -> None:
        self._windows_dropped += 1
        handle = self._handles.get(path)
        if (file := handle() if handle else None) is None:
            self._handles.pop(path, None)
            try:
                file = self._files.open_to_read(path)
            except DiskFault:
                return  # deleted: its pages went with it
        self._files.forget(file, number * WINDOW_BYTES, WINDOW_BYTES)
