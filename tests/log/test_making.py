"""Making logs: all at once, each failing alone, nothing handed over before it is on disk."""

import threading
from pathlib import Path

from barnabas.base.errors import StorageFault
from barnabas.base.types import TopicPartition
from barnabas.log.config import LogConfig
from barnabas.log.errors import DiskFault, FolderMismatch
from barnabas.log.files import OsFiles
from barnabas.log.making import LogMaking, NewPartition
from barnabas.log.partition_log import PartitionLog
from tests.log._make import NOW_MS

ID, OTHER_ID = bytes(range(16)), bytes(16)


class NotedFiles(OsFiles):
    """Real files that note what is synced, and refuse to sync `broken`."""

    def __init__(self, broken: str = "") -> None:
        self.synced: list[str] = []
        self._broken = broken
        self._noting = threading.Lock()

    def sync_folder(self, path: str) -> None:
        if path == self._broken:
            raise DiskFault(path, "the disk is gone")
        super().sync_folder(path)
        with self._noting:
            self.synced.append(path)


def wanted(count: int, topic_id: bytes = ID) -> list[NewPartition]:
    return [NewPartition(TopicPartition("t", index), topic_id, LogConfig()) for index in range(count)]


def made(
    files: OsFiles, placed: list[tuple[str, NewPartition]]
) -> dict[TopicPartition, PartitionLog | StorageFault]:
    making = LogMaking(files, placed, {}, NOW_MS)
    making.run()
    return making.found


def test_every_log_is_made_and_knows_its_topic(tmp_path: Path) -> None:
    found = made(NotedFiles(), [(str(tmp_path), new) for new in wanted(40)])
    assert len(found) == 40
    for partition, log in found.items():
        assert isinstance(log, PartitionLog)
        assert (log.topic_partition, log.topic_id, log.log_end_offset) == (partition, ID, 0)


def test_a_data_folder_is_synced_once_and_last(tmp_path: Path) -> None:
    files = NotedFiles()
    made(files, [(str(tmp_path), new) for new in wanted(20)])
    assert files.synced[-1] == str(tmp_path)
    assert files.synced.count(str(tmp_path)) == 1
    assert sorted(files.synced[:-1]) == sorted(f"{tmp_path}/t-{index}" for index in range(20))


def test_a_log_that_cannot_be_made_fails_alone(tmp_path: Path) -> None:
    made(OsFiles(), [(str(tmp_path), wanted(2, OTHER_ID)[1])])
    found = made(OsFiles(), [(str(tmp_path), new) for new in wanted(3)])
    kinds = [type(found[TopicPartition("t", index)]) for index in range(3)]
    assert kinds == [PartitionLog, FolderMismatch, PartitionLog]


def test_a_data_folder_that_cannot_be_synced_fails_all_that_is_in_it(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.mkdir()
    bad.mkdir()
    new = wanted(4)
    placed = [(str(bad if index % 2 else good), each) for index, each in enumerate(new)]
    found = made(NotedFiles(str(bad)), placed)
    assert [isinstance(found[each.partition], DiskFault) for each in new] == [False, True, False, True]


def test_nothing_to_make_is_no_work(tmp_path: Path) -> None:
    files = NotedFiles()
    assert made(files, []) == {}
    assert files.synced == []
