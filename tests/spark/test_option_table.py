"""The table of options: every one is read, and the guide shows it."""

from pathlib import Path

from barnabas.spark.option_table import OPTIONS, markdown

ROOT = Path(__file__).resolve().parents[2]


def test_names_are_given_once() -> None:
    names = [each.name.lower() for each in OPTIONS]
    assert len(names) == len(set(names))


def test_every_use_is_one_of_three() -> None:
    assert {each.use for each in OPTIONS} == {"batch", "stream", "both"}


def test_the_guide_shows_the_table() -> None:
    assert markdown() in (ROOT / "docs" / "spark.md").read_text()
