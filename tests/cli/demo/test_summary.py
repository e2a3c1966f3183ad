"""barnabas.cli.demo.summary."""

import json
from pathlib import Path

import pytest

from barnabas.cli.demo.summary import print_summary, summary
from tests.cli.demo._moments import outcome


def test_the_sums_and_that_they_agree() -> None:
    assert summary(outcome()) == [
        "in       12,345 orders, 2.9 MB, in 65 s (189/s)",
        "work     Spark SQL: 12,000 rows in 42 batches, 0.2 s behind when the last order came",
        "out      210 rows to the topic sales",
        "out      12,345 rows in 7 Parquet files, 120.6 KB",
        "check    every order is in the topic and in the files exactly once",
    ]


def test_what_does_not_agree_is_said() -> None:
    assert summary(outcome(counted=12_000, stopped=True))[-1] == (
        "check    stopped on the way: 12,000 of 12,345 orders are in the topic"
    )
    assert summary(outcome(counted=12_000, repeated=3))[-1] == (
        "check    12,000 of 12,345 orders are in the topic, 3 of them again, 12,345 in files"
    )
    assert not outcome(rows=12_344).is_exact
    assert not outcome(repeated=1).is_exact


def test_it_tells_a_person_where_to_look_next(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(outcome(), Path("/tmp/x"), as_json=False)
    said = capsys.readouterr().out
    assert "kept     /tmp/x\n" in said
    assert "barnabas start" in said


def test_it_tells_a_program_in_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(outcome(), None, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["exact"], told["orders"], told["folder"]) == (True, 12_345, None)
    assert told["parquet"] == {"files": 7, "bytes": 123_456, "rows": 12_345}
