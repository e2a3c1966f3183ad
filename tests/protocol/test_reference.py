"""The committed reference pages are what the tables say."""

from pathlib import Path

import pytest

from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.reference import PAGES, apis_page, errors_page

FOLDER = Path(__file__).parent.parent.parent / "docs" / "reference"


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_committed_page_is_current(name: str) -> None:
    command = f"python -m barnabas.protocol.reference {name} > docs/reference/{name}.md"
    assert (FOLDER / f"{name}.md").read_text("utf-8") == PAGES[name](), f"run: {command}"


def test_every_api_and_every_code_has_its_row() -> None:
    assert "| 1 | Fetch | 0-18 | 12 |" in apis_page()
    assert "| 17 | SaslHandshake | 0-1 | never |" in apis_page()
    assert len(apis_page().splitlines()) == 6 + len(ApiKey)
    assert "| 6 | `NOT_LEADER_OR_FOLLOWER` | yes | yes |" in errors_page()
    assert len(errors_page().splitlines()) == 6 + len(ErrorCode)
