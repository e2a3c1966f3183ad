"""barnabas produce."""

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli._command import EXECUTABLE, barnabas
from tests.cli.conftest import Tool


@pytest.fixture
def read(tool: Tool) -> Callable[[str], list[Any]]:
    """All records of a topic."""
    return lambda topic: tool("consume", topic, "--from-beginning", "-e", "--json").ok().json_lines


Read = Callable[[str], list[Any]]


def test_each_line_of_stdin_is_a_value(tool: Tool, topic: str, read: Read) -> None:
    assert tool("produce", topic, stdin=b"one\n\ntwo\xff\nlast").ok().out == ""
    found = sorted(read(topic), key=lambda record: str(record["value"]))
    assert [record["value"] for record in found] == ["", "last", "one", {"base64": "dHdv/w=="}]
    assert {record["key"] for record in found} == {None}


def test_files_are_read_one_after_the_other(tool: Tool, topic: str, read: Read, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text(f"{number}\n")
    files = [str(tmp_path / f"{number}.txt") for number in range(2)]
    tool("produce", topic, *files, "-p", "0").ok()
    tool("produce", "--topic", topic, str(tmp_path / "2.txt"), "-", "-p", "0", stdin=b"3").ok()
    assert [record["value"] for record in read(topic)] == ["0", "1", "2", "3"]


def test_keys_headers_partition_and_null(tool: Tool, topic: str, read: Read) -> None:
    tool(
        "produce", topic, "-K", ":", "-H", "a=1", "--null", "NULL", "-p", "1", stdin=b"k:v:w\nNULL:NULL\n"
    ).ok()
    first, second = read(topic)
    assert (first["key"], first["value"], first["headers"]) == ("k", "v:w", [["a", "1"]])
    assert (second["key"], second["value"], second["partition"]) == (None, None, 1)
    tool("produce", topic, "-k", "fixed", "-D", ";", stdin=b"x;y").ok()
    assert [(r["key"], r["value"]) for r in read(topic) if r["key"] == "fixed"] == [
        ("fixed", "x"),
        ("fixed", "y"),
    ]


def test_kafkas_properties(tool: Tool, topic: str, read: Read) -> None:
    properties = ["parse.key=true", "key.separator=|", "parse.headers=true", "headers.delimiter=;"]
    flags = [flag for each in properties for flag in ("--property", each)]
    tool("produce", "--topic", topic, *flags, "--request-required-acks", "1", stdin=b"h:1,i:2;k|v\n").ok()
    (found,) = read(topic)
    assert (found["key"], found["value"], found["headers"]) == ("k", "v", [["h", "1"], ["i", "2"]])


def test_json_lines_are_a_copy_of_what_consume_prints(
    tool: Tool, topic: str, read: Read, name: Callable[[str], str]
) -> None:
    tool("produce", topic, "-K", ":", stdin=b"a:1\nb:2\n").ok()
    printed = tool("consume", topic, "--from-beginning", "-e", "--json").ok().out
    copy = name("copy")
    tool("topics", "create", copy).ok()
    tool("produce", copy, "--json", stdin=printed.encode()).ok()
    facts = [[(r["key"], r["value"], r["timestamp"]) for r in read(each)] for each in (topic, copy)]
    assert sorted(facts[0]) == sorted(facts[1])
    tool("produce", topic, "--json", "--keep-partitions", stdin=b'{"value": {"n": 1}, "partition": 1}').ok()
    assert [r["value"] for r in read(topic) if r["partition"] == 1][-1] == '{"n":1}'


@pytest.mark.parametrize(
    "flags", [["-z", "zstd"], ["--compression-codec", "gzip"], ["--sync"], ["--acks", "0"]]
)
def test_ways_to_send(tool: Tool, topic: str, read: Read, flags: list[str]) -> None:
    tool("produce", topic, *flags, stdin=b"x\n").ok()
    assert [record["value"] for record in read(topic)] == ["x"]


class TestWhatIsWrong:
    def test_a_topic_that_is_not_there_is_said_at_once(self, tool: Tool) -> None:
        done = tool("produce", "nosuch", stdin=b"x\n")
        assert done.code == 1
        assert done.err == (
            "barnabas: topic 'nosuch': there is none of this name; `barnabas topics create nosuch` makes it\n"
        )

    def test_a_line_without_a_key_ends_it_with_what_was_before_written(
        self, tool: Tool, topic: str, read: Read
    ) -> None:
        done = tool("produce", topic, "-K", ":", stdin=b"a:1\nb\n")
        assert (done.code, done.err) == (1, "barnabas: line 2: there is no key separator ':' in 'b'\n")
        assert [record["key"] for record in read(topic)] == ["a"]

    def test_a_record_that_is_too_large(self, tool: Tool, topic: str) -> None:
        done = tool("produce", topic, stdin=b"x" * 2_000_000)
        assert done.code == 1
        assert "max.request.size" in done.err

    @pytest.mark.parametrize(
        ("flags", "why"),
        [
            ([], "Name the topic."),
            (["t", "/no/such/file"], "/no/such/file is no file that can be read."),
            (["t", "-H", "x"], "--header takes KEY=VALUE"),
            (["t", "--property", "parse.keys=true"], "parse.keys is no property of the input"),
            (["t", "--json", "-K", ":"], "With --json a line says itself"),
        ],
    )
    def test_wrong_usage(self, tool: Tool, flags: list[str], why: str) -> None:
        done = tool("produce", *flags)
        assert done.code == 2
        assert why in done.err

    def test_a_wrong_setting(self, tool: Tool, topic: str) -> None:
        done = tool("produce", topic, "--producer-property", "ackss=1", stdin=b"x")
        assert (done.code, done.err.splitlines()[0]) == (
            1, "barnabas: ackss: there is no such setting; did you mean acks?"
        )  # fmt: skip


@pytest.mark.slow
class TestTheRealCommand:
    def test_a_large_pipe(self, bootstrap: str, tool: Tool, topic: str) -> None:
        lines = "".join(f"line {number}\n" for number in range(20_000))
        done = barnabas("produce", topic, stdin=lines, env={"BARNABAS_BOOTSTRAP": bootstrap})
        assert (done.returncode, done.stderr) == (0, "")
        spans = tool("offsets", "get", topic, "--json").ok().json
        assert sum(span["end"] - span["start"] for span in spans) == 20_000

    def test_ctrl_c_ends_quietly_with_what_was_typed_sent(
        self, bootstrap: str, tool: Tool, topic: str
    ) -> None:
        process = subprocess.Popen(
            [EXECUTABLE, "produce", topic, "-b", bootstrap, "--sync"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(b"typed\n")
        process.stdin.flush()
        assert tool("consume", topic, "--from-beginning", "-n", "1").ok().out == "typed\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (130, b"", b"")

    def test_no_broker(self) -> None:
        done = barnabas("produce", "t", "-b", "localhost:1", stdin="x\n")
        assert done.returncode == 1
        assert done.stderr.startswith("barnabas: no broker could be reached")
