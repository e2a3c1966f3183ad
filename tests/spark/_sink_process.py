"""The query of `_sink_driver` as a process: started, watched, killed with everything that belongs to it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Final

from tests._kafka import die_with_parent

ROOT: Final = Path(__file__).resolve().parents[2]
LIMIT_S: Final = 240.0


class SinkProcess:
    """One run of the query.  `kill` is kill -9 of Python and JVM; Python workers may outlive them a while."""

    def __init__(self, arguments: Sequence[str], log: IO[str]) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark._sink_driver", *arguments],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> int:
        return self._process.wait(LIMIT_S)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(LIMIT_S)

    def executors(self) -> list[int]:
        """The JVMs that run tasks of a cluster, below its workers; none with a local master."""
        return [pid for pid in _below(os.getpid()) if b"CoarseGrainedExecutorBackend" in _command(pid)]

    def python_workers(self) -> list[int]:
        """The processes that run tasks in Python."""
        return python_workers_of(self._process.pid, *self.executors())


@contextlib.contextmanager
def sink_process(arguments: Sequence[str], log: IO[str]) -> Iterator[SinkProcess]:
    process = SinkProcess(arguments, log)
    try:
        yield process
    finally:
        process.kill()


def python_workers_of(*drivers: int) -> list[int]:
    """What runs Python for some drivers or executors: below the daemon that each JVM has for that."""
    found: list[int] = []
    for driver in drivers:
        for daemon in _below(driver):
            if b"pyspark.daemon\0pyspark.worker" in _command(daemon):
                found += [child for child in _children(daemon) if child not in found]
    return [pid for pid in found if not _children(pid)]


def kill_one(find: Callable[[], list[int]], choose: int) -> None:
    """kill -9 of one of the processes that are found, as soon as there are any."""

    def kill() -> bool:
        pids = find()
        if pids:
            with contextlib.suppress(ProcessLookupError):  # it may just have ended by itself
                os.kill(pids[choose % len(pids)], signal.SIGKILL)
        return bool(pids)

    eventually(kill, "there is nothing to kill")


def wait_until(holds: Callable[[], bool], process: SinkProcess) -> None:
    """Returns when `holds()` is true; fails if the process ends before."""

    def holds_or_ended() -> bool:
        assert process.is_running, "the query ended"
        return holds()

    eventually(holds_or_ended, "the query does not get on")


def eventually(holds: Callable[[], bool], complaint: str) -> None:
    """Returns when `holds()` is true; fails with the complaint if that takes too long."""
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.05)


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        tasks = Path(f"/proc/{pid}/task")
        return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]
    return []


def _below(pid: int) -> Iterator[int]:
    for child in _children(pid):
        yield child
        yield from _below(child)


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
