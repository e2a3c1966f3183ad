"""barnabas.cli.output: tables, plain lines, JSON."""

import io
import os
from pathlib import Path

import pytest

from barnabas.cli import output
from barnabas.client.errors import UnknownTopic
from barnabas.client.results import Results


def test_a_table_in_a_pipe_is_aligned_by_spaces(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("NAME", "N"), [("a", 1), ("longer", None), ("", (1, 2))])
    assert capsys.readouterr().out == "NAME   N\na      1\nlonger -\n-      1,2\n"


def test_a_pipe_without_a_reader_is_noticed_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    with open(writing, "w") as stdout:
        monkeypatch.setattr("sys.stdout", stdout)
        assert not output.reader_is_gone()
        os.close(reading)
        assert output.reader_is_gone()


def test_files_and_what_is_collected_have_no_reader_to_lose(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for stdout in (io.StringIO(), (tmp_path / "out").open("w")):
        with stdout:
            monkeypatch.setattr("sys.stdout", stdout)
            assert not output.reader_is_gone()


def test_an_empty_table_has_its_headings(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("NAME", "N"), [])
    assert capsys.readouterr().out == "NAME N\n"


def test_a_table_on_a_terminal_is_drawn(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    output.table(("NAME", "N"), [("[red]a", 1), ("b", 22)], title="Things")
    shown = capsys.readouterr().out
    assert "Things" in shown
    assert "─" in shown
    assert "[red]a" in shown, "names are no markup"


def test_json_is_one_line_in_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output.document({"a": ["ü", None]})
    assert capsys.readouterr().out == '{"a": ["ü", null]}\n'
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    output.document({"a": 1})
    assert capsys.readouterr().out == '{\n  "a": 1\n}\n'


def test_a_report_names_what_was_done_and_what_was_not(capsys: pytest.CaptureFixture[str]) -> None:
    results: Results[str, None] = Results({"a": None, "b": UnknownTopic("b is missing")})
    assert output.report(results, done="Did {}.", as_json=False) == 1
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("Did a.\n", "barnabas: b is missing\n")
    assert output.report(Results({"a": None}), done="Did {}.", as_json=True) == 0
    assert capsys.readouterr().out == '{"done": ["a"], "errors": {}}\n'


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KB"), (5 << 20, "5.0 MB"), (3 << 40, "3.0 TB"), (None, None)],
)
def test_bytes_are_told_in_the_unit_that_fits(count: int | None, text: str | None) -> None:
    assert output.bytes_text(count) == text
