"""barnabas demo: the real command, and that no process and no file of it is left, however it ends."""

import json
import os
import signal
import subprocess
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.cli.java import find_java
from tests.broker._wire import until
from tests.cli._command import EXECUTABLE, barnabas

pytestmark = pytest.mark.slow

DEADLINE_S = 60
SPARK_S = 400  # some twenty seconds on an idle machine; Spark starts five Pythons and a JVM


@pytest.fixture
def java() -> None:
    found = find_java()
    if found is None or not found.is_new_enough:
        pytest.skip("Spark needs Java 17 or newer")


class Running:
    """A demo in a process of its own, known by a mark in the environment that all its children inherit."""

    def __init__(self, process: "subprocess.Popen[str]", mark: str) -> None:
        self.process = process
        self.mark = mark

    def read_until(self, word: str) -> str:
        """The lines up to the one with this word."""
        assert self.process.stdout is not None
        said = ""
        for line in self.process.stdout:
            said += line
            if word in line:
                return said
        raise AssertionError(f"{word!r} never came: {said}")

    def members(self) -> list[str]:
        """The command lines of all processes with the mark."""
        found = []
        for folder in Path("/proc").iterdir():
            try:
                if folder.name.isdigit() and self.mark in (folder / "environ").read_text(errors="replace"):
                    words = (folder / "cmdline").read_text(errors="replace").split("\0")
                    if words != [""]:  # one that has ended and was not collected yet
                        found.append(" ".join(words))
            except OSError:  # it has just ended, or is not ours
                continue
        return found


def left(folder: Path) -> list[str]:
    """What a demo on Spark left; the modules that sessions keep for the next one are meant to stay."""
    return [path.name for path in folder.iterdir() if not path.name.startswith("barnabas-python-")]


@contextmanager
def demo(folder: Path, *arguments: str, deadline_s: float = DEADLINE_S) -> Iterator[Running]:
    mark = f"BARNABAS_DEMO_MARK={uuid.uuid4()}"
    name, _, value = mark.partition("=")
    process = subprocess.Popen(
        [EXECUTABLE, "demo", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**os.environ, name: value, "TMPDIR": str(folder)},
    )
    watchdog = threading.Timer(deadline_s, process.kill)
    watchdog.start()
    try:
        yield Running(process, mark)
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()


def test_without_spark_it_runs_checks_itself_and_leaves_nothing(tmp_path: Path) -> None:
    with demo(tmp_path, "--no-spark", "--for", "1s", "--json") as running:
        said = running.read_until("exact")
        assert running.process.wait(DEADLINE_S) == 0
        assert running.members() == []
    told = json.loads(said)
    assert (told["exact"], told["engine"], told["parquet"]) == (True, "Python consumer", None)
    assert told["orders"] > 100
    assert list(tmp_path.iterdir()) == []


def test_in_a_pipe_it_prints_lines_and_at_the_end_where_to_look(tmp_path: Path) -> None:
    env = {"TMPDIR": str(tmp_path)}
    done = barnabas("demo", "--no-spark", "--for", "1", "--port", "0", "--keep", env=env, timeout=DEADLINE_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert "  lag " in done.stdout
    assert "every order is in the topic exactly once" in done.stdout
    assert "Where to look next:" in done.stdout
    (kept,) = tmp_path.iterdir()
    assert f"kept     {kept}" in done.stdout
    assert (kept / "data").is_dir()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_whole(tmp_path: Path, number: signal.Signals) -> None:
    with demo(tmp_path, "--no-spark", "--for", "10m") as running:
        running.read_until("in ")
        assert len(running.members()) == 2
        running.process.send_signal(number)
        out, _ = running.process.communicate(timeout=DEADLINE_S)
        assert running.process.returncode == 128 + number
        assert "Traceback" not in out
        assert running.members() == []
    assert list(tmp_path.iterdir()) == []


def test_its_children_end_also_when_it_is_killed(tmp_path: Path) -> None:
    with demo(tmp_path, "--no-spark", "--for", "10m") as running:
        running.read_until("in ")
        running.process.kill()
        running.process.wait(DEADLINE_S)
        until(lambda: running.members() == [], deadline_s=DEADLINE_S)


def test_a_reader_that_goes_away_ends_it_whole(tmp_path: Path) -> None:
    with demo(tmp_path, "--no-spark", "--for", "10m") as running:
        running.read_until("in ")
        assert running.process.stdout is not None
        running.process.stdout.close()
        running.process.stdout = None
        running.process.wait(DEADLINE_S)
        assert running.members() == []


class TestWithoutJava:
    ENV = {"JAVA_HOME": "/nowhere"}  # noqa: RUF012 -- not changed

    def test_one_sentence_says_so_and_the_rest_runs(self, tmp_path: Path) -> None:
        env = {**self.ENV, "TMPDIR": str(tmp_path)}
        done = barnabas("demo", "--for", "1s", "--port", "0", env=env, timeout=DEADLINE_S)
        assert done.returncode == 0
        first = done.stdout.splitlines()[0]
        assert first.startswith("Java is missing, and Spark needs 17 or newer: ")
        assert first.endswith("The job runs as a consumer in Python instead.")

    def test_it_is_an_error_when_spark_was_asked_for(self) -> None:
        done = barnabas("demo", "--spark", env=self.ENV)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("barnabas: Java is missing")


@pytest.mark.parametrize("flags", [["--for", "0s"], ["--for", "soon"], ["--rate", "0"], ["--nonsense"]])
def test_wrong_usage(flags: list[str]) -> None:
    done = barnabas("demo", *flags)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.timeout(SPARK_S + 30)
@pytest.mark.usefixtures("java")
class TestOnSpark:
    def test_every_order_is_in_the_topic_and_in_the_files_once(self, tmp_path: Path) -> None:
        picture = tmp_path / "demo.svg"
        flags = ["--spark", "--for", "3s", "--json", "--picture", str(picture)]
        with demo(tmp_path, *flags, deadline_s=SPARK_S) as running:
            out, _ = running.process.communicate(timeout=SPARK_S)
            assert running.process.returncode == 0, out
            assert running.members() == []
        told = json.loads(out.splitlines()[-1])
        assert (told["engine"], told["exact"], told["repeated"]) == ("Spark SQL", True, 0)
        assert told["counted"] == told["parquet"]["rows"] == told["orders"] > 100
        assert "Spark" in picture.read_text()
        assert left(tmp_path) == ["demo.svg"]

    def test_ctrl_c_while_spark_starts_leaves_no_process(self, tmp_path: Path) -> None:
        with demo(tmp_path, "--spark", "--for", "10m", deadline_s=SPARK_S) as running:
            running.read_until("in ")
            until(lambda: any("java" in words for words in running.members()), deadline_s=SPARK_S)
            running.process.send_signal(signal.SIGINT)
            out, _ = running.process.communicate(timeout=SPARK_S)
            assert running.process.returncode == 128 + signal.SIGINT, out
            assert running.members() == []
        assert left(tmp_path) == []
