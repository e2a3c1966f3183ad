"""README and docs hold what they say: every command and every piece of Python in them runs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.cli.java import find_java
from tests._docs import RUN, BadFence, Block, blocks, indented_code

ROOT = Path(__file__).resolve().parent.parent
DEADLINE_S = 600
PAGES = sorted(
    path.relative_to(ROOT)
    for path in [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")]
    if path.parent.name != "reference"
)


def text(page: Path) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def needs_spark(page: Path) -> bool:
    return any(
        b.runs and b.language == "python" and re.search(r"\bspark\b", b.text) for b in blocks(text(page))
    )


@pytest.mark.parametrize("page", PAGES, ids=str)
class TestPage:
    def test_every_block_is_fenced_and_named(self, page: Path) -> None:
        assert indented_code(text(page)) == []
        blocks(text(page))

    def test_every_link_leads_somewhere(self, page: Path) -> None:
        prose = re.sub(r"```.*?```", "", text(page), flags=re.DOTALL)
        broken = [
            target
            for target in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", prose)
            for link in [next(filter(None, target))]
            if not link.startswith(("http", "mailto:", "#"))
            and not (ROOT / page.parent / link.partition("#")[0]).exists()
        ]
        assert broken == []


def run(pages: list[Path]) -> list[str]:
    """What failed, as page:line and the error."""
    done = subprocess.run(
        [sys.executable, "tests/_docs.py", *map(str, pages)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [f"{page}:{line}: {why}" for page, line, why in json.loads(done.stdout.splitlines()[-1])]


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE_S)
def test_all_that_needs_no_spark_runs() -> None:
    assert run([page for page in PAGES if not needs_spark(page)]) == []


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE_S)
def test_all_that_needs_spark_runs() -> None:
    java = find_java()
    if java is None or not java.is_new_enough:
        pytest.skip("Spark needs Java 17 or newer")
    assert run([page for page in PAGES if needs_spark(page)]) == []


class TestFences:
    def test_a_block_says_what_becomes_of_it(self) -> None:
        page = '```python\nx = 1\n```\n\n```sh no-run="it takes an hour"\n1\n```\n'
        python, shell = (block for block in blocks(page) if block.language in RUN)
        assert (python.text, python.runs, python.line) == ("x = 1\n", True, 1)
        assert (shell.no_run, shell.runs) == ("it takes an hour", False)

    def test_a_block_in_a_list_loses_its_indent(self) -> None:
        assert blocks("  ```text file=a.txt\n  b: 1\n    c\n  ```\n") == [
            Block(1, "text", "b: 1\n  c\n", "a.txt")
        ]

    @pytest.mark.parametrize(
        ("page", "why"),
        [
            ("```\nx\n```", "line 1: a block names its language"),
            ("```sh\nx", "line 1: the block does not end"),
            ("```sh norun\nx\n```", "line 1: norun means nothing"),
            ("```sh no-run\nx\n```", "wants the reason"),
        ],
    )
    def test_a_fence_that_nobody_understands(self, page: str, why: str) -> None:
        with pytest.raises(BadFence, match=why):
            blocks(page)

    def test_code_without_a_fence_is_found(self) -> None:
        page = (
            "text\n\n    code\n    more\n\n- a list\n\n    with a paragraph\n\n```text\n\n    inside\n```\n"
        )
        assert indented_code(page) == [3]
