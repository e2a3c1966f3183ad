"""Releases of PySpark side by side: a Python of its own for each, and a process that runs it.

The environments are made in the cache folder of the tests, once; `ClientMissing` is the reason to skip.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import pyspark

from tests._kafka import die_with_parent
from tests.conformance._setup import venv

ROOT: Final = Path(__file__).resolve().parents[2]
# What a session is of: a release, and "connect" when it goes through Spark Connect.
SESSIONS: Final = ("4.0.5", "4.1.4", "4.2.1", "4.3.0", "4.3.0 connect")
# What this package asks for, and pandas nowhere: Spark must not need it.
_PACKAGES: Final = ("pyarrow", "click", "cramjam", "crc32c", "kazoo", "rich", "uvloop", "pyyaml")


def interpreter(release: str, extra: str = "") -> Path:
    """A Python with that PySpark; made at first use, which takes minutes.  Raises ClientMissing."""
    if release == pyspark.__version__ and not extra:
        return Path(sys.executable)
    wanted = f"pyspark[{extra}]=={release}" if extra else f"pyspark=={release}"
    return venv(f"pyspark-{release}{extra and '-'}{extra}", [wanted, *_PACKAGES])


def environment(python: Path) -> dict[str, str]:
    """The environment of a process of that Python that finds this package and the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
    return {
        **kept,
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_TESTING": "yes",  # a server of Spark Connect then takes a port that is free
    }


class Failed(Exception):
    """What the driver said instead of a result."""


class VersionDriver:
    """`_version_driver` as a process: each call is one request of its."""

    def __init__(self, python: Path, arguments: Sequence[str], log: IO[str]) -> None:
        self._process = subprocess.Popen(
            [str(python), "-m", "tests.spark._version_driver", *arguments],
            cwd=ROOT,
            env=environment(python),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )

    def begin(self, do: str, **arguments: Any) -> None:
        """A request whose answer nobody waits for."""
        assert self._process.stdin is not None
        print(json.dumps({"do": do, **arguments}), file=self._process.stdin, flush=True)

    def kill(self) -> None:
        """kill -9 of Python and JVM; Python workers may outlive them a while."""
        os.killpg(self._process.pid, signal.SIGKILL)

    def __call__(self, do: str, **arguments: Any) -> Any:
        """The result.  Raises Failed with the sentence that a user would see."""
        self.begin(do, **arguments)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the driver ended; its log says why"
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["result"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
