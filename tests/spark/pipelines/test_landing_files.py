"""File operations of a landing: the same suite for the local disk and for Hadoop's file systems."""

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.spark.pipelines.errors import PipelineError
from barnabas.spark.pipelines.landing_files import (
    Files,
    Found,
    HadoopFiles,
    LocalFiles,
    files_for,
    needs_hadoop,
    sibling,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_files(files: Files, folder: str) -> None:
    """What every file system must do."""
    assert files.read(f"{folder}/a") is None
    assert files.names(f"{folder}/none") == []
    assert files.walk(f"{folder}/none") == []
    files.put(f"{folder}/sub/a", "one ü")
    files.put(f"{folder}/sub/a", "two")
    assert files.read(f"{folder}/sub/a") == "two"
    assert files.names(f"{folder}/sub") == ["a"]
    assert not files.put_new(f"{folder}/sub/a", "three")
    assert files.read(f"{folder}/sub/a") == "two"
    assert files.put_new(f"{folder}/first/a", "one")
    assert files.names(f"{folder}/first") == ["a"]
    files.remove(f"{folder}/first")
    files.put(f"{folder}/b", "b")
    files.move(f"{folder}/b", f"{folder}/new/x=1/b")
    assert not files.exists(f"{folder}/b")
    files.put(f"{folder}/c", "longer")
    files.move(f"{folder}/c", f"{folder}/new/x=1/b")
    assert files.read(f"{folder}/new/x=1/b") == "longer"
    assert files.walk(folder) == [Found("new/x=1/b", 6), Found("sub/a", 3)]
    files.remove(f"{folder}/new")
    files.remove(f"{folder}/none")
    files.remove(f"{folder}/sub/a")
    assert files.walk(folder) == []


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_the_local_disk(tmp_path: Path, prefix: str) -> None:
    check_files(LocalFiles(), f"{prefix}{tmp_path}")


@pytest.fixture
def hadoop(spark: "SparkSession") -> HadoopFiles:
    jvm: Any = spark._jvm
    configuration = spark._jsc.hadoopConfiguration()
    system = jvm.org.apache.hadoop.fs.Path("file:///").getFileSystem(configuration)
    return HadoopFiles(jvm, configuration, system)


@pytest.mark.slow
def test_a_file_system_of_hadoop(hadoop: HadoopFiles, tmp_path: Path) -> None:
    check_files(hadoop, str(tmp_path))


@pytest.mark.slow
def test_a_file_whose_answer_was_lost_is_ours(
    hadoop: HadoopFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = hadoop._rename

    def rename_and_lose(*args: Any) -> None:
        rename(*args)
        raise OSError("the answer was lost")

    (tmp_path / "there").write_text("theirs")
    monkeypatch.setattr(hadoop, "_rename", rename_and_lose)
    assert hadoop.put_new(f"{tmp_path}/fresh", "ours")
    assert not hadoop.put_new(f"{tmp_path}/there", "ours")
    assert hadoop.names(str(tmp_path)) == ["fresh", "there"]
    monkeypatch.setattr(hadoop, "_rename", lambda *args: 1 / 0)
    with pytest.raises(PipelineError, match="division by zero"):
        hadoop.put_new(f"{tmp_path}/none", "ours")


@pytest.mark.slow
def test_the_file_system_is_that_of_the_path(spark: "SparkSession", tmp_path: Path) -> None:
    assert isinstance(files_for(spark, str(tmp_path)), LocalFiles)
    with pytest.raises(PipelineError, match=r"^no file system can be had for nosuch://x/y: "):
        files_for(spark, "nosuch://x/y")


def test_another_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> Path:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    (tmp_path / "a").touch()
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PipelineError, match="set `staging` to one on the same disk"):
        LocalFiles().move(str(tmp_path / "a"), str(tmp_path / "b"))


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PipelineError, match=r"file/x cannot be written: (Not a directory|File exists)"):
        LocalFiles().put(str(tmp_path / "file" / "x"), "")


@pytest.mark.parametrize(
    ("path", "needs"),
    [
        ("lake", False),
        ("C:/lake", False),
        ("file:///lake", False),
        ("s3://b/lake", False),
        ("s3a://b/lake", True),
        ("hdfs://n:8020/lake", True),
    ],
)
def test_who_knows_a_file_system(path: str, needs: bool) -> None:
    assert needs_hadoop(path) is needs


def test_a_sibling_stands_beside() -> None:
    assert sibling("/a/b", "c") == "/a/c"
    assert sibling("s3a://x/a/b/", "c") == "s3a://x/a/c"
    assert sibling("b", "c") == "c"
