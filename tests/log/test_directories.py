"""The data folders of a broker: owners, locks, clean and unclean stops, failing disks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.types import TopicPartition
from barnabas.log.checkpoints import read_offsets
from barnabas.log.config import LogConfig
from barnabas.log.directories import LogDirectories
from barnabas.log.errors import CorruptSegment, DiskFault, FolderInUse, FolderMismatch, PartitionOffline
from barnabas.log.files import FileInfo, OsFiles
from barnabas.log.making import NewPartition
from barnabas.log.partition_log import PartitionLog
from tests.log._make import NOW_MS, append, batch, fill, offsets

A, B, C = TopicPartition("a", 0), TopicPartition("b", 0), TopicPartition("c", 0)
ID = bytes(range(16))
SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=100)


class Place:
    """Data folders under one temporary folder, with a clock and ids that repeat."""

    def __init__(self, root: Path, *names: str) -> None:
        self.root = root
        self.paths = [str(root / name) for name in names or ("one",)]
        self.clock = ManualClock(NOW_MS)
        self.ids: Iterator[bytes] = (bytes([number]) * 16 for number in range(1, 256))

    def open(
        self, *, broker_id: int = 1, cluster_id: str | None = "cluster", files: OsFiles | None = None
    ) -> LogDirectories:
        return LogDirectories.open(
            files or OsFiles(),
            self.paths,
            broker_id=broker_id,
            cluster_id=cluster_id,
            config_of=lambda topic: SMALL,
            clock=self.clock,
            new_id=lambda: next(self.ids),
        )


def need(directories: LogDirectories, partition: TopicPartition) -> PartitionLog:
    log = directories.get(partition)
    assert log is not None
    return log


class TestOwners:
    def test_a_folder_is_taken_once(self, tmp_path: Path) -> None:
        place = Place(tmp_path)
        directories = place.open()
        assert directories.cluster_id == "cluster"
        with pytest.raises(FolderInUse):
            place.open()
        directories.close()
        place.open().close()

    def test_another_broker_or_cluster_is_refused(self, tmp_path: Path) -> None:
        place = Place(tmp_path)
        place.open().close()
        with pytest.raises(FolderMismatch, match="belongs to broker 1, this is 2"):
            place.open(broker_id=2)
        with pytest.raises(FolderMismatch, match="belongs to cluster cluster, this is other"):
            place.open(cluster_id="other")
        place.open().close()

    def test_the_cluster_id_is_learnt_from_the_folder(self, tmp_path: Path) -> None:
        place = Place(tmp_path)
        place.open(cluster_id=None).close()
        place.open(cluster_id="late").close()
        directories = place.open(cluster_id=None)
        assert directories.cluster_id == "late"
        assert directories.folders[0].directory_id is not None
        directories.release()


class TestPartitions:
    def test_a_partition_goes_where_fewest_are(self, tmp_path: Path) -> None:
        directories = Place(tmp_path, "one", "two").open()
        for number in range(4):
            directories.create(TopicPartition("t", number), ID, SMALL)
        assert [len(folder.logs) for folder in directories.folders] == [2, 2]
        assert len(directories) == len(list(directories)) == 4
        directories.release()

    def test_many_are_made_at_once_and_spread_over_the_folders(self, tmp_path: Path) -> None:
        directories = Place(tmp_path, "one", "two").open()
        directories.create(A, ID, SMALL)
        parts = [TopicPartition("t", index) for index in range(5)]
        making = directories.begin_making([NewPartition(tp, ID, SMALL) for tp in [*parts, A]])
        assert len(making.placed) == 5
        assert directories.get(parts[0]) is None
        making.run()
        found = directories.finish_making(making)
        assert found == {tp: need(directories, tp) for tp in [*parts, A]}
        assert [len(folder.logs) for folder in directories.folders] == [3, 3]
        directories.close()

    def test_a_folder_that_failed_while_logs_were_made_in_it_takes_none(self, tmp_path: Path) -> None:
        directories = Place(tmp_path, "one", "two").open()
        first = directories.create(A, ID, SMALL)
        parts = [TopicPartition("t", index) for index in range(4)]
        making = directories.begin_making([NewPartition(tp, ID, SMALL) for tp in parts])
        making.run()
        fault = DiskFault(first.folder, "the disk is gone")
        directories.fail(first, fault)
        found = directories.finish_making(making)
        lost = [tp for tp in parts if found[tp] is fault]
        assert len(lost) in (1, 2)
        assert len(directories) == 4 - len(lost)
        directories.release()

    def test_what_is_there_is_not_made_again(self, tmp_path: Path) -> None:
        directories = Place(tmp_path).open()
        log = directories.create(A, ID, SMALL)
        assert directories.create(A, ID, SMALL) is log
        assert directories.get(A) is log
        assert directories.get(B) is None
        with pytest.raises(FolderMismatch):
            directories.create(A, b"x" * 16, SMALL)
        directories.release()

    def test_deletion_is_out_of_sight_at_once_and_off_the_disk_later(self, tmp_path: Path) -> None:
        place = Place(tmp_path)
        directories = place.open()
        fill(directories.create(A, ID, SMALL), 10)
        assert directories.delete(A)
        assert not directories.delete(A)
        assert directories.get(A) is None
        (gone,) = [path for path in (tmp_path / "one").iterdir() if path.is_dir()]
        assert gone.name.startswith("a-0.")
        assert gone.name.endswith("-delete")
        assert directories.purge() == 0
        place.clock.advance(SMALL.file_delete_delay_ms)
        assert directories.purge() == 1
        assert not gone.exists()
        fresh = directories.create(A, b"n" * 16, SMALL)
        assert fresh.log_end_offset == 0
        directories.release()

    def test_what_a_crash_left_to_delete_is_deleted(self, tmp_path: Path) -> None:
        place = Place(tmp_path)
        directories = place.open()
        directories.create(A, ID, SMALL)
        directories.delete(A)
        directories.release()
        directories = place.open()
        assert len(directories) == 0
        assert directories.purge() == 1
        directories.release()

    def test_stray_and_future_folders_are_left_alone(self, tmp_path: Path) -> None:
        place = Place(tmp_path)
        directories = place.open()
        directories.create(A, ID, SMALL)
        path = directories.set_stray(A)
        assert path is not None
        assert directories.set_stray(A) is None
        (tmp_path / "one" / f"b-0.{'f' * 32}-future").mkdir()
        (tmp_path / "one" / "lost+found").mkdir()
        directories.close()
        directories = place.open()
        assert directories.folders[0].stray_folders == [Path(path).name]
        assert directories.folders[0].future_folders == [f"b-0.{'f' * 32}-future"]
        assert len(directories) == 0
        directories.release()


class TestStopping:
    def test_a_clean_stop_needs_no_scan(self, tmp_path: Path) -> None:
        place = Place(tmp_path)
        directories = place.open()
        fill(directories.create(A, ID, SMALL), 40)
        directories.get(A).advance_log_start(7)  # type: ignore[union-attr]  # made above
        directories.write_high_watermarks({A: 33, B: 5})
        directories.close(broker_epoch=12)
        assert (tmp_path / "one" / ".kafka_cleanshutdown").exists()
        directories = place.open()
        log = need(directories, A)
        assert not (tmp_path / "one" / ".kafka_cleanshutdown").exists()
        assert log.recovery is not None
        assert (log.recovery.scanned_bytes, log.log_start_offset, log.topic_id) == (0, 7, ID)
        assert directories.folders[0].broker_epoch == 12
        assert directories.high_watermarks == {A: 33}
        directories.release()

    def test_after_a_crash_everything_behind_the_recovery_point_is_checked(self, tmp_path: Path) -> None:
        place = Place(tmp_path)
        directories = place.open()
        for partition in (A, B, C):
            fill(directories.create(partition, ID, SMALL), 40)
        need(directories, A).flush(now_ms=NOW_MS)
        directories.checkpoint()
        assert read_offsets(OsFiles(), str(tmp_path / "one" / "recovery-point-offset-checkpoint")) == {
            A: 40,
            B: 0,
            C: 0,
        }
        directories.release()
        directories = place.open()
        scanned = {log.topic_partition: log.recovery.scanned_bytes for log in directories if log.recovery}
        assert scanned[A] < scanned[B] == scanned[C] == need(directories, B).size_bytes
        for log in directories:
            assert offsets(log) == list(range(40))
        directories.release()

    def test_a_broken_checkpoint_costs_a_scan_and_no_data(self, tmp_path: Path) -> None:
        place = Place(tmp_path)
        directories = place.open()
        fill(directories.create(A, ID, SMALL), 40)
        directories.close()
        for path in (tmp_path / "one").glob("*-checkpoint"):
            path.write_text("rubbish")
        (tmp_path / "one" / ".kafka_cleanshutdown").unlink()
        directories = place.open()
        assert offsets(need(directories, A)) == list(range(40))
        directories.release()

    def test_a_cut_below_the_written_recovery_point_is_written_down_at_once(self, tmp_path: Path) -> None:
        """Else a torn tail behind the cut would be taken for damage to synced records."""
        place = Place(tmp_path)
        directories = place.open()
        log = directories.create(A, ID, SMALL)
        fill(log, 40)
        log.flush(now_ms=NOW_MS)
        directories.checkpoint()
        log.truncate_to(35, now_ms=NOW_MS)
        path = str(tmp_path / "one" / "recovery-point-offset-checkpoint")
        assert read_offsets(OsFiles(), path) == {A: 35}
        fill(log, 3)
        directories.release()
        newest = max((tmp_path / "one" / "a-0").glob("*.log"))
        newest.write_bytes(newest.read_bytes()[:-1])
        directories = place.open()
        assert need(directories, A).log_end_offset == 37
        need(directories, A).truncate_fully_and_start_at(5, now_ms=NOW_MS)
        assert read_offsets(OsFiles(), path) == {A: 5}
        directories.release()


class FailingFiles(OsFiles):
    """A file system on which one data folder fails from some moment on."""

    __slots__ = ("broken",)

    def __init__(self) -> None:
        self.broken: str | None = None

    def _check(self, path: str) -> None:
        if self.broken is not None and path.startswith(self.broken):
            raise DiskFault(path, "Input/output error")

    def list(self, path: str, *, sizes: bool = True) -> "list[FileInfo]":
        self._check(path)
        return super().list(path, sizes=sizes)

    def replace(self, path: str, content: bytes | bytearray | memoryview, *, sync: bool = True) -> None:
        self._check(path)
        super().replace(path, content, sync=sync)

    def sync_folder(self, path: str) -> None:
        self._check(path)
        super().sync_folder(path)


class TestFailingDisks:
    def two(self, tmp_path: Path) -> tuple[Place, FailingFiles, LogDirectories]:
        place, files = Place(tmp_path, "one", "two"), FailingFiles()
        directories = place.open(files=files)
        for partition in (A, B):
            fill(directories.create(partition, ID, SMALL), 10)
        return place, files, directories

    def test_a_failing_folder_takes_only_its_own_partitions(self, tmp_path: Path) -> None:
        _, _, directories = self.two(tmp_path)
        log = need(directories, A)
        assert directories.fail(log, DiskFault(log.folder, "Input/output error")) == [A]
        with pytest.raises(PartitionOffline, match=r"a-0 is offline: .*Input/output error"):
            directories.get(A)
        append(need(directories, B), batch())
        assert directories.create(C, ID, SMALL).folder.startswith(str(tmp_path / "two"))
        assert directories.fail(log, DiskFault(log.folder, "again")) == []
        with pytest.raises(DiskFault):
            directories.close()
        assert not (tmp_path / "one" / ".kafka_cleanshutdown").exists()
        assert (tmp_path / "two" / ".kafka_cleanshutdown").exists()

    def test_a_folder_that_fails_at_the_start_is_offline(self, tmp_path: Path) -> None:
        place, files, directories = self.two(tmp_path)
        directories.close()
        files.broken = place.paths[0]
        directories = place.open(files=files)
        assert directories.get(A) is None
        assert need(directories, B).log_end_offset == 10
        assert directories.folders[0].failure is not None
        directories.release()

    def test_when_all_fail_there_is_no_start(self, tmp_path: Path) -> None:
        place, files, directories = self.two(tmp_path)
        directories.close()
        files.broken = str(tmp_path)
        with pytest.raises(DiskFault, match="Input/output error"):
            place.open(files=files)
        files.broken = None
        place.open(files=files).close()

    def test_a_checkpoint_that_fails_takes_the_folder_offline(self, tmp_path: Path) -> None:
        place, files, directories = self.two(tmp_path)
        files.broken = place.paths[1]
        directories.checkpoint()
        directories.write_high_watermarks({A: 1, B: 1})
        assert list(directories.offline) == [B]
        assert need(directories, A).log_end_offset == 10
        directories.release()

    def test_no_folder_left_is_said(self, tmp_path: Path) -> None:
        _, files, directories = self.two(tmp_path)
        files.broken = str(tmp_path)
        directories.checkpoint()
        with pytest.raises(PartitionOffline, match="no data folder is online"):
            directories.create(C, ID, SMALL)
        directories.release()

    def test_a_damaged_log_is_offline_alone(self, tmp_path: Path) -> None:
        place, files, directories = self.two(tmp_path)
        log = need(directories, A)
        fill(log, 40)
        log.flush(now_ms=NOW_MS)
        path = Path(log.segments.active.path)
        directories.checkpoint()
        directories.release()
        content = bytearray(path.read_bytes())
        content[70] ^= 1
        path.write_bytes(content)
        directories = place.open(files=files)
        with pytest.raises(PartitionOffline, match="position 0: the stored CRC"):
            directories.get(A)
        assert isinstance(directories.offline[A], CorruptSegment)
        assert need(directories, B).log_end_offset == 10
        directories.release()

    def test_a_partition_in_two_folders_is_served_from_one(self, tmp_path: Path) -> None:
        place, files, directories = self.two(tmp_path)
        directories.close()
        (tmp_path / "two" / "a-0").mkdir()
        directories = place.open(files=files)
        assert need(directories, A).log_end_offset == 10
        assert isinstance(directories.offline[A], FolderMismatch)
        directories.release()
