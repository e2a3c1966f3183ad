"""barnabas.cli.demo.tether: the child ends when its parent lets go."""

import signal
import subprocess
import sys

import pytest

DEADLINE_S = 30

STUBBORN = """
import os, signal, subprocess, sys, threading
from barnabas.cli.demo.tether import hold_on
signal.signal(signal.SIGTERM, signal.SIG_IGN)
other = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
hold_on(0.05)
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.slow
def test_a_broker_ends_cleanly_when_the_parent_lets_go(tmp_path: object) -> None:
    command = [sys.executable, "-m", "barnabas.cli.demo.tether", "start", "--json", "--port", "0"]
    with subprocess.Popen(
        [*command, "--data-dir", f"{tmp_path}/data"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert '"listeners"' in child.stdout.readline()
        child.stdin.close()
        assert child.wait(DEADLINE_S) == 0


@pytest.mark.slow
def test_what_does_not_listen_is_killed_with_all_of_its_group() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.stdin.close()
        assert child.wait(DEADLINE_S) == -signal.SIGKILL
        assert child.stdout.read() == ""  # ends only when the other process is gone as well


@pytest.mark.slow
def test_the_exit_code_is_that_of_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "barnabas.cli.demo.tether", "verison"],
        stdin=subprocess.PIPE,
        capture_output=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert done.returncode in (2, -signal.SIGTERM)  # stdin of `run` ends at once, so that both may win
