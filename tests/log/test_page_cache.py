"""Cold readers leave the page cache as they found it."""

import weakref
from pathlib import Path

import pytest

from barnabas.base.buffers import FileSlice, SharedFile
from barnabas.log.config import BROKER_LOG
from barnabas.log.files import OsFiles
from barnabas.log.page_cache import WINDOW_BYTES, PageCacheCare, PageCacheSettings

FAR = 10**12


class NotedFiles(OsFiles):
    """Real files that note the advice given; residency is played, so that no other process can disturb it."""

    def __init__(self) -> None:
        self.cached: set[int] = set()
        self.knows = True
        self.dropped: list[int] = []
        self.asked_for: list[int] = []
        self.judged: list[int] = []

    def cached_bytes(self, file: SharedFile, position: int, length: int) -> int | None:
        self.judged.append(position // WINDOW_BYTES)
        if not self.knows:
            return None
        return length if position // WINDOW_BYTES in self.cached else 0

    def forget(self, file: SharedFile, position: int, length: int) -> None:
        self.dropped.append(position // WINDOW_BYTES)

    def prefetch(self, file: SharedFile, position: int, length: int) -> None:
        self.asked_for.append(position // WINDOW_BYTES)


@pytest.fixture
def files() -> NotedFiles:
    return NotedFiles()


@pytest.fixture
def file(files: NotedFiles, tmp_path: Path) -> SharedFile:
    return files.open(str(tmp_path / "00000000000000000000.log"), create=True)


@pytest.fixture
def care(files: NotedFiles) -> PageCacheCare:
    return PageCacheCare(files, PageCacheSettings(1000, 2 * WINDOW_BYTES))


def in_window(file: SharedFile, number: int, *, length: int = 100, at: int = 0) -> FileSlice:
    return FileSlice(file, number * WINDOW_BYTES + at, length)


def read(care: PageCacheCare, file: SharedFile, *windows: int) -> None:
    """Send a slice from each window, one after the other."""
    for number in windows:
        care.reading(in_window(file, number), FAR)


def test_settings_come_from_the_table() -> None:
    assert PageCacheSettings.of(BROKER_LOG.parse({})) == PageCacheSettings()


class TestHotReads:
    def test_near_the_end_the_kernel_rules(
        self, care: PageCacheCare, files: NotedFiles, file: SharedFile
    ) -> None:
        data = in_window(file, 0)
        assert care.reading(data, 999) is data
        assert (files.dropped, files.asked_for) == ([], [])

    def test_a_budget_of_zero_switches_the_care_off(
        self, care: PageCacheCare, files: NotedFiles, file: SharedFile
    ) -> None:
        care.configure(PageCacheSettings(0, 0))
        read(care, file, *range(10))
        assert files.dropped == []


class TestColdReads:
    def test_the_slice_sent_is_the_slice_asked_for(self, care: PageCacheCare, file: SharedFile) -> None:
        sent = care.reading(in_window(file, 3, at=17), FAR)
        assert (sent.file, sent.position, sent.length) == (file, 3 * WINDOW_BYTES + 17, 100)

    def test_what_is_read_once_is_dropped_behind_the_budget(
        self, care: PageCacheCare, files: NotedFiles, file: SharedFile
    ) -> None:
        read(care, file, 0, 0, 1, 1, 2, 3)
        assert files.dropped == [0, 1]
        assert care.stats.cold_bytes_now == 2 * WINDOW_BYTES

    def test_the_next_window_is_asked_for_ahead(
        self, care: PageCacheCare, files: NotedFiles, file: SharedFile
    ) -> None:
        read(care, file, 0, 0, 1)
        assert files.asked_for == [1, 2]

    def test_windows_that_were_cached_before_stay(
        self, care: PageCacheCare, files: NotedFiles, file: SharedFile
    ) -> None:
        files.cached = {1, 2}
        read(care, file, 0, 1, 2, 3, 4, 5)
        assert files.dropped == [0, 3]
        assert files.asked_for == [4, 5, 6]
        assert care.stats.reads_left_alone == 2

    def test_read_ahead_for_this_reader_does_not_count_as_cached(
        self, care: PageCacheCare, files: NotedFiles, file: SharedFile
    ) -> None:
        read(care, file, 0)
        files.cached = {0, 1, 2, 3, 4, 5, 6, 7}  # the kernel ran up to 28 MiB ahead
        read(care, file, 1, 2, 3)
        assert files.dropped == [0, 1]

    def test_a_cached_window_that_the_kernel_gave_up_since_is_judged_anew(
        self, care: PageCacheCare, files: NotedFiles, file: SharedFile
    ) -> None:
        files.cached = {0}
        care.reading(in_window(file, 0, length=WINDOW_BYTES), FAR)
        files.cached = set()
        read(care, file, 0, 1, 2)
        assert files.dropped == [0]

    def test_a_cached_window_is_judged_once_while_it_is_read(
        self, care: PageCacheCare, files: NotedFiles, file: SharedFile
    ) -> None:
        files.cached = {0, 1}
        for at in range(0, 2000, 100):
            assert isinstance(care.reading(in_window(file, 0, at=at), FAR), FileSlice)
        assert files.judged.count(0) == 1
        assert care.stats.reads_left_alone == 20

    def test_windows_left_half_read_are_forgotten_in_the_end(
        self, care: PageCacheCare, files: NotedFiles, file: SharedFile
    ) -> None:
        files.cached = set(range(400))
        read(care, file, *range(400))
        files.cached = set()
        read(care, file, 0, 1, 2)
        assert files.dropped == [0]

    def test_a_window_is_dropped_and_can_come_again(
        self, care: PageCacheCare, files: NotedFiles, file: SharedFile
    ) -> None:
        read(care, file, 0, 1, 2, 0)
        assert files.dropped == [0, 1]

    def test_readers_that_follow_each_other_share_a_window(
        self, care: PageCacheCare, files: NotedFiles, file: SharedFile
    ) -> None:
        read(care, file, 0, 1, 0, 2)
        assert files.dropped == [1]

    def test_a_slice_across_windows_takes_them_all(
        self, care: PageCacheCare, files: NotedFiles, file: SharedFile
    ) -> None:
        care.reading(in_window(file, 0, length=3 * WINDOW_BYTES), FAR)
        read(care, file, 5)
        assert files.dropped == [0, 1]

    def test_without_cachestat_distance_decides(
        self, care: PageCacheCare, files: NotedFiles, file: SharedFile
    ) -> None:
        files.knows = False
        read(care, file, 0, 1, 2)
        assert files.dropped == [0]


class TestSlicesInFlight:
    def test_a_window_is_not_dropped_while_it_is_sent_from(
        self, care: PageCacheCare, files: NotedFiles, file: SharedFile
    ) -> None:
        slow = care.reading(in_window(file, 0), FAR)
        read(care, file, 1, 2, 3)
        assert files.dropped == [1, 2]
        del slow
        read(care, file, 4)
        assert files.dropped == [1, 2, 0]

    def test_the_file_is_not_kept_open(self, care: PageCacheCare, files: NotedFiles, tmp_path: Path) -> None:
        idle, gone = (files.open(str(tmp_path / name), create=True) for name in ("idle", "gone"))
        read(care, idle, 0)
        read(care, gone, 0)
        (tmp_path / "gone").unlink()
        held = weakref.ref(idle), weakref.ref(gone)
        del idle, gone
        assert (held[0](), held[1]()) == (None, None)
        other = files.open(str(tmp_path / "other"), create=True)
        read(care, other, 0, 1)
        assert files.dropped == [0]  # the idle one's; what is deleted has no pages


@pytest.mark.slow
class TestTheRealKernel:
    @pytest.fixture
    def data(self, tmp_path: Path) -> tuple[OsFiles, SharedFile]:
        files = OsFiles()
        file = files.open(str(tmp_path / "data"), create=True)
        files.append(file, 0, [bytes(10 * WINDOW_BYTES)])
        files.sync(file)
        files.forget(file, 0, 0)
        if files.cached_bytes(file, 0, 10 * WINDOW_BYTES) != 0:
            pytest.skip("this file system keeps its pages, or the kernel has no cachestat")
        return files, file

    def test_a_scan_leaves_no_more_than_the_budget_cached(self, data: tuple[OsFiles, SharedFile]) -> None:
        files, file = data
        care = PageCacheCare(files, PageCacheSettings(0, 2 * WINDOW_BYTES))
        for position in range(0, 10 * WINDOW_BYTES, WINDOW_BYTES // 4):
            care.reading(FileSlice(file, position, WINDOW_BYTES // 4), FAR).read()
        cached = files.cached_bytes(file, 0, 10 * WINDOW_BYTES)
        assert cached is not None
        assert cached <= 3 * WINDOW_BYTES

    def test_what_was_cached_before_is_cached_after(self, data: tuple[OsFiles, SharedFile]) -> None:
        files, file = data
        FileSlice(file, 4 * WINDOW_BYTES, WINDOW_BYTES).read()
        care = PageCacheCare(files, PageCacheSettings(0, WINDOW_BYTES))
        for position in range(0, 10 * WINDOW_BYTES, WINDOW_BYTES // 2):
            care.reading(FileSlice(file, position, WINDOW_BYTES // 2), FAR).read()
        assert files.cached_bytes(file, 4 * WINDOW_BYTES, WINDOW_BYTES) == WINDOW_BYTES

    def test_a_cold_read_caches_nothing(self, data: tuple[OsFiles, SharedFile]) -> None:
        files, file = data
        buffer = memoryview(bytearray(WINDOW_BYTES))
        assert files.read_cold_into(file, 0, buffer) == WINDOW_BYTES
        if files.cached_bytes(file, 0, WINDOW_BYTES):
            pytest.skip("this kernel or file system has no RWF_DONTCACHE")
        assert files.read_cold_into(file, 9 * WINDOW_BYTES + 10, buffer) == WINDOW_BYTES - 10
