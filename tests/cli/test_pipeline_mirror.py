"""barnabas pipeline mirror: a mirror from flags, MirrorMaker's among them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.cli._command import EXECUTABLE, barnabas
from tests.cli.conftest import Tool
from tests.spark.pipelines._mirror import fill, fresh, rows


@pytest.fixture(scope="module")
def west() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def topic(shared_broker: Broker) -> str:
    name = fresh("mm")
    shared_broker.create_topic(name)
    fill(shared_broker, name, 25)
    return name


class TestHere:
    def test_it_copies_what_is_there_and_ends(
        self, tool: Tool, shared_broker: Broker, west: Broker, topic: str
    ) -> None:
        both = ("--from", shared_broker.bootstrap_servers, "--to", west.bootstrap_servers)
        done = tool("pipeline", "mirror", *both, "--topics", topic, "--once", "--here").ok()
        assert done.lines == [f"{topic}-0: 25 records, {done.out.split()[3]} bytes, up to offset 25"]
        assert rows(west, topic) == rows(shared_broker, topic)
        assert tool("pipeline", "mirror", *both, "--topics", topic, "--once", "--here").ok().out == ""

    def test_a_copy_is_written_to_by_others_once_it_is_promoted(
        self, tool: Tool, shared_broker: Broker, west: Broker, topic: str
    ) -> None:
        there = ("-b", west.bootstrap_servers)
        mirror = (
            "--from",
            shared_broker.bootstrap_servers,
            "--to",
            west.bootstrap_servers,
            "--topics",
            topic,
        )
        tool("pipeline", "mirror", *mirror, "--once", "--here").ok()
        refused = tool("produce", topic, *there, stdin=b"mine\n")
        assert refused.code == 1
        assert "only a mirror may write to it; set barnabas.offsets.kept=false to end that" in refused.err
        tool("configs", "set", "topic", topic, "barnabas.offsets.kept=false", *there)
        assert tool("produce", topic, *there, stdin=b"mine\n").code == 0
        fill(shared_broker, topic, 5, first=25)
        assert tool("pipeline", "mirror", *mirror, "--once", "--here").ok().out == ""
        assert [(row.offset, row.value) for row in rows(west, topic)][24:] == [(24, b"v24"), (25, b"mine")]

    def test_json_lines(self, tool: Tool, shared_broker: Broker, west: Broker, topic: str) -> None:
        done = tool(
            "pipeline", "mirror", "--from", shared_broker.bootstrap_servers, "--to", west.bootstrap_servers,
            "--topics", topic, "--prefix", "east.", "--offsets", "translated", "--once", "--here", "--json",
        )  # fmt: skip
        (line,) = done.ok().json_lines
        assert (line["topic"], line["records"], line["end"]) == (topic, 25, 25)
        assert [row.value for row in rows(west, f"east.{topic}")] == [
            row.value for row in rows(shared_broker, topic)
        ]

    def test_mirror_makers_flags(
        self, tool: Tool, shared_broker: Broker, west: Broker, topic: str, tmp_path: Path
    ) -> None:
        consumer, producer = tmp_path / "consumer.properties", tmp_path / "producer.properties"
        consumer.write_text(
            f"bootstrap.servers={shared_broker.bootstrap_servers}\ngroup.id=mm\nkey.decoder=x\nfetch.min.bytes=1\n"
        )
        producer.write_text(f"bootstrap.servers={west.bootstrap_servers}\nacks=all\n")
        done = tool(
            "pipeline", "mirror", "--consumer.config", str(consumer), "--producer.config", str(producer),
            "--num.streams", "2", "--whitelist", topic, "--new.consumer", "--abort.on.send.failure", "true",
            "--once", "--here",
        )  # fmt: skip
        assert done.code == 0
        assert done.err == f"barnabas: {consumer}: key.decoder means nothing here and is ignored\n"
        assert rows(west, topic) == rows(shared_broker, topic)


class TestWrong:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--to", "x:1", "--topics", "a"], "Missing option --from (or --consumer.config"),
            (["--from", "x:1", "--topics", "a"], "Missing option --to (or --producer.config"),
            (["--from", "x:1", "--to", "y:1"], "Missing option '--topics'"),
            (["--from", "x:1", "--to", "x:1", "--topics", "a"], "give a --prefix for the copies"),
        ],
    )
    def test_usage(self, tool: Tool, arguments: list[str], said: str) -> None:
        done = tool("pipeline", "mirror", *arguments)
        assert done.code == 2
        assert said in done.err

    def test_a_pattern_that_is_none(self, tool: Tool) -> None:
        done = tool("pipeline", "mirror", "--from", "x:1", "--to", "y:1", "--topics", "(a")
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith("barnabas: '(a' is no regular expression")

    @pytest.mark.slow
    def test_a_cluster_that_is_away(self, tool: Tool, shared_broker: Broker, tmp_path: Path) -> None:
        away = tmp_path / "away.properties"
        away.write_text("bootstrap.servers=127.0.0.1:1\n")
        done = tool(
            "pipeline", "mirror", "--from", shared_broker.bootstrap_servers, "--producer.config", str(away),
            "--topics", "a", "--once", "--here",
        )  # fmt: skip
        assert done.code == 1
        assert "127.0.0.1:1" in done.err
        assert "Traceback" not in done.err


@pytest.mark.slow
@pytest.mark.timeout(300)  # with the start of a session on a machine that is busy
def test_the_executable_runs_it_on_spark(
    shared_broker: Broker, west: Broker, topic: str, tmp_path: Path
) -> None:
    assert Path(EXECUTABLE).exists()
    done = barnabas(
        "pipeline", "mirror", "--from", shared_broker.bootstrap_servers, "--to", west.bootstrap_servers,
        "--topics", topic, "--once", "--json", "--checkpoint", str(tmp_path), "--master", "local[2,4]",
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert '"state": "done"' in done.stdout.splitlines()[-1]
    assert rows(west, topic) == rows(shared_broker, topic)
