"""barnabas transactions."""

from collections.abc import Callable, Iterator

import pytest

from barnabas.client.producer import Producer
from tests.cli._command import barnabas
from tests.cli.conftest import Tool

Name = Callable[[str], str]


@pytest.fixture
def owner(bootstrap: str, topic: str, name: Name) -> Iterator[str]:
    """A transactional id with a transaction open in partition 0 of the topic."""
    made = name("txn")
    with Producer(bootstrap_servers=bootstrap, transactional_id=made, linger_ms=0) as producer:
        producer.begin_transaction()
        producer.send(topic, b"open", partition=0).result(10)
        yield made


class TestList:
    def test_ids_with_their_states(self, tool: Tool, owner: str) -> None:
        shown = tool("transactions", "list").ok().lines
        assert shown[0].split() == ["TRANSACTIONAL-ID", "COORDINATOR", "PRODUCER-ID", "STATE"]
        (row,) = [line.split() for line in shown if line.startswith(owner)]
        assert row[3] == "Ongoing"

    def test_only_those_in_a_state(self, tool: Tool, owner: str) -> None:
        ongoing = tool("transactions", "list", "--state", "Ongoing", "--json").ok().json
        assert owner in [each["transactional_id"] for each in ongoing]
        others = tool("transactions", "list", "--state", "CompleteCommit,CompleteAbort", "--json").ok().json
        assert owner not in [each["transactional_id"] for each in others]


class TestDescribe:
    def test_one_with_its_partitions(self, tool: Tool, owner: str, topic: str) -> None:
        (found,) = tool("transactions", "describe", owner, "--json").ok().json
        assert found["state"] == "Ongoing"
        assert found["partitions"] == [f"{topic}-0"]
        assert found["age_s"] >= 0
        shown = tool("transactions", "describe", "--transactional-id", owner).ok().lines
        assert f"{topic}-0" in shown[1]

    def test_one_that_is_not_there(self, tool: Tool, name: Name) -> None:
        done = tool("transactions", "describe", name("missing"))
        assert done.code == 1
        assert "TRANSACTIONAL_ID_NOT_FOUND" in done.err

    def test_without_a_name(self, tool: Tool) -> None:
        done = tool("transactions", "describe")
        assert (done.code, "Name the transactional id" in done.err) == (2, True)


class TestFindHanging:
    def test_what_its_coordinator_knows_does_not_hang(self, tool: Tool, owner: str, topic: str) -> None:
        found = ("transactions", "find-hanging", "--topic", topic, "--max-transaction-timeout", "0")
        assert tool(*found, "--json").ok().json == []
        assert len(tool(*found).ok().lines) == 1

    def test_all_that_are_open(self, tool: Tool, owner: str, topic: str) -> None:
        (found,) = tool("transactions", "find-hanging", "--topic", topic, "--all", "--json").ok().json
        assert (found["transactional_id"], found["start_offset"], found["hanging"]) == (owner, 0, False)
        other = tool("transactions", "find-hanging", "--topic", topic, "--partition", "1", "--all", "--json")
        assert other.ok().json == []

    def test_in_all_topics(self, tool: Tool, owner: str, topic: str) -> None:
        found = tool("transactions", "find-hanging", "--all", "--json").ok().json
        assert (topic, owner) in [(each["topic"], each["transactional_id"]) for each in found]

    def test_a_partition_needs_its_topic(self, tool: Tool) -> None:
        assert tool("transactions", "find-hanging", "--partition", "0").code == 2


class TestAbort:
    def test_one_that_will_be_ended_needs_force(self, tool: Tool, owner: str, topic: str) -> None:
        abort = ("transactions", "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
        refused = tool(*abort)
        assert refused.code == 1
        assert f"belongs to {owner} (Ongoing)" in refused.err
        assert tool(*abort, "--force").ok().lines == [f"aborted in {topic}-0 from offset 0 on"]
        assert tool(*abort).code == 1

    def test_none_at_that_offset(self, tool: Tool, owner: str, topic: str) -> None:
        done = tool("transactions", "abort", "--topic", topic, "--partition", "0", "--start-offset", "7")
        assert (done.code, "no transaction is open" in done.err) == (1, True)


def test_through_the_executable(bootstrap: str, owner: str) -> None:
    assert owner in barnabas("transactions", "list", "-b", bootstrap).stdout
