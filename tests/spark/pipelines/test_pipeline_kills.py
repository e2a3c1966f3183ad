"""Landing and transforming under kill -9 of the driver, of its halves and of executors.  Every row once."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.spark._kit import Topics
from tests.spark._standalone import standalone_cluster
from tests.spark.pipelines._arrow_tables import plain_rows
from tests.spark.pipelines._kills import Killed

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1_800)]


@pytest.mark.parametrize("seed", range(4))
def test_five_kills_of_the_driver(topics: Topics, topic: str, tmp_path: Path, seed: int) -> None:
    run = Killed(topics, topic, str(tmp_path), tmp_path, seed, "--master", "local[2,4]")
    for _ in range(5):
        run.grow()
        run.kill_once()
    run.finish()
    run.check(plain_rows(str(tmp_path / "lake")))


@pytest.mark.parametrize("seed", range(2))
def test_five_kills_of_executors(topics: Topics, topic: str, tmp_path: Path, seed: int) -> None:
    with standalone_cluster(tmp_path) as master:
        run = Killed(topics, topic, str(tmp_path), tmp_path, seed, "--master", master)
        with run.running() as process:
            for _ in range(5):
                seen = len(run.told())
                run.grow()
                assert run.wait_for(lambda each: bool(each.get("rows_in")), seen)
                time.sleep(run.chance.uniform(0.0, 4.0))
                os.kill(run.chance.choice(executors(tmp_path)), signal.SIGKILL)
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 0
        run.finish()
    run.check(plain_rows(str(tmp_path / "lake")))


def executors(folder: Path) -> list[int]:
    """The processes of executors whose workers have their folders there."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = [int(each.name) for each in Path("/proc").iterdir() if _is_executor(each, folder)]
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("no executor runs")


def _is_executor(process: Path, folder: Path) -> bool:
    try:
        command = (process / "cmdline").read_bytes()
        return b"CoarseGrainedExecutorBackend" in command and folder in (process / "cwd").readlink().parents
    except OSError:
        return False
