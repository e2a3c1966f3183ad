"""barnabas.cli.demo.screen."""

import io
from dataclasses import replace

from rich.console import Console

from barnabas.cli.demo.facts import Facts
from barnabas.cli.demo.screen import line, screen, sparkline
from tests.cli.demo._moments import FACTS


def drawn(facts: Facts) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(screen(facts))
    text = console.file
    assert isinstance(text, io.StringIO)
    return text.getvalue()


def test_a_line_says_what_goes_in_what_comes_out_and_the_lag() -> None:
    assert line(FACTS) == (
        "1:05  in 12,345 orders (2,001/s)  Spark SQL 12,000 rows (2,000/s)  out 210 rows (5/s)  "
        "7 files (120.6 KB)  lag 345 messages, 0.2 s"
    )


def test_a_line_names_the_state_when_it_is_not_the_usual_one() -> None:
    assert line(replace(FACTS, state="starting", landing=None, lag_seconds=None)).endswith(
        "(5/s)  lag 345 messages, -  [starting]"
    )


def test_the_screen_shows_the_same_and_fits_a_terminal() -> None:
    text = drawn(FACTS)
    wanted = (
        "localhost:9092|12,345 orders|2,001/s|12,000 rows|210 rows|7 files|345 messages|0.2 s|"
        "batch 42, 180 ms|Europe|€1,234.50|moka pot|0:15 left|Ctrl-C"
    )
    for part in wanted.split("|"):
        assert part in text, part
    assert max(map(len, text.splitlines())) <= 100


def test_the_screen_of_the_first_moment() -> None:
    text = drawn(Facts("localhost:9092", "Spark SQL", "starting", 1.0, None, 45.0))
    assert "starting, 0:01" in text
    assert "Parquet" not in text
    assert "region" not in text


def test_a_sparkline_is_full_at_its_highest() -> None:
    assert sparkline([0, 1, 4, 8]) == "▁▁▄█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""
