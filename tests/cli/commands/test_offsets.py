"""barnabas offsets."""

import pytest

from barnabas.cli import output
from tests.cli._command import barnabas
from tests.cli.conftest import Tool


@pytest.fixture
def filled(tool: Tool, topic: str) -> str:
    """A topic with five records in partition 0, a second apart from 1970 on, and none in partition 1."""
    lines = [f'{{"value": "v{n}", "timestamp": {n * 1000}, "partition": 0}}' for n in range(5)]
    tool("produce", topic, "--json", "--keep-partitions", stdin="\n".join(lines).encode()).ok()
    return topic


def test_start_and_end_of_each_partition(tool: Tool, filled: str) -> None:
    lines = [line.split() for line in tool("offsets", "get", filled).ok().lines]
    assert lines[0] == ["TOPIC", "PARTITION", "START", "END", "OFFSETS"]
    assert lines[1:] == [[filled, "0", "0", "5", "5"], [filled, "1", "0", "0", "0"]]
    assert tool("offsets", "get", filled, "-p", "0", "--json").ok().json == [
        {"topic": filled, "partition": 0, "start": 0, "end": 5}
    ]


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("-1", "5"),
        ("latest", "5"),
        ("-2", "0"),
        ("earliest", "0"),
        ("max-timestamp", "4"),
        ("2500", "3"),
        ("@2500", "3"),
        ("1970-01-01T00:00:01Z", "1"),
        ("-1h", ""),
    ],
)
def test_the_offset_of_a_time(tool: Tool, filled: str, when: str, expected: str) -> None:
    shown = tool("offsets", "--topic", filled, "--time", when, "--partitions", "0").ok().out
    assert shown == f"{filled}:0:{expected}\n"
    (found,) = tool("offsets", "get", filled, "--time", when, "-p", "0", "--json").ok().json
    assert found["offset"] == (int(expected) if expected else None)


def test_kafkas_flags(tool: Tool, filled: str, bootstrap: str) -> None:
    both = [f"{filled}:0:5", f"{filled}:1:0"]
    assert tool("offsets", "--bootstrap-server", bootstrap, "--topic", filled).ok().lines == both
    for text, expected in ((f"{filled}:0", both[:1]), (f"{filled}:1-", both[1:]), (f"{filled}:-1", both[:1]),
                           (f"{filled}:0-2", both), (filled, both), (f"{filled}:9", [])):  # fmt: skip
        assert tool("offsets", "--topic-partitions", text).ok().lines == expected
    everything = tool("offsets", "--exclude-internal-topics").ok().lines
    assert both[0] in everything
    assert not [line for line in everything if line.startswith("__")]


def test_a_table_on_a_terminal(tool: Tool, filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    assert "─" in tool("offsets", "get", filled, "--time", "latest").ok().out


def test_what_is_not_there(tool: Tool, topic: str) -> None:
    done = tool("offsets", "get", "nosuch")
    assert (done.code, done.err) == (1, "barnabas: topic 'nosuch': there is none of this name\n")
    assert tool("offsets", "get", topic, "-p", "9").err == f"barnabas: {topic} has no partition 9\n"


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--topic-partitions", "t:0", "--topic", "t"], "--topic-partitions says all"),
        (["--topic", "t", "--partitions", "x"], "--partitions takes numbers by comma, not 'x'."),
        (["--topic", "a("], "'a(' is neither a topic nor a pattern"),
        (["--topic", "x", "--time", "soon", "-p", "0"], "none of this name"),
    ],
)
def test_wrong_usage(tool: Tool, flags: list[str], why: str) -> None:
    done = tool("offsets", *flags)
    assert done.code in (1, 2)
    assert why in done.err


@pytest.mark.slow
def test_the_real_command(bootstrap: str, filled: str) -> None:
    done = barnabas("offsets", "--topic", filled, env={"BARNABAS_BOOTSTRAP": bootstrap})
    assert (done.returncode, done.stdout) == (0, f"{filled}:0:5\n{filled}:1:0\n")
    assert barnabas("offsets", "get", "x", "-b", "localhost:1").returncode == 1
