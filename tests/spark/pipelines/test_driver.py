"""Spark's environment is checked in one sentence, and its noise stays off the terminal."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.spark.pipelines.driver import check_environment, open_callbacks, quiet
from barnabas.spark.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_no_java_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(
        PipelineError, match=r"^Spark needs Java 17 or newer, and no java is on the path; inst"
    ):
        check_environment(None)


def test_a_wrong_java_home_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PipelineError, match=r"^JAVA_HOME is .*, where no bin/java is"):
        check_environment("local[2]")


def test_spark_connect_is_refused() -> None:
    with pytest.raises(PipelineError, match="not Spark Connect"):
        check_environment("sc://host")


MANY_FILES = """
import contextlib, os, resource
from barnabas.spark.pipelines.driver import open_callbacks
from barnabas.spark.pipelines.errors import PipelineError
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096) if hard > 0 else 4096, hard))
opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
class Spark:
    class sparkContext:
        class _gateway: __dict__ = {}
try:
    open_callbacks(Spark())
except PipelineError as error:
    print(error)
"""


def test_a_process_with_too_many_files_for_callbacks_is_refused() -> None:
    done = subprocess.run([sys.executable, "-c", MANY_FILES], capture_output=True, text=True, timeout=60)
    assert done.stdout == (
        "this process has 1,024 or more files open, and PySpark cannot bring a batch to it then; "
        "close some, or run the pipeline in a process of its own\n"
    ), done.stderr


@pytest.fixture
def many_files() -> Iterator[None]:
    """More files than select() knows numbers."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 4_096), before[1]))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
    yield
    for number in opened:
        os.close(number)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.slow
def test_callbacks_that_were_opened_early_work_with_many_files(
    spark: "SparkSession", request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    open_callbacks(spark)
    request.getfixturevalue("many_files")
    open_callbacks(spark)
    taken: list[int] = []
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    query = (
        rows.writeStream.foreachBatch(lambda batch, number: taken.append(number))
        .option("checkpointLocation", str(tmp_path))
        .trigger(once=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert taken == [0]


def test_processes_started_quietly_write_to_the_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "logs" / "spark.log"
    say = "import sys; print('out'); print('err', file=sys.stderr)"
    with quiet(log):
        child = subprocess.Popen([sys.executable, "-c", say])
    child.wait()
    print("mine")
    assert sorted(log.read_text().split()) == ["err", "out"]
    assert capfd.readouterr().out == "mine\n"


def test_a_log_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(PipelineError, match=r"^the log file .*/file/x cannot be written: "),
        quiet(tmp_path / "file" / "x"),
    ):
        pass


LOGS_AN_ERROR = """
import logging, sys
from pathlib import Path
from barnabas.spark.pipelines.driver import logging_to
with logging_to(Path(sys.argv[1])):
    logging.error("inside")
logging.error("outside")
"""


def test_what_is_logged_in_this_process_goes_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", LOGS_AN_ERROR, str(log)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (log.read_text(), done.stderr) == ("inside\n", "ERROR:root:outside\n")


def test_without_a_log_nothing_changes(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet(None):
        print("here")
    assert capfd.readouterr().out == "here\n"
