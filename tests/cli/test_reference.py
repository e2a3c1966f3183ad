"""barnabas.cli.reference: the generated pages."""

import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.cli.main import COMMANDS
from barnabas.cli.reference import PAGES, write_pages
from barnabas.protocol.api import API

COMMITTED = Path(__file__).resolve().parents[2] / "docs" / "reference"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages of a fresh process: click remembers in a command how its help was asked for first."""
    folder = tmp_path_factory.mktemp("reference")
    subprocess.run([sys.executable, "-m", "barnabas.cli.reference", str(folder)], check=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_committed_page_is_what_would_be_written_now(name: str, written: Path) -> None:
    current = (COMMITTED / name).read_text(encoding="utf-8")
    assert current == (written / name).read_text(encoding="utf-8"), (
        f"docs/reference/{name} is old: run `make docs`"
    )


def test_nothing_else_is_in_the_folder() -> None:
    assert sorted(path.name for path in COMMITTED.iterdir()) == sorted(PAGES)


def test_every_command_is_described() -> None:
    page = PAGES["commands.md"]()
    assert all(f"## barnabas {name}\n" in page for name in COMMANDS)


def test_the_wire_page_tells_what_is_served_and_what_is_not() -> None:
    page = PAGES["wire.md"]()
    assert "| 0 | Produce | 0-13 | 0-13 | quotas (throttle is 0) |" in page
    assert "| 17 | SaslHandshake | not served | 0-1 |  |" in page
    assert page.count("\n| ") == 1 + len(API)


def test_pages_are_written_where_asked(tmp_path: Path) -> None:
    write_pages(tmp_path / "new")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(PAGES)
