"""barnabas consume."""

import signal
import subprocess
from collections.abc import Callable

import pytest

from tests.cli._command import EXECUTABLE, barnabas
from tests.cli.conftest import Tool

Name = Callable[[str], str]


@pytest.fixture
def filled(tool: Tool, topic: str) -> str:
    """A topic with five records in partition 0, one second apart from 1970 on, and one in partition 1."""
    lines = [f'{{"key": "k{n}", "value": "v{n}", "timestamp": {n * 1000}, "partition": 0}}' for n in range(5)]
    lines.append('{"value": null, "timestamp": 9000, "partition": 1}')
    tool("produce", topic, "--json", "--keep-partitions", stdin="\n".join(lines).encode()).ok()
    return topic


def values(tool: Tool, *arguments: str) -> list[str]:
    return sorted(tool("consume", *arguments).ok().lines)


class TestWhereToRead:
    def test_all_there_is(self, tool: Tool, filled: str) -> None:
        assert values(tool, filled, "--from-beginning", "-e") == ["null", "v0", "v1", "v2", "v3", "v4"]

    @pytest.mark.parametrize(
        ("flags", "expected"),
        [
            (["--from", "3"], ["v3", "v4"]),
            (["--from", "-2"], ["v3", "v4"]),
            (["--from", "@2500"], ["v3", "v4"]),
            (["--from", "1970-01-01T00:00:04Z"], ["v4"]),
            (["--offset", "4"], ["v4"]),
            (["--offset", "earliest", "-n", "2"], ["v0", "v1"]),
            (["--from", "1", "--to", "3"], ["v1", "v2"]),
            (["--from", "beginning", "--to", "@2000"], ["v0", "v1"]),
            (["--from", "end"], []),
            (["--from", "-10m"], []),
        ],
    )
    def test_from_and_to(self, tool: Tool, filled: str, flags: list[str], expected: list[str]) -> None:
        bound = [] if "--to" in flags or "-n" in flags else ["-e"]
        assert values(tool, filled, "-p", "0", *flags, *bound) == expected

    def test_kafkas_flags(self, tool: Tool, filled: str, bootstrap: str) -> None:
        flags = [
            "--bootstrap-server",
            bootstrap,
            "--topic",
            filled,
            "--from-beginning",
            "--max-messages",
            "6",
        ]
        assert len(values(tool, *flags)) == 6
        assert values(
            tool, "--topic", filled, "--partition", "0", "--offset", "4", "--timeout-ms", "300"
        ) == ["v4"]

    def test_topics_by_pattern(self, tool: Tool, filled: str) -> None:
        assert len(values(tool, "--include", f"{filled[:-1]}.", "--from-beginning", "-e")) == 6
        assert tool("consume", "--include", "nosuch.*", "-e").err == "barnabas: no topic matches 'nosuch.*'\n"

    def test_nothing_for_a_while_ends_it(self, tool: Tool, topic: str) -> None:
        assert tool("consume", topic, "--timeout-ms", "100").ok().out == ""

    def test_no_records_at_all_are_asked_for(self, tool: Tool, filled: str) -> None:
        assert tool("consume", filled, "--from-beginning", "-n", "0").ok().out == ""


class TestHowItIsPrinted:
    def test_a_template(self, tool: Tool, filled: str) -> None:
        shown = (
            tool("consume", filled, "-p", "0", "--from", "0", "-n", "1", "-f", "%t %p %o %k %s\\n").ok().out
        )
        assert shown == f"{filled} 0 0 k0 v0\n"

    def test_kafkas_properties(self, tool: Tool, filled: str) -> None:
        flags = ["--property", "print.key=true", "--formatter-property", "print.timestamp=true"]
        done = tool("consume", filled, "--from-beginning", "-p", "0", "-n", "1", *flags).ok()
        assert done.out == "CreateTime:0\tk0\tv0\n"

    def test_json(self, tool: Tool, filled: str) -> None:
        (shown,) = tool("consume", filled, "-p", "1", "--from", "0", "-e", "--json").ok().json_lines
        assert shown == {
            "topic": filled,
            "partition": 1,
            "offset": 0,
            "timestamp": 9000,
            "key": None,
            "value": None,
            "headers": [],
        }


class TestAGroup:
    def test_goes_on_where_it_was(self, tool: Tool, filled: str, name: Name) -> None:
        group = ["--group", name("g"), "--from-beginning", "--timeout-ms", "1000"]
        first = values(tool, filled, *group, "-n", "4")
        second = values(tool, filled, *group, "-n", "2")
        assert sorted(first + second) == ["null", "v0", "v1", "v2", "v3", "v4"]

    def test_that_does_not_commit_reads_again(self, tool: Tool, filled: str, name: Name) -> None:
        group = ["--group", name("g"), "--from-beginning", "--consumer-property", "enable.auto.commit=false"]
        for _ in range(2):
            assert len(values(tool, filled, *group, "-n", "6")) == 6

    def test_of_a_topic_that_is_not_there_does_not_wait_for_it(self, tool: Tool) -> None:
        done = tool("consume", "nosuch", "--group", "g")
        assert (done.code, done.err) == (1, "barnabas: topic 'nosuch': there is none of this name\n")

    def test_may_read_topics_by_pattern(self, tool: Tool, filled: str, name: Name) -> None:
        flags = ["--group", name("g"), "--from-beginning", "-n", "6"]
        assert len(values(tool, "--include", f"{filled[:-1]}.", *flags)) == 6

    @pytest.mark.parametrize("flags", [["-p", "0"], ["-e"], ["--from", "5"], ["--from", "-1h"]])
    def test_shares_partitions_itself(self, tool: Tool, topic: str, flags: list[str]) -> None:
        done = tool("consume", topic, "--group", "g", *flags)
        assert done.code == 2
        assert "A group" in done.err


class TestWhatIsWrong:
    def test_an_unknown_topic(self, tool: Tool) -> None:
        done = tool("consume", "nosuch", "--from-beginning")
        assert (done.code, done.out, done.err) == (
            1,
            "",
            "barnabas: topic 'nosuch': there is none of this name\n",
        )

    @pytest.mark.parametrize(
        ("flags", "why"),
        [
            ([], "Name the topics, or give a pattern"),
            (["t", "--include", "x"], "Name the topics, or give a pattern"),
            (["--include", "("], "'(' is no pattern"),
            (["t", "--from", "1", "--from-beginning"], "Say once where to begin"),
            (["t", "-f", "%s", "--json"], "Say once how to print"),
            (["t", "-f", "%z"], "%z is no field"),
            (["t", "--property", "print.keys=true"], "print.keys is no property"),
            (["t", "--from", "tomorrow"], "'tomorrow' is not a time"),
            (["t", "--isolation-level", "read_all"], "is not one of"),
        ],
    )
    def test_wrong_usage(self, tool: Tool, flags: list[str], why: str) -> None:
        done = tool("consume", *flags)
        assert done.code == 2
        assert why in done.err

    def test_a_partition_that_is_not_there(self, tool: Tool, topic: str) -> None:
        assert f"{topic} has no partition 7; it has 2." in tool("consume", topic, "-p", "7").err


@pytest.mark.slow
class TestTheRealCommand:
    def test_a_reader_that_goes_away_is_no_fault(self, bootstrap: str, tool: Tool, topic: str) -> None:
        tool("produce", topic, stdin=b"x" * 90 + b"\n" * 1 + b"y\n" * 50_000).ok()
        command = f"{EXECUTABLE} consume {topic} --from-beginning -b {bootstrap}"
        shell = f"{command} | head -n 1; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=30, check=False)
        assert done.stderr == ""
        assert done.stdout.splitlines()[-1] == "0"

    def test_a_reader_that_goes_away_while_nothing_comes_is_noticed(
        self, bootstrap: str, tool: Tool, topic: str
    ) -> None:
        tool("produce", topic, stdin=b"only\n").ok()
        process = subprocess.Popen(
            [EXECUTABLE, "consume", topic, "-b", bootstrap, "--from-beginning"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"only\n"
        process.stdout.close()
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None
        with process.stderr as errors:
            assert errors.read() == b""

    def test_ctrl_c_ends_quietly_and_the_group_keeps_its_place(
        self, bootstrap: str, tool: Tool, topic: str, name: Name
    ) -> None:
        group = name("g")
        tool("produce", topic, "-p", "0", stdin=b"1\n2\n").ok()
        process = subprocess.Popen(
            [EXECUTABLE, "consume", topic, "-b", bootstrap, "-g", group, "--from-beginning"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert [process.stdout.readline(), process.stdout.readline()] == [b"1\n", b"2\n"]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert (process.returncode, err) == (130, b"")
        (found,) = tool("groups", "describe", group, "--json").json
        assert found["lag"] == 0

    def test_no_broker(self) -> None:
        done = barnabas("consume", "t", "-b", "localhost:1")
        assert done.returncode == 1
        assert done.stderr.startswith("barnabas: no broker could be reached")
