"""Verifying data folders: silence when all is well, file and position when it is not."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.log.errors import DiskFault
from barnabas.log.files import OsFiles
from barnabas.log.layout import CLEANER_OFFSETS
from barnabas.log.verify import Fault, Verifier
from barnabas.records.batch import seal_batch
from tests import _kafka
from tests.log._make import batch
from tests.log._samples import sample_folder

FIRST = "00000000000000000000"
SECOND = "00000000000000000014"


def faults(folder: Path) -> list[str]:
    return [str(fault).replace(f"{folder}/", "") for fault in Verifier(OsFiles()).verify(str(folder))]


def change(path: Path, position: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(content)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sample_folder(tmp_path)
    return tmp_path


class TestSound:
    @pytest.mark.parametrize("cleaned", [False, True], ids=["as written", "compacted"])
    def test_a_sound_folder_has_no_faults(self, tmp_path: Path, cleaned: bool) -> None:
        partition = sample_folder(tmp_path, cleaned=cleaned)
        verifier = Verifier(OsFiles())
        assert list(verifier.verify(str(tmp_path))) == []
        assert verifier.stats.partitions == 1
        assert verifier.stats.bytes_read == sum(path.stat().st_size for path in partition.glob("*.log"))

    def test_a_single_partition_can_be_named(self, folder: Path) -> None:
        assert faults(folder / "topic-0") == []

    def test_progress_adds_up_to_the_size(self, folder: Path) -> None:
        seen: list[int] = []
        verifier = Verifier(OsFiles(), seen.append)
        total = verifier.size_bytes(str(folder))
        list(verifier.verify(str(folder)))
        assert sum(seen) == total > 0
        assert verifier.size_bytes(str(folder / "topic-0")) == total

    def test_work_in_progress_is_passed_over(self, folder: Path) -> None:
        (folder / "topic-0" / f"{FIRST}.log.cleaned").write_bytes(b"half")
        (folder / f"topic-1.{'0' * 32}-delete").mkdir()
        assert faults(folder) == []

    def test_a_missing_folder_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(DiskFault, match="No such file"):
            faults(tmp_path / "none")

    def test_a_fault_reads_as_a_sentence(self) -> None:
        assert str(Fault("a.log", 17, "is wrong")) == "a.log, position 17: is wrong"
        assert str(Fault("a.log", None, "is wrong")) == "a.log: is wrong"


class TestSegments:
    def test_a_flipped_bit(self, folder: Path) -> None:
        change(folder / "topic-0" / f"{FIRST}.log", 75, b"\xff")
        (fault,) = faults(folder)
        assert fault.startswith(f"topic-0/{FIRST}.log, position 0: batch at offset 0: the stored CRC is")

    def test_a_torn_tail(self, folder: Path) -> None:
        path = folder / "topic-0" / "00000000000000000019.log"
        path.write_bytes(path.read_bytes() + b"\x00\x01")
        assert faults(folder) == [
            "topic-0/00000000000000000019.log, position 70: 2 bytes are too few for a batch"
        ]

    def test_offsets_that_do_not_rise(self, folder: Path) -> None:
        change(folder / "topic-0" / f"{FIRST}.log", 79, (1).to_bytes(8, "big"))
        assert f"topic-0/{FIRST}.log, position 79: the batch begins at offset 1, 2 or more is due" in faults(
            folder
        )

    def test_segments_that_overlap(self, folder: Path) -> None:
        partition = folder / "topic-0"
        for kind in ("log", "index", "timeindex"):
            shutil.copy(partition / f"{FIRST}.{kind}", partition / f"00000000000000000001.{kind}")
        assert faults(folder)[0] == (
            "topic-0/00000000000000000001.log: begins at 1, the segment before it ends at 14"
        )

    def test_malformed_records_behind_a_right_checksum(self, folder: Path) -> None:
        path = folder / "topic-0" / f"{FIRST}.log"
        data = bytearray(path.read_bytes())
        data[61] = 0x7F
        seal_batch(data, 0, 79)
        path.write_bytes(data)
        assert faults(folder) == [
            f"topic-0/{FIRST}.log, position 0: record 0: its length is -64, 17 bytes follow"
        ]

    def test_records_behind_the_end_of_their_batch(self, tmp_path: Path) -> None:
        partition = tmp_path / "topic-0"
        partition.mkdir()
        data = bytearray(batch(3, leader_epoch=-1))
        data[23:27] = (1).to_bytes(4, "big")
        seal_batch(data, 0, len(data))
        (partition / f"{FIRST}.log").write_bytes(data)
        for kind in ("index", "timeindex"):
            (partition / f"{FIRST}.{kind}").touch()
        assert faults(tmp_path) == [
            f"topic-0/{FIRST}.log, position 0: its last record has offset 2, the batch ends with 1"
        ]

    def test_an_epoch_that_the_table_does_not_know(self, folder: Path) -> None:
        (folder / "topic-0" / "leader-epoch-checkpoint").write_text("0\n1\n7 0\n")
        assert (
            faults(folder)[0] == f"topic-0/{FIRST}.log, position 0: leader epoch 0 is not in the epoch table"
        )


class TestIndexes:
    def test_a_position_where_no_batch_begins(self, folder: Path) -> None:
        change(folder / "topic-0" / f"{FIRST}.index", 4, (218).to_bytes(4, "big"))
        assert faults(folder) == [
            f"topic-0/{FIRST}.index, position 0: has offset 5 at position 218; no batch begins there"
        ]

    def test_another_offset(self, folder: Path) -> None:
        change(folder / "topic-0" / f"{FIRST}.index", 0, (4).to_bytes(4, "big"))
        assert faults(folder) == [
            f"topic-0/{FIRST}.index, position 0: has offset 4 at position 217; the batch there ends with 5"
        ]

    def test_half_an_entry(self, folder: Path) -> None:
        path = folder / "topic-0" / f"{FIRST}.index"
        path.write_bytes(path.read_bytes() + b"x")
        (fault,) = faults(folder)
        assert fault.endswith("bytes are not whole entries of 8 bytes")

    def test_a_missing_index(self, folder: Path) -> None:
        (folder / "topic-0" / f"{FIRST}.timeindex").unlink()
        assert faults(folder) == [f"topic-0/{FIRST}.timeindex: there is no such file"]

    def test_another_time(self, folder: Path) -> None:
        change(folder / "topic-0" / f"{FIRST}.timeindex", 0, (3).to_bytes(8, "big"))
        (fault,) = faults(folder)
        assert fault == (
            f"topic-0/{FIRST}.timeindex, position 0: "
            "has time 3 for offset 1; the batch there has 1700000000000"
        )

    def test_a_time_behind_the_end(self, folder: Path) -> None:
        path = folder / "topic-0" / f"{FIRST}.timeindex"
        path.write_bytes(path.read_bytes() + (2**50).to_bytes(8, "big") + (99).to_bytes(4, "big"))
        assert faults(folder) == [
            f"topic-0/{FIRST}.timeindex, position 12: has offset 99, behind the last batch"
        ]

    def test_an_abort_that_never_was(self, folder: Path) -> None:
        change(folder / "topic-0" / f"{FIRST}.txnindex", 2, (8).to_bytes(8, "big"))
        assert faults(folder) == [
            f"topic-0/{FIRST}.txnindex, position 0: has an abort of producer 8 at 13; no such marker is there"
        ]


class TestSmallFiles:
    def test_a_damaged_snapshot(self, folder: Path) -> None:
        change(folder / "topic-0" / f"{SECOND}.snapshot", 20, b"\xff")
        (fault,) = faults(folder)
        assert fault.startswith(f"topic-0/{SECOND}.snapshot: the stored CRC is")

    def test_a_snapshot_from_the_future(self, folder: Path) -> None:
        partition = folder / "topic-0"
        shutil.copy(partition / f"{SECOND}.snapshot", partition / "00000000000000000099.snapshot")
        assert faults(folder) == [
            "topic-0/00000000000000000099.snapshot: is of offset 99, the log ends at 20"
        ]

    def test_a_snapshot_that_knows_too_much(self, folder: Path) -> None:
        partition = folder / "topic-0"
        shutil.copy(partition / "00000000000000000020.snapshot", partition / f"{SECOND}.snapshot")
        assert f"topic-0/{SECOND}.snapshot: producer 7 wrote offset 15 after the snapshot" in faults(folder)

    def test_a_checkpoint_behind_the_end(self, folder: Path) -> None:
        (folder / CLEANER_OFFSETS).write_text("0\n1\ntopic 0 21\n")
        assert faults(folder) == [f"{CLEANER_OFFSETS}: topic-0 is at 21, its log ends at 20"]

    def test_files_that_cannot_be_read(self, folder: Path) -> None:
        (folder / CLEANER_OFFSETS).write_text("0\n2\ntopic 0 21\n")
        (folder / "meta.properties").write_text("version=1\n")
        (folder / "topic-0" / "partition.metadata").write_text("nonsense")
        (folder / "topic-0" / "leader-epoch-checkpoint").write_text("0\n1\nx y\n")
        found = "\n".join(faults(folder))
        for name in (CLEANER_OFFSETS, "meta.properties", "partition.metadata", "leader-epoch-checkpoint"):
            assert name in found

    def test_epochs_behind_the_end(self, folder: Path) -> None:
        (folder / "topic-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 50\n")
        assert faults(folder) == ["topic-0/leader-epoch-checkpoint: epoch 1 begins at 50, the log ends at 20"]


@pytest.fixture(scope="module")
def pristine() -> Iterator[Path]:
    with TemporaryDirectory() as made:
        sample_folder(Path(made))
        yield Path(made)


@given(data=st.data())
def test_any_flipped_bit_of_a_segment_is_found(pristine: Path, data: st.DataObject) -> None:
    with TemporaryDirectory() as copy:
        folder = Path(copy) / "data"
        shutil.copytree(pristine, folder)
        path = folder / "topic-0" / f"{FIRST}.log"
        content = bytearray(path.read_bytes())
        position = data.draw(st.integers(0, len(content) - 1))
        content[position] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(content)
        assert faults(folder) != []


@pytest.mark.slow
def test_folders_of_apache_kafka_hold(tmp_path: Path) -> None:
    if reason := _kafka.why_missing():
        pytest.skip(reason)
    with _kafka.KafkaServer(folder=tmp_path) as server:
        done = _kafka.run_tool(
            "org.apache.kafka.tools.ProducerPerformance",
            "--topic",
            "perf",
            *("--num-records", "500", "--record-size", "100", "--throughput", "-1"),
            *("--producer-props", f"bootstrap.servers={server.bootstrap_servers}", "compression.type=lz4"),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        server.stop()
        found = [
            fault
            for fault in Verifier(OsFiles()).verify(str(server.data_dir))
            if "__cluster_metadata" not in fault.path
        ]
    assert found == []
