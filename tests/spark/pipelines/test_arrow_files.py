"""Arrow reads through Hadoop's file systems what they hold, and names what it cannot read."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow.fs import FileSelector, FileType, PyFileSystem

from barnabas.spark.pipelines import arrow_files
from barnabas.spark.pipelines.arrow_files import HadoopReading, reading
from barnabas.spark.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("path", ["lake/orders", "/lake", "file:///lake", "s3://bucket/lake", "C:/lake"])
def test_what_arrow_reads_by_itself_is_left_to_it(path: str) -> None:
    assert reading(path) == (None, path)


@pytest.fixture
def system(spark: "SparkSession") -> PyFileSystem:
    jvm: Any = spark._jvm
    local = jvm.org.apache.hadoop.fs.Path("file:///").getFileSystem(spark._jsc.hadoopConfiguration())
    return PyFileSystem(HadoopReading(jvm, local))


@pytest.mark.slow
def test_files_are_found_and_read(
    system: PyFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_files, "_READ_BYTES_MAX", 1_000)
    data = bytes(range(256)) * 20
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x").write_bytes(data)
    found = system.get_file_info(FileSelector(str(tmp_path), recursive=True))
    assert [(each.path, each.type) for each in found] == [
        (str(tmp_path / "sub"), FileType.Directory),
        (str(tmp_path / "sub" / "x"), FileType.File),
    ]
    assert found[1].size == len(data)
    assert system.get_file_info(str(tmp_path / "none")).type == FileType.NotFound
    with system.open_input_file(str(tmp_path / "sub" / "x")) as file:
        assert (file.size(), file.read(10), file.read()) == (len(data), data[:10], data[10:])
        file.seek(-5, io.SEEK_END)
        assert file.read() == data[-5:]
        assert file.read_at(1_500, 100) == data[100:1_600]


@pytest.mark.slow
def test_what_cannot_be_read_is_named(system: PyFileSystem, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"/none"):
        system.open_input_file(str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="none is not there"):
        system.get_file_info(FileSelector(str(tmp_path / "none")))
    with pytest.raises(OSError, match="only read"):
        system.delete_file(str(tmp_path / "none"))


@pytest.mark.slow
def test_a_file_system_that_nobody_knows_is_refused(spark: "SparkSession") -> None:
    with pytest.raises(PipelineError, match=r"^no file system can be had for nosuch://x/y: "):
        reading("nosuch://x/y")
