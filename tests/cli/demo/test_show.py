"""barnabas.cli.demo.show."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.text import Text

from barnabas.cli.demo.show import Drawn, Lines, Quiet, write_picture
from tests.cli.demo._moments import FACTS


def test_lines_come_with_every_state_and_not_with_every_moment(capsys: pytest.CaptureFixture[str]) -> None:
    with Lines() as show:
        show.note("hello")
        show.update(FACTS)
        show.update(FACTS)
        show.update(replace(FACTS, state="draining"))
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "hello"
    assert len(said) == 3
    assert said[2].endswith("[draining]")


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Quiet() as show:
        show.note("hello")
        show.update(FACTS)
    assert capsys.readouterr().out == ""


def test_notes_stay_above_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    with Drawn() as show:
        show.note("[hello]")
        show.update(FACTS)
    assert "[hello]\n" in capsys.readouterr().out


def test_a_picture_is_an_svg_with_the_words_of_the_screen(tmp_path: Path) -> None:
    write_picture(tmp_path / "out.svg", "make run", [Text("12,345 orders")])
    text = (tmp_path / "out.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    assert "12,345&#160;orders" in text
