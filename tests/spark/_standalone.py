"""A standalone Spark cluster of one master and some workers, from the pip package alone.

Each worker has a loopback address of its own: speculation puts no two copies of a task on one host.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import pyspark

from tests._kafka import die_with_parent

ROOT: Final = Path(__file__).resolve().parents[2]
LIMIT_S: Final = 120.0


@contextlib.contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """The master's address; everything is stopped at the end."""
    log_path = folder / "cluster.log"
    started: list[subprocess.Popen[bytes]] = []
    with log_path.open("wb") as log:
        try:
            started.append(_start("master.Master", "127.0.0.1", log, "--port", "0", "--webui-port", "0"))
            _wait_for(log_path, "New state: ALIVE", 1)
            master = _master_address(log_path)
            for number in range(workers):
                work = folder / f"worker-{number}"
                limits = ["--cores", "2", "--memory", "1g", "--webui-port", "0", "--work-dir", str(work)]
                started.append(_start("worker.Worker", f"127.0.0.{number + 2}", log, *limits, master))
            _wait_for(log_path, "Successfully registered with master", workers)
            yield master
        finally:
            for process in reversed(started):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait(LIMIT_S)


def _start(kind: str, host: str, log: IO[bytes], *arguments: str) -> "subprocess.Popen[bytes]":
    home = Path(pyspark.__file__).parent
    command = [
        str(home / "bin" / "spark-class"),
        f"org.apache.spark.deploy.{kind}",
        "--host",
        host,
        *arguments,
    ]
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": host,
        "SPARK_DAEMON_MEMORY": "256m",
        # Its port is not free to choose, and nobody asks there.
        "SPARK_DAEMON_JAVA_OPTS": "-Dspark.master.rest.enabled=false",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}",
    }
    return subprocess.Popen(
        command,
        stdout=log,
        stderr=log,
        stdin=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
        preexec_fn=die_with_parent,
    )


def _master_address(log: Path) -> str:
    found = re.search(r"service 'sparkMaster' on port (\d+)", log.read_text(errors="replace"))
    assert found is not None, "the master names its port"
    return f"spark://127.0.0.1:{found[1]}"


def _wait_for(log: Path, text: str, times: int) -> None:
    deadline = time.monotonic() + LIMIT_S
    while log.read_text(errors="replace").count(text) < times:
        assert time.monotonic() < deadline, (
            f"{text!r} did not come: {log.read_text(errors='replace')[-2000:]}"
        )
        time.sleep(0.2)
