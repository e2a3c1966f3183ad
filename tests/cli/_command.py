"""Runs the real executable, as a user would."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

EXECUTABLE = str(Path(sys.executable).with_name("barnabas"))


def barnabas(
    *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None, timeout: float = 30
) -> subprocess.CompletedProcess[str]:
    """One finished run of the command; its output and exit code are the caller's to judge."""
    return subprocess.run(
        [EXECUTABLE, *arguments],
        input=stdin,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
