"""barnabas configs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.cli.commands.configs import split_configs
from tests.cli._command import barnabas
from tests.cli.conftest import Tool


def own(tool: Tool, topic: str) -> dict[str, str]:
    (found,) = tool("configs", "get", "topic", topic, "--json").json
    return {entry["name"]: entry["value"] for entry in found["configs"]}


@pytest.fixture
def broker_default(tool: Tool) -> Iterator[str]:
    """A setting of all brokers that is taken back after the test."""
    yield "log.retention.ms"
    tool("configs", "delete", "broker", "default", "log.retention.ms")


class TestTheShortForm:
    def test_set_get_and_delete(self, tool: Tool, topic: str) -> None:
        done = tool("configs", "set", "topic", topic, "retention.ms=1000", "cleanup.policy=compact,delete")
        assert done.ok().out == f"Changed the settings of topic {topic}.\n"
        assert own(tool, topic) == {"retention.ms": "1000", "cleanup.policy": "compact,delete"}
        tool("configs", "delete", "topic", topic, "cleanup.policy").ok()
        lines = [line.split() for line in tool("configs", "get", "topic", topic).ok().lines]
        assert lines == [["SETTING", "VALUE", "SOURCE"], ["retention.ms", "1000", "dynamic-topic"]]

    def test_some_all_and_with_their_meaning(self, tool: Tool, topic: str) -> None:
        (head, row) = tool("configs", "get", "topic", topic, "segment.bytes", "--docs").ok().lines
        assert head.split() == ["SETTING", "VALUE", "SOURCE", "MEANING"]
        assert row.startswith("segment.bytes 1073741824")
        assert len(tool("configs", "get", "topic", topic, "--all").ok().lines) > 15
        none = tool("configs", "get", "topic", topic)
        assert (none.out, none.code) == ("", 0)
        assert none.err == f"topic {topic} has no settings of its own; --all shows the defaults.\n"

    def test_brokers(self, tool: Tool, broker_default: str) -> None:
        tool("configs", "set", "broker", "default", f"{broker_default}=3600000").ok()
        (found,) = tool("configs", "get", "broker", "1", broker_default, "--json").ok().json
        (entry,) = found["configs"]
        assert (entry["value"], entry["source"]) == ("3600000", "DYNAMIC_DEFAULT_BROKER")

    def test_a_dry_run_changes_nothing(self, tool: Tool, topic: str) -> None:
        tool("configs", "set", "topic", topic, "retention.ms=1", "--dry-run").ok()
        assert own(tool, topic) == {}


class TestKafkasFlags:
    def test_alter_and_describe(self, tool: Tool, topic: str) -> None:
        entity = ["--entity-type", "topics", "--entity-name", topic]
        tool(
            "configs", "--alter", *entity, "--add-config", "retention.ms=5,cleanup.policy=[compact,delete]"
        ).ok()
        assert own(tool, topic) == {"retention.ms": "5", "cleanup.policy": "compact,delete"}
        tool("configs", "--alter", "--topic", topic, "--delete-config", "retention.ms,cleanup.policy").ok()
        (found,) = tool("configs", "--describe", *entity, "--json").ok().json
        assert found["configs"] == []

    def test_a_file(self, tool: Tool, topic: str, tmp_path: Path) -> None:
        file = tmp_path / "topic.properties"
        file.write_text("retention.ms=7\n")
        tool("configs", "--alter", "--topic", topic, "--add-config-file", str(file)).ok()
        assert own(tool, topic) == {"retention.ms": "7"}

    def test_all_of_a_kind(self, tool: Tool, topic: str) -> None:
        names = [
            each["name"]
            for each in tool("configs", "--describe", "--entity-type", "topics", "--json").ok().json
        ]
        assert topic in names
        assert "broker 1:" not in tool("configs", "--describe", "--entity-type", "brokers").ok().out

    def test_brackets_keep_commas(self) -> None:
        assert split_configs("a=1,b=[x,y],c=") == {"a": "1", "b": "x,y", "c": ""}


class TestWhatIsWrong:
    def test_a_setting_and_a_value_that_do_not_exist(self, tool: Tool, topic: str) -> None:
        for text in ("retention=1", "retention.ms=long"):
            done = tool("configs", "set", "topic", topic, text)
            assert done.code == 1
            assert "INVALID_CONFIG" in done.err or "INVALID_REQUEST" in done.err

    def test_an_unknown_topic_and_broker(self, tool: Tool) -> None:
        assert tool("configs", "get", "topic", "nosuch", "-X", "default.api.timeout.ms=500").code == 1
        assert tool("configs", "get", "broker", "77").code == 1

    @pytest.mark.parametrize(
        ("flags", "why"),
        [
            (["get"], "Say whose settings"),
            (["get", "planet", "x"], "'planet' has no settings here"),
            (["set", "topic", "t", "x"], "configs set takes KEY=VALUE, not 'x'."),
            (["set", "topic", "t"], "Missing argument"),
            (["--alter", "--topic", "t"], "Say what to change"),
            (["--alter", "--entity-type", "topics", "--add-config", "a=1"], "Name the topics."),
            (["--alter", "--describe", "--topic", "t"], "One thing at a time"),
        ],
    )
    def test_wrong_usage(self, tool: Tool, flags: list[str], why: str) -> None:
        done = tool("configs", *flags)
        assert done.code == 2
        assert why in done.err


@pytest.mark.slow
def test_the_real_command(bootstrap: str, topic: str) -> None:
    env = {"BARNABAS_BOOTSTRAP": bootstrap}
    assert barnabas("configs", "set", "topic", topic, "retention.ms=1", env=env).returncode == 0
    assert "retention.ms" in barnabas("configs", "get", "topic", topic, env=env).stdout
    assert barnabas("configs", "get", env=env).returncode == 2
    assert barnabas("configs", "get", "topic", topic, "-b", "localhost:1").returncode == 1
