"""barnabas delete-records."""

import json
from pathlib import Path

import pytest

from tests.cli._command import barnabas
from tests.cli.conftest import Tool


@pytest.fixture
def filled(tool: Tool, topic: str) -> str:
    """A topic with five records in partition 0, a second apart from 1970 on, and none in partition 1."""
    lines = [f'{{"value": "v{n}", "timestamp": {n * 1000}, "partition": 0}}' for n in range(5)]
    tool("produce", topic, "--json", "--keep-partitions", stdin="\n".join(lines).encode()).ok()
    return topic


def start(tool: Tool, topic: str) -> int:
    (span,) = tool("offsets", "get", topic, "-p", "0", "--json").ok().json
    found: int = span["start"]
    return found


def test_up_to_an_offset(tool: Tool, filled: str) -> None:
    lines = [line.split() for line in tool("delete-records", filled, "-p", "0", "--before", "2").ok().lines]
    assert lines == [
        ["TOPIC", "PARTITION", "START", "LOW-WATERMARK", "DELETED"],
        [filled, "0", "0", "2", "2"],
    ]
    assert start(tool, filled) == 2


def test_up_to_a_time(tool: Tool, filled: str) -> None:
    found = tool("delete-records", filled, "--before", "@3000", "--json").ok().json
    assert {(each["partition"], each["was"], each["low_watermark"]) for each in found} == {
        (0, 0, 3),
        (1, 0, 0),
    }
    assert start(tool, filled) == 3


def test_everything(tool: Tool, filled: str) -> None:
    tool("delete-records", filled, "--all").ok()
    assert start(tool, filled) == 5


def test_a_dry_run_deletes_nothing(tool: Tool, filled: str) -> None:
    done = tool("delete-records", filled, "--all", "--dry-run")
    assert (done.code, done.err) == (0, "This is the plan; nothing was deleted.\n")
    assert start(tool, filled) == 0


def test_the_file_of_kafka(tool: Tool, filled: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(
        json.dumps({"partitions": [{"topic": filled, "partition": 0, "offset": 4}], "version": 1})
    )
    tool("delete-records", "--offset-json-file", str(file)).ok()
    assert start(tool, filled) == 4
    file.write_text("{}")
    assert tool("delete-records", "--offset-json-file", str(file)).code == 1


def test_an_offset_past_the_end_is_refused(tool: Tool, filled: str) -> None:
    done = tool("delete-records", filled, "-p", "0", "--before", "99")
    assert done.code == 1
    assert "OFFSET_OUT_OF_RANGE" in done.err


def test_an_unknown_topic(tool: Tool) -> None:
    done = tool("delete-records", "nosuch", "--all")
    assert (done.code, done.err) == (1, "barnabas: topic 'nosuch': there is none of this name\n")


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ([], "Name the topic, or a file"),
        (["t"], "Say what to delete: --before or --all."),
        (["t", "--all", "--before", "1"], "Say what to delete"),
        (["--offset-json-file", "/no/such"], "does not exist"),
    ],
)
def test_wrong_usage(tool: Tool, flags: list[str], why: str) -> None:
    done = tool("delete-records", *flags)
    assert done.code == 2
    assert why in done.err


def test_a_position_that_is_neither_offset_nor_time(tool: Tool, filled: str) -> None:
    assert tool("delete-records", filled, "--before", "-5").code == 2
    assert tool("delete-records", filled, "-p", "9", "--all").code == 2


@pytest.mark.slow
def test_the_real_command(bootstrap: str, filled: str, tool: Tool) -> None:
    done = barnabas("delete-records", filled, "--all", env={"BARNABAS_BOOTSTRAP": bootstrap})
    assert (done.returncode, done.stderr) == (0, "")
    assert start(tool, filled) == 5
