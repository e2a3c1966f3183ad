"""A `barnabas` command as a child that cannot be forgotten.

C1  it has a session of its own: Ctrl-C of the terminal reaches only us, and all it starts can be found
C2  `stop` returns when nothing of that session is left; SIGTERM first, SIGKILL after the grace time
C3  it ends when this process does, however that ends (see tether.py)
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from barnabas.base.errors import BarnabasError

__all__ = ["Child", "ChildFailed", "session_members"]

_LOOK_EVERY_S: Final = 0.02


class ChildFailed(BarnabasError):
    """A process of the demo ended before its time."""


class Child:
    """One running command; its lines go to `on_line` on a thread of their own, its stderr to the log file."""

    def __init__(
        self, name: str, arguments: Sequence[str], *, log: Path, on_line: Callable[[str], None], folder: Path
    ) -> None:
        self.name = name
        self.log = log
        self._on_line = on_line
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "barnabas.cli.demo.tether", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=folder,
                # Spark starts many Pythons; without cached byte code each would compile every module anew.
                env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, name=f"{name}-lines", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def check(self) -> None:
        """Raises ChildFailed with the last words of a child that has ended."""
        code = self._process.poll()
        if code is not None:
            raise ChildFailed(f"the {self.name} ended with exit code {code}: {self._last_words()}")

    def wait(self, timeout_s: float) -> bool:
        """Whether it ended by itself within this time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        return not self.is_running

    def stop(self, grace_s: float = 10.0) -> None:
        """Ends it and whatever it has started.  May be repeated."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        deadline = time.monotonic() + grace_s
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        while session_members(self.pid) and time.monotonic() < deadline:
            time.sleep(_LOOK_EVERY_S)
        while left := session_members(self.pid):
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.poll()
            time.sleep(_LOOK_EVERY_S)
        self._process.wait()
        self._reader.join()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._on_line(line.decode(errors="replace").rstrip("\n"))

    def _last_words(self) -> str:
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1].strip() if lines else "it said nothing"


def session_members(session: int) -> list[int]:
    """The processes of a session that still run (one that only waits to be collected does not)."""
    members = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            stat = Path(entry.path, "stat").read_text(errors="replace")
        except OSError:  # it has just ended
            continue
        # pid (name) state parent group session …; the name may hold anything, brackets too.
        state, _, _, number = stat.rpartition(")")[2].split()[:4]
        if int(number) == session and state not in "ZX":
            members.append(int(entry.name))
    return members
