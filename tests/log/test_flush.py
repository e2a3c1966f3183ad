"""The middle step of a flush; the other two are the log's, see test_partition_log."""

from pathlib import Path

import pytest

from barnabas.base.buffers import SharedFile
from barnabas.log.errors import DiskFault
from barnabas.log.files import OsFiles
from barnabas.log.flush import FlushJob


class Watched(OsFiles):
    """Notes what is synced, and fails for one path."""

    __slots__ = ("fails", "synced")

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.synced: list[str] = []

    def sync(self, file: SharedFile) -> None:
        if file.path == self.fails:
            raise DiskFault(file.path, "Input/output error")
        self.synced.append(file.path)

    def sync_folder(self, path: str) -> None:
        self.synced.append(path)


def test_files_come_before_their_folder(tmp_path: Path) -> None:
    files = Watched()
    opened = [files.open(str(tmp_path / name), create=True) for name in ("a", "b")]
    FlushJob(files, opened, str(tmp_path), end_offset=7).run()
    assert files.synced == [str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path)]
    FlushJob(files, [], None, end_offset=7).run()
    assert len(files.synced) == 3


def test_a_failure_reaches_the_caller(tmp_path: Path) -> None:
    files = Watched(fails=str(tmp_path / "a"))
    opened = [files.open(str(tmp_path / "a"), create=True)]
    with pytest.raises(DiskFault, match="Input/output error"):
        FlushJob(files, opened, str(tmp_path), end_offset=7).run()


def test_a_removed_file_can_still_be_synced(tmp_path: Path) -> None:
    files = OsFiles()
    opened = [files.open(str(tmp_path / "a"), create=True)]
    files.remove(str(tmp_path / "a"))
    FlushJob(files, opened, None, end_offset=7).run()
