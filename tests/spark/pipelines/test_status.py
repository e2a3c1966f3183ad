"""What a run leaves for `pipeline status` is written whole and read back."""

import json
from pathlib import Path

from barnabas.spark.pipelines.progress import Progress
from barnabas.spark.pipelines.status import StatusFile, is_held, local_folder, read_status
from barnabas.spark.sessions import lock_checkpoint


def test_the_state_of_every_part_is_written(tmp_path: Path) -> None:
    status = StatusFile(str(tmp_path / "lake"))
    status.take(Progress("lake", "lake", "running", batch_id=1))
    status.take(Progress("lake", "lake.dead-letters", "running"))
    status.take(Progress("lake", "lake", "failed", last_error="no"))
    found = read_status("lake", str(tmp_path / "lake"))
    assert [(part["part"], part["state"], part["last_error"]) for part in found.parts] == [
        ("lake", "failed", "no"),
        ("lake.dead-letters", "running", None),
    ]
    assert found.at_ms is not None


def test_figures_alone_are_written_once_a_second(tmp_path: Path) -> None:
    status = StatusFile(str(tmp_path))
    status.take(Progress("lake", "lake", "running", batch_id=1))
    status.take(Progress("lake", "lake", "running", batch_id=2))
    assert json.loads((tmp_path / "status.json").read_text())["parts"][0]["batch_id"] == 1


def test_a_disk_that_takes_nothing_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    StatusFile(str(tmp_path / "file" / "lake")).take(Progress("lake", "lake", "running"))
    assert read_status("lake", str(tmp_path / "file" / "lake")).parts == []


def test_the_committed_batches_are_those_of_spark(tmp_path: Path) -> None:
    commits = tmp_path / "parquet" / "commits"
    commits.mkdir(parents=True)
    for name in ("0", "1", "11", ".11.crc"):
        (commits / name).touch()
    assert read_status("lake", str(tmp_path)).batches == {"parquet": 11}


def test_a_folder_that_is_not_there_or_not_here_tells_nothing(tmp_path: Path) -> None:
    assert read_status("lake", str(tmp_path / "none")).parts == []
    assert read_status("lake", "s3a://bucket/x").parts == []
    assert local_folder("s3a://bucket/x") is None
    assert local_folder("file:///x") == Path("/x")
    StatusFile("s3a://bucket/x").take(Progress("lake", "lake", "running"))


def test_a_broken_status_is_none(tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text("{")
    assert read_status("lake", str(tmp_path)).parts == []


def test_a_checkpoint_in_use_is_held(tmp_path: Path) -> None:
    assert not is_held(str(tmp_path))
    lock_checkpoint(tmp_path)
    assert is_held(str(tmp_path))
