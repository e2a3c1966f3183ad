"""The door to the file system: all or error, atomic replacement, one clear fault."""

import errno
import resource
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.log.errors import DiskFault, DiskFull, FolderInUse, disk_fault
from barnabas.log.files import OsFiles

FILES = OsFiles()


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of this process can grow past 1,000 bytes, which fails a write like a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


class TestAppendIsAllOrError:
    def test_buffers_land_one_after_the_other(self, tmp_path: Path) -> None:
        file = FILES.open(str(tmp_path / "f"), create=True)
        FILES.append(file, 0, [b"one", b"", bytearray(b"two")])
        FILES.append(file, 6, [memoryview(b"three")])
        assert FILES.read(file, 0, 100) == b"onetwothree"

    def test_more_buffers_than_one_call_takes(self, tmp_path: Path) -> None:
        file = FILES.open(str(tmp_path / "f"), create=True)
        FILES.append(file, 0, [b"%04d" % number for number in range(3000)])
        assert FILES.read(file, 4 * 2999, 100) == b"2999"

    @pytest.mark.usefixtures("small_files")
    def test_a_short_write_is_undone(self, tmp_path: Path) -> None:
        file = FILES.open(str(tmp_path / "f"), create=True)
        FILES.append(file, 0, [b"x" * 900])
        with pytest.raises(DiskFull, match=r"f: File too large"):
            FILES.append(file, 900, [b"y" * 60, b"z" * 100])
        assert FILES.size(file) == 900
        FILES.append(file, 900, [b"y" * 100])
        assert FILES.size(file) == 1000

    @pytest.mark.usefixtures("small_files")
    def test_a_failed_overwrite_keeps_the_length(self, tmp_path: Path) -> None:
        file = FILES.open(str(tmp_path / "f"), create=True)
        FILES.allocate(file, 1000)
        with pytest.raises(DiskFull):
            FILES.overwrite(file, 950, [b"y" * 100])
        assert FILES.size(file) == 1000


class TestReading:
    def test_the_end_of_the_file_gives_what_there_is(self, tmp_path: Path) -> None:
        file = FILES.open(str(tmp_path / "f"), create=True)
        FILES.append(file, 0, [b"abcdef"])
        assert FILES.read(file, 4, 10) == b"ef"
        assert FILES.read(file, 6, 10) == b""
        buffer = bytearray(10)
        assert FILES.read_into(file, 2, memoryview(buffer)) == 4
        assert buffer[:4] == b"cdef"

    def test_a_mapping_shows_the_bytes(self, tmp_path: Path) -> None:
        file = FILES.open(str(tmp_path / "f"), create=True)
        FILES.append(file, 0, [b"abcdef"])
        assert FILES.map(file, 6)[2:4] == b"cd"

    def test_a_mapping_past_the_end_is_a_fault(self, tmp_path: Path) -> None:
        file = FILES.open(str(tmp_path / "f"), create=True)
        with pytest.raises(DiskFault):
            FILES.map(file, 8)

    def test_hints_never_fail(self, tmp_path: Path) -> None:
        FILES.forget(FILES.open(str(tmp_path / "f"), create=True), 0, 10)


class TestRemembering:
    def test_the_last_few_hundred_stay_open(self, tmp_path: Path) -> None:
        alive = []
        for number in range(600):
            file = FILES.open(str(tmp_path / str(number)), create=True)
            FILES.remember(file)
            alive.append(weakref.ref(file))
        del file
        assert [each() is not None for each in alive] == [False] * 88 + [True] * 512
        for each in alive:
            if (still := each()) is not None:
                FILES.drop(still)
        still = None
        assert not any(each() for each in alive)


class TestFaultsNameThePath:
    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(DiskFault, match=r"/nope: No such file or directory"):
            FILES.open(str(tmp_path / "nope"))
        with pytest.raises(DiskFault):
            FILES.list(str(tmp_path / "nope"))
        with pytest.raises(DiskFault):
            FILES.sync_folder(str(tmp_path / "nope"))
        with pytest.raises(DiskFault):
            FILES.rename(str(tmp_path / "nope"), str(tmp_path / "new"))

    def test_a_file_where_a_folder_should_be(self, tmp_path: Path) -> None:
        (tmp_path / "f").touch()
        for call in (FILES.make_folder, FILES.load, FILES.exists, FILES.remove):
            with pytest.raises(DiskFault):
                call(str(tmp_path / "f" / "x"))

    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
    def test_no_room_is_a_fault_of_its_own(self, code: int) -> None:
        fault = disk_fault("/d/f", OSError(code, "no room"))
        assert type(fault) is DiskFull
        assert (fault.path, fault.retriable) == ("/d/f", True)

    def test_any_other_error_is_a_disk_fault(self) -> None:
        assert type(disk_fault("/d/f", OSError(errno.EIO, "I/O error"))) is DiskFault


class TestSmallFiles:
    def test_content_is_replaced_whole(self, tmp_path: Path) -> None:
        path = str(tmp_path / "f")
        assert FILES.load(path) is None
        FILES.replace(path, b"old and long")
        FILES.replace(path, b"new", sync=False)
        assert FILES.load(path) == b"new"
        assert [info.name for info in FILES.list(str(tmp_path))] == ["f"]

    def test_a_left_over_temporary_file_does_no_harm(self, tmp_path: Path) -> None:
        (tmp_path / "f.tmp").write_bytes(b"a crash left this rather long text")
        FILES.replace(str(tmp_path / "f"), b"new")
        assert FILES.load(str(tmp_path / "f")) == b"new"

    def test_listing_tells_files_from_folders(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"12345")
        FILES.make_folder(str(tmp_path / "folder" / "inner"))
        found = {info.name: (info.is_folder, info.size_bytes) for info in FILES.list(str(tmp_path))}
        assert found["file"] == (False, 5)
        assert found["folder"][0]
        assert {info.size_bytes for info in FILES.list(str(tmp_path), sizes=False)} == {0}

    def test_removing_what_is_not_there_is_no_error(self, tmp_path: Path) -> None:
        FILES.remove(str(tmp_path / "nope"))
        FILES.remove_folder(str(tmp_path / "nope"))
        FILES.make_folder(str(tmp_path / "a" / "b"))
        FILES.remove_folder(str(tmp_path / "a"))
        assert not FILES.exists(str(tmp_path / "a"))


class TestLocks:
    def test_a_second_holder_in_this_process_is_refused(self, tmp_path: Path) -> None:
        path = str(tmp_path / ".lock")
        lock = FILES.lock(path)
        with pytest.raises(FolderInUse, match=r"\.lock: held by process \d+"):
            FILES.lock(path)
        lock.release()
        FILES.lock(path).release()

    @pytest.mark.slow
    def test_a_second_process_is_refused_and_told_who_holds_it(self, tmp_path: Path) -> None:
        lock = FILES.lock(str(tmp_path / ".lock"))
        code = "import sys; from barnabas.log.files import OsFiles; OsFiles().lock(sys.argv[1])"
        other = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / ".lock")], capture_output=True, text=True, check=False
        )
        lock.release()
        pid = (tmp_path / ".lock").read_text().strip()
        assert f"held by process {pid}" in other.stderr
