"""The repository keeps its own rules: sizes, a test file for every module, generated pages current."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "barnabas"
MODULE_LINES_MAX = 800
FUNCTION_LINES_MAX = 70
PACKAGE_README_LINES_MAX = 30

# Files that hold declarations only; what they declare is tested as a whole, not file by file.
TESTED_ELSEWHERE = {
    "protocol/messages": "tests/protocol/test_messages.py",
    "protocol/storage": "tests/protocol/test_storage.py",
}


def tracked(*patterns: str) -> list[Path]:
    """Files git knows or would add, so that a stray file of an experiment does not count."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [path for name in listed if (path := ROOT / name).exists()]


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring and decorators."""
    first = function.body[0]
    doc = 0
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        doc = (first.end_lineno or 0) - first.lineno + 1
    return (function.end_lineno or 0) - function.lineno + 1 - doc


def test_no_module_is_too_long() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in tracked("src/*.py", "src/*.pyx", "tests/*.py", "bench/*.py")
        if (count := len(path.read_text().splitlines())) > MODULE_LINES_MAX
    }
    assert long == {}


def test_no_function_is_too_long() -> None:
    long = {
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}": count
        for path in tracked("src/*.py")
        for function in functions(ast.parse(path.read_text()))
        if (count := body_lines(function)) > FUNCTION_LINES_MAX
    }
    assert long == {}


def test_every_module_says_what_it_is() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in tracked("src/*.py", "tests/*.py", "bench/*.py")
        if path.read_text().strip() and ast.get_docstring(ast.parse(path.read_text())) is None
    ]
    assert silent == []


def test_every_module_has_its_test_file() -> None:
    missing = []
    for path in tracked("src/barnabas/*.py"):
        inside = path.relative_to(SOURCE)
        if inside.name.startswith("__") or inside.parent == Path("."):
            continue
        elsewhere = TESTED_ELSEWHERE.get(str(inside.parent))
        wanted = (
            ROOT / elsewhere
            if elsewhere
            else ROOT / "tests" / inside.parent / f"test_{inside.stem.lstrip('_')}.py"
        )
        if not wanted.exists() and not (ROOT / "tests" / inside.parent / f"test_{inside.stem}.py").exists():
            missing.append(f"{inside} wants {wanted.relative_to(ROOT)}")
    assert missing == []


def test_every_package_has_a_short_readme() -> None:
    packages = {path.parent for path in tracked("src/barnabas/*/__init__.py") if path.parent.parent == SOURCE}
    wrong = [
        package.name
        for package in sorted(packages)
        if not (package / "README.md").exists()
        or len((package / "README.md").read_text().splitlines()) > PACKAGE_README_LINES_MAX
    ]
    assert wrong == []


def test_every_waiver_carries_its_reason() -> None:
    # The reason of a noqa follows " -- " or "  # ", that of an ignored type "  # ".
    waiver = re.compile(
        r"#\s*(?:noqa(?!: [A-Z0-9, ]+(?: -- |  # )\S)|type: ignore(?!\[[a-z-]+(?:, ?[a-z-]+)*\]  # \S))"
    )
    bare = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked("src/*.py", "tests/*.py", "bench/*.py")
        if path != Path(__file__).resolve()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if waiver.search(line)
    ]
    assert bare == []


@pytest.mark.parametrize("folder", ["changes"])
def test_changelog_fragments_are_named_by_kind(folder: str) -> None:
    kinds = re.compile(r"^[a-z0-9-]+\.(breaking|feature|fix|doc)\.md$")
    assert [p.name for p in (ROOT / folder).glob("*") if not kinds.match(p.name)] == []
