"""The brokers under test, each as a process of its own behind one interface.

A server is made stopped.  `stop` and `kill` leave its data, and `start` goes on with it on the same port;
`close` ends the process and removes the data.  The log of the process is kept in `log` until then.
"""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from tests._kafka import KafkaServer, die_with_parent, free_ports, wait_for_port

# What the scenarios count on: quick rebalances, and a partition count that is not the default.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "num.partitions": "2",
    "auto.create.topics.enable": "true",
    "offsets.topic.num.partitions": "5",
    "log.cleaner.backoff.ms": "200",
    "log.retention.check.interval.ms": "300",
}


class Server(Protocol):
    bootstrap_servers: str
    data_dir: Path
    log: Path

    @property
    def pid(self) -> int: ...
    def start(self, timeout_s: float = 60) -> None: ...
    def stop(self, timeout_s: float = 30) -> None: ...
    def kill(self) -> None: ...
    def close(self) -> None: ...


class BarnabasServer:
    """`barnabas start` as a user runs it."""

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        data_dir: Path | None = None,
        file_bytes_max: int | None = None,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="barnabas-"))
        self.port = free_ports(1)[0]
        self.bootstrap_servers = f"127.0.0.1:{self.port}"
        self.data_dir = data_dir or self.folder / "data"
        self.log = self.folder / "server.log"
        self._settings = dict(settings or {})
        self._file_bytes_max = file_bytes_max
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server was started"
        return self._process.pid

    def start(self, timeout_s: float = 60) -> None:
        assert self._process is None, "one process at a time"
        command = [sys.executable, "-m", "barnabas", "start", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--data-dir", str(self.data_dir)]
        for key, value in self._settings.items():
            command += ["--set", f"{key}={value}"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=self._limit)
        try:
            wait_for_port(self.port, self._process, self.log, timeout_s)
        except BaseException:
            self.kill()
            raise

    def _limit(self) -> None:
        """Runs in the child: 1,000 connections and 2,000 partitions need more than the usual 1,024 files."""
        die_with_parent()
        _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        if self._file_bytes_max is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self._file_bytes_max, resource.RLIM_INFINITY))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def stop(self, timeout_s: float = 30) -> None:
        self._end(signal.SIGTERM, timeout_s)

    def kill(self) -> None:
        self._end(signal.SIGKILL, 10)

    def _end(self, number: signal.Signals, timeout_s: float) -> None:
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
            raise
        finally:
            self._process = None

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def make_server(kind: str, settings: Mapping[str, str] | None = None) -> Server:
    """A stopped server of a kind: "barnabas" or "kafka", with the settings of all scenarios and these."""
    merged = {**SETTINGS, **(settings or {})}
    if kind == "kafka":
        # It waits half a minute before its first look at retention and compaction.
        return KafkaServer({"log.initial.task.delay.ms": "0", **merged})
    return BarnabasServer(merged)


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid: int) -> float:
    """User and system time of the process with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def alive(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def wait_dead(pid: int, timeout_s: float = 10) -> None:
    deadline = time.monotonic() + timeout_s
    while alive(pid):
        assert time.monotonic() < deadline, f"process {pid} did not end"
        time.sleep(0.01)
