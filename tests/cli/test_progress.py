"""barnabas.cli.progress: a bar when somebody looks."""

import sys

import pytest

from barnabas.cli.progress import progress


def test_nothing_is_drawn_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("working", 10) as show:
        show(5)
    assert capsys.readouterr() == ("", "")


def test_a_bar_is_drawn_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress("working", 10) as show:
        show(5)
    assert "working" in capsys.readouterr().err


def test_lines_of_stdout_stay_there_while_a_bar_is_drawn(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress("working", 10):
        print("a result")
    assert capsys.readouterr().out == "a result\n"
