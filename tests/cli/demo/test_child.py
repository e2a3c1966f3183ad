"""barnabas.cli.demo.child: what is started is also ended, whole."""

import queue
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.cli.demo.child import Child, ChildFailed, session_members

pytestmark = pytest.mark.slow
DEADLINE_S = 30

TWO_GROUPS = """
import subprocess, sys
other = subprocess.Popen([sys.executable, "-c", "input()"], process_group=0)
print(other.pid, flush=True)
input()
"""


def broker(folder: Path, lines: "queue.SimpleQueue[str]", *flags: str) -> Child:
    arguments = ["start", "--json", "--port", "0", "--data-dir", str(folder / "data"), *flags]
    return Child("broker", arguments, log=folder / "broker.log", on_line=lines.put, folder=folder)


def test_its_lines_come_and_nothing_is_left_when_it_is_stopped(tmp_path: Path) -> None:
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    with broker(tmp_path, lines) as child:
        assert '"listeners"' in lines.get(timeout=DEADLINE_S)
        assert child.is_running
        child.check()
        assert session_members(child.pid) == [child.pid]
    assert session_members(child.pid) == []
    child.stop()


def test_one_that_ended_by_itself_is_told_with_its_last_words(tmp_path: Path) -> None:
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    with broker(tmp_path, lines, "--set", "nonsense") as child:
        child.wait(DEADLINE_S)
        with pytest.raises(
            ChildFailed, match=r"the broker ended with exit code 2: .*--set takes KEY=VALUE, not 'nonsense'"
        ):
            child.check()


def test_the_members_of_a_session_include_other_groups_of_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TWO_GROUPS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        other = int(parent.stdout.readline())
        assert sorted(session_members(parent.pid)) == sorted([parent.pid, other])
        parent.stdin.close()
