"""barnabas pipeline replay: records of the past into a topic again."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.cli._command import EXECUTABLE
from tests.cli.conftest import Tool
from tests.spark.pipelines._mirror import contents, fill, fresh, rows


@pytest.fixture
def topic(shared_broker: Broker) -> str:
    name = fresh("past")
    shared_broker.create_topic(name, 2)
    fill(shared_broker, name, 30)
    fill(shared_broker, name, 10, partition=1)
    return name


class TestDryRun:
    def test_it_says_what_it_would_do(self, tool: Tool, topic: str) -> None:
        done = tool(
            "pipeline",
            "replay",
            "--topic",
            topic,
            "--into",
            "x",
            "--from",
            "5",
            "--rate",
            "10/s",
            "--dry-run",
        )
        *table, last = done.ok().lines
        assert [line.split() for line in table] == [
            ["PARTITION", "FROM", "TO", "OFFSETS"],
            ["0", "5", "30", "25"],
            ["1", "5", "10", "5"],
        ]
        assert last.startswith("would write at most 30 records, about ")
        assert last.endswith("bytes, to x, 10 records/s, in about 3.0 s")

    def test_json(self, tool: Tool, topic: str) -> None:
        found = tool("pipeline", "replay", "--topic", topic, "--into", "x", "--dry-run", "--json").ok().json
        assert (found["records"], found["seconds"], found["records_are_exact"]) == (40, None, False)
        assert found["partitions"]["1"] == {"start": 0, "end": 10}


class TestRunning:
    def test_it_names_its_id_and_does_it_once(self, tool: Tool, shared_broker: Broker, topic: str) -> None:
        into = fresh("into")
        done = tool("pipeline", "replay", "--topic", topic, "--into", into)
        assert done.code == 0
        id_ = done.err.split()[-1]
        assert done.err == f"replay {id_}; to go on after an end: --id {id_}\n"
        assert done.out.startswith(f"done: 40 records to {into} in ")
        again = tool("pipeline", "replay", "--topic", topic, "--into", into, "--id", id_).ok()
        assert again.out.startswith("done: 0 records")
        assert contents(rows(shared_broker, into)) == contents(rows(shared_broker, topic))

    def test_json_lines_and_single_partitions(self, tool: Tool, topic: str) -> None:
        into = fresh("into")
        done = tool(
            "pipeline", "replay", "--topic", topic, "--into", into, "--partition", "1", "--id", into, "--json"
        )
        line = done.ok().json_lines[-1]
        assert (line["id"], line["records"]) == (into, 10)

    @pytest.mark.slow
    def test_one_that_is_killed_goes_on(self, tool: Tool, shared_broker: Broker, topic: str) -> None:
        into = fresh("into")
        arguments = [
            "pipeline",
            "replay",
            "-b",
            shared_broker.bootstrap_servers,
            "--topic",
            topic,
            "--into",
            into,
            "--id",
            into,
        ]
        command = [EXECUTABLE, *arguments, "--rate", "40/s", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            assert running.stdout.readline()  # something was committed
            os.kill(running.pid, signal.SIGKILL)
        tool("pipeline", "replay", "--topic", topic, "--into", into, "--id", into).ok()
        for number in (0, 1):
            assert contents(rows(shared_broker, into, number)) == contents(rows(shared_broker, topic, number))


class TestWrong:
    @pytest.mark.parametrize(
        ("arguments", "code", "said"),
        [
            (["--into", "x"], 2, "Give --topic or --parquet"),
            (["--topic", "a"], 2, "Missing option '--into'"),
            (["--topic", "a", "--into", "x", "--rate", "fast"], 1, "'fast' is no rate"),
            (["--topic", "a", "--into", "x", "--from", "soon"], 1, "'soon' is no place in a topic"),
            (["--topic", "no-such", "--into", "x"], 1, "no-such"),
        ],
    )
    def test_it_is_said(self, tool: Tool, arguments: list[str], code: int, said: str) -> None:
        done = tool("pipeline", "replay", *arguments)
        assert done.code == code
        assert said in done.err

    def test_a_landing_that_is_not_there(self, tool: Tool, tmp_path: Path) -> None:
        done = tool("pipeline", "replay", "--parquet", str(tmp_path / "no"), "--into", "x", "--dry-run")
        assert done.code == 1
        assert "is not there" in done.err
