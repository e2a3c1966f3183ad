"""barnabas topics."""

from collections.abc import Callable

import pytest

from barnabas.cli import output
from tests.cli._command import barnabas
from tests.cli.conftest import Tool

Name = Callable[[str], str]


class TestCreate:
    def test_the_short_form(self, tool: Tool, name: Name) -> None:
        topic = name("orders")
        done = tool("topics", "create", topic, "-p", "3", "-c", "retention.ms=1000").ok()
        assert done.out == f"Created topic {topic}: 3 partitions, replication factor 1.\n"
        (shown,) = tool("topics", "describe", topic, "--json").ok().json
        assert (len(shown["partitions"]), shown["configs"]) == (3, {"retention.ms": "1000"})

    def test_kafkas_flags(self, tool: Tool, name: Name, bootstrap: str) -> None:
        topic = name("orders")
        flags = ["--bootstrap-server", bootstrap, "--create", "--topic", topic, "--partitions", "2"]
        tool("topics", *flags, "--replication-factor", "1", "--config", "cleanup.policy=compact").ok()
        assert topic in tool("topics", "--list", "--bootstrap-server", bootstrap).ok().lines

    def test_several_at_once_as_json(self, tool: Tool, name: Name) -> None:
        topics = [name("a"), name("b")]
        made = tool("topics", "create", *topics, "--json").ok().json
        assert [topic["name"] for topic in made] == topics
        assert all(topic["partitions"] == 1 and len(topic["id"]) == 22 for topic in made)

    def test_one_that_exists(self, tool: Tool, topic: str) -> None:
        done = tool("topics", "create", topic)
        assert (done.code, done.out) == (1, "")
        assert done.err == (
            f"barnabas: topic '{topic}': Topic '{topic}' already exists. (TOPIC_ALREADY_EXISTS)\n"
        )
        assert tool("topics", "create", topic, "--if-not-exists").ok().out == ""

    def test_a_dry_run_makes_nothing(self, tool: Tool, name: Name) -> None:
        topic = name("dry")
        assert tool("topics", "create", topic, "--dry-run").ok().out.startswith("Could create topic")
        assert topic not in tool("topics", "list").ok().lines

    def test_an_assignment_of_replicas(self, tool: Tool, name: Name) -> None:
        topic = name("placed")
        tool("topics", "create", topic, "--replica-assignment", "1,1").ok()
        (shown,) = tool("topics", "describe", topic, "--json").ok().json
        assert [part["replicas"] for part in shown["partitions"]] == [[1], [1]]

    @pytest.mark.parametrize(
        ("flags", "why"),
        [
            ([], "Name the topic."),
            (["t", "-p", "0"], "0 is not in the range"),
            (["t", "-c", "x"], "--config takes KEY=VALUE, not 'x'."),
            (["t", "--replica-assignment", "a"], "--replica-assignment takes 1:2,2:3, not 'a'."),
            (["t", "--replica-assignment", "1", "-p", "2"], "leave --partitions, --replication-factor out"),
            (["t", "--partitoins", "2"], "No such option"),
        ],
    )
    def test_wrong_usage(self, tool: Tool, flags: list[str], why: str) -> None:
        done = tool("topics", "create", *flags)
        assert done.code == 2
        assert why in done.err

    def test_a_name_and_a_setting_that_the_broker_refuses(self, tool: Tool, name: Name) -> None:
        assert "INVALID_TOPIC" in tool("topics", "create", "no/good").err
        done = tool("topics", "create", name("x"), "-c", "retention=1")
        assert done.code == 1
        assert "INVALID_CONFIG" in done.err


class TestList:
    def test_names_a_line_in_a_pipe(self, tool: Tool, topic: str) -> None:
        assert tool("topics", "list", f"{topic[:-1]}.").ok().out == f"{topic}\n"
        assert tool("topics", "list", "--topic", topic).ok().lines == [topic]

    def test_json(self, tool: Tool, topic: str) -> None:
        (found,) = tool("topics", "list", topic, "--json").ok().json
        assert (found["name"], found["partitions"], found["internal"]) == (topic, 2, False)

    def test_a_table_on_a_terminal(self, tool: Tool, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(output, "is_terminal", lambda: True)
        shown = tool("topics", "list", topic).ok().out
        assert "PARTITIONS" in shown
        assert "─" in shown


class TestDescribe:
    def test_lines_as_of_kafka_in_a_pipe(self, tool: Tool, topic: str) -> None:
        tool("configs", "set", "topic", topic, "retention.ms=5000").ok()
        head, *parts = tool("topics", "--describe", "--topic", topic).ok().lines
        assert head.startswith(f"Topic: {topic}\tTopicId: ")
        assert head.endswith("\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: retention.ms=5000")
        assert parts[1] == f"\tTopic: {topic}\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1"

    def test_a_table_on_a_terminal(self, tool: Tool, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(output, "is_terminal", lambda: True)
        shown = tool("topics", "describe", topic).ok().out
        assert f"{topic}: 2 partitions, replication factor 1" in shown

    def test_only_what_is_not_well(self, tool: Tool, topic: str) -> None:
        assert tool("topics", "describe", topic, "--under-replicated-partitions").ok().out == ""
        assert tool("topics", "describe", topic, "--unavailable-partitions").ok().out == ""
        assert tool("topics", "describe", topic, "--topics-with-overrides").ok().out == ""

    def test_all_topics_without_the_clusters_own(self, tool: Tool, topic: str) -> None:
        names = [
            each["name"] for each in tool("topics", "describe", "--exclude-internal", "--json").ok().json
        ]
        assert topic in names
        assert not [each for each in names if each.startswith("__")]

    def test_an_unknown_topic(self, tool: Tool) -> None:
        done = tool("topics", "describe", "nosuch")
        assert (done.code, done.out) == (1, "")
        assert done.err == "barnabas: topic 'nosuch': there is none of this name\n"

    def test_neither_a_name_nor_a_pattern(self, tool: Tool) -> None:
        assert "'a(' is neither a topic nor a pattern" in tool("topics", "describe", "a(").err


class TestAlterAndDelete:
    def test_more_partitions(self, tool: Tool, topic: str) -> None:
        assert tool("topics", "alter", topic, "-p", "4").ok().out == f"Topic {topic} has 4 partitions.\n"
        assert tool("topics", "--alter", "--topic", topic, "--partitions", "5", "--json").ok().json == {
            "done": [topic],
            "errors": {},
        }
        less = tool("topics", "alter", topic, "-p", "2")
        assert less.code == 1
        assert "INVALID_PARTITIONS" in less.err

    def test_gone(self, tool: Tool, topic: str) -> None:
        assert tool("topics", "delete", topic).ok().out == f"Deleted topic {topic}.\n"
        assert tool("topics", "delete", topic).code == 1
        assert tool("topics", "--delete", "--topic", topic, "--if-exists").ok().out == ""


@pytest.mark.slow
class TestTheRealCommand:
    def test_good_and_bad_ends(self, bootstrap: str, topic: str) -> None:
        env = {"BARNABAS_BOOTSTRAP": bootstrap}
        assert topic in barnabas("topics", "list", env=env).stdout.splitlines()
        assert barnabas("topics", "--create", "--list", env=env).returncode == 2
        assert barnabas("topics", "describe", "nosuch", env=env).returncode == 1

    def test_no_broker(self) -> None:
        done = barnabas("topics", "list", "-b", "localhost:1")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("barnabas: no broker could be reached:\n  localhost:1: connect: ")
        assert "Traceback" not in done.stderr
