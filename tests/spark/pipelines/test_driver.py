"""Spark's environment is checked in one sentence, and its noise stays off the terminal."""

import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.spark.pipelines.driver import check_environment, quiet
from barnabas.spark.pipelines.errors import PipelineError


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


def test_without_a_log_nothing_changes(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet(None):
        print("here")
    assert capfd.readouterr().out == "here\n"
