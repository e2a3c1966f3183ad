"""Runs the code in the pages: `python tests/_docs.py PAGE...` prints what became of each block as JSON.

A block is fenced; the words behind its language say what becomes of it:

    ```python                       runs; the blocks of a page share their names
    ```sh                           runs in bash, and must end well
    ```yaml file=lake.yaml          is written to that file, in the folder where the others run
    ```sh no-run="why not"          is only shown
    ```text                         any other language: is only shown

Every page has a folder and a broker of its own; `localhost:9092` in a block is that broker.
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ADDRESS = "localhost:9092"
RUN = ("python", "sh")
SHELL_S = 100
_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>.*)$")
_WORDS = re.compile(r'(?P<name>[\w-]+)(?:=(?:"(?P<quoted>[^"]*)"|(?P<bare>\S+)))?')


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block; `line` is that of its fence."""

    line: int
    language: str
    text: str
    file: str | None = None
    no_run: str | None = None

    @property
    def runs(self) -> bool:
        return self.language in RUN and self.no_run is None and self.file is None


class BadFence(Exception):
    """A fence that says what nobody understands."""


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page.  Raises BadFence."""
    found: list[Block] = []
    lines = iter(enumerate(page.splitlines(), 1))
    for number, line in lines:
        fence = _FENCE.match(line)
        if fence is None:
            continue
        body = []
        for _, inner in lines:
            if inner.strip() == "```":
                break
            body.append(inner.removeprefix(fence["indent"]))
        else:
            raise BadFence(f"line {number}: the block does not end")
        found.append(_block(number, fence["info"].strip(), "\n".join(body) + "\n"))
    return found


def _block(number: int, info: str, text: str) -> Block:
    language, _, rest = info.partition(" ")
    if not language:
        raise BadFence(f"line {number}: a block names its language; text if it is none")
    words = {match["name"]: match["quoted"] or match["bare"] or "" for match in _WORDS.finditer(rest)}
    if unknown := words.keys() - {"file", "no-run"}:
        raise BadFence(f"line {number}: {sorted(unknown)[0]} means nothing")
    if "no-run" in words and len(words["no-run"]) < 10:
        raise BadFence(f'line {number}: no-run="…" wants the reason')
    return Block(number, language, text, words.get("file"), words.get("no-run"))


def indented_code(page: str) -> list[int]:
    """Lines of code blocks without a fence: indented by four, after an empty line, and in no list."""
    found, fenced, in_list, before = [], False, False, ""
    for number, line in enumerate(page.splitlines(), 1):
        if line.strip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            if re.match(r"\s*([-*]|\d+\.) ", line):
                in_list = True
            elif line and not line.startswith(" "):
                in_list = False
            if line.startswith("    ") and not before.strip() and not in_list:
                found.append(number)
        before = line
    return found


@dataclass(frozen=True, slots=True)
class Fault:
    page: str
    line: int
    text: str


def run_page(path: Path, root: Path) -> Iterator[Fault]:
    """Runs the blocks of one page in order; goes on after one that fails."""
    from barnabas.testing import Broker

    page = blocks(path.read_text(encoding="utf-8"))
    if not any(block.runs or block.file for block in page):
        return
    names: dict[str, Any] = {"__name__": "__main__"}
    before = os.getcwd()
    with Broker() as broker, tempfile.TemporaryDirectory(prefix="barnabas-docs-") as folder:
        os.chdir(folder)
        os.environ["BARNABAS_BOOTSTRAP"] = broker.bootstrap_servers
        try:
            for block in page:
                code = block.text.replace(ADDRESS, broker.bootstrap_servers)
                if block.file is not None:
                    Path(block.file).parent.mkdir(parents=True, exist_ok=True)
                    Path(block.file).write_text(code, encoding="utf-8")
                elif block.runs:
                    said = _python(code, names) if block.language == "python" else _shell(code)
                    if said is not None:
                        yield Fault(str(path.relative_to(root)), block.line, said)
        finally:
            _close(names)
            os.chdir(before)


def _python(code: str, names: dict[str, Any]) -> str | None:
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            exec(compile(code, "<block>", "exec"), names)
    except BaseException:
        return traceback.format_exc()
    return None


def _shell(code: str) -> str | None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    try:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", code],
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SHELL_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it does not end within {SHELL_S} s"
    return None if done.returncode == 0 else f"exit code {done.returncode}\n{done.stdout}{done.stderr}"


def _close(names: dict[str, Any]) -> None:
    """Closes the clients that a page has left open, as the end of a program would."""
    from barnabas import Admin, Consumer, Producer

    for value in names.values():
        if isinstance(value, Admin | Consumer | Producer):
            value.close()


if __name__ == "__main__":
    here = Path.cwd()
    faults = [fault for name in sys.argv[1:] for fault in run_page(here / name, here)]
    print(json.dumps([[fault.page, fault.line, fault.text] for fault in faults]))
