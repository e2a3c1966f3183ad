"""Runs one `barnabas` command for a parent, and not a moment longer than the parent lives.

    python -m barnabas.cli.demo.tether start --port 0

The parent holds the other end of stdin.  When it lets go, be it by kill -9, the command gets SIGTERM, and
what is left of its process group after a while SIGKILL.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from typing import Final

__all__ = ["hold_on"]

_GRACE_S: Final = 15.0


def hold_on(grace_s: float = _GRACE_S) -> None:
    """Ends this process when stdin does; nobody else reads from it."""
    line = os.dup(0)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    threading.Thread(target=_watch, args=(line, grace_s), name="tether", daemon=True).start()


def _watch(line: int, grace_s: float) -> None:
    with contextlib.suppress(OSError):
        while os.read(line, 4096):
            pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(grace_s)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    hold_on()
    from barnabas.cli.main import run

    sys.exit(run(sys.argv[1:]))
