"""barnabas transactions."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer
from barnabas.testing import Broker
from tests.broker._transactions import TransactionalProducer
from tests.broker._wire import WireClient
from tests.cli._command import barnabas
from tests.cli.conftest import Done, Tool

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


class Hanging(NamedTuple):
    """A topic with records of a transaction in partition 0 that no coordinator knows of (KIP-664)."""

    bootstrap: str
    topic: str
    transactional_id: str

    def run(self, tool: Tool, *arguments: str) -> Done:
        return tool("transactions", *arguments, "-b", self.bootstrap)


class TestHanging:
    @pytest.fixture
    def hanging(self, name: Name) -> Iterator[Hanging]:
        # Such records come from brokers that did not check, as all did before KIP-890.
        with Broker({"transaction.partition.verification.enable": "false"}) as broker:
            topic = name("topic")
            broker.create_topic(topic, partitions=2)
            with WireClient(broker.bootstrap_servers) as client:
                owner = TransactionalProducer(client, name("txn"))
                owner.send(topic, b"known", partition=1)
                owner.commit()
                assert owner.produce(topic, b"late", partition=0) == 0
            yield Hanging(broker.bootstrap_servers, topic, owner.transactional_id)

    def test_it_is_found_with_its_owner(self, tool: Tool, hanging: Hanging) -> None:
        asked = ("find-hanging", "--max-transaction-timeout", "0", "--json")
        (found,) = hanging.run(tool, *asked).ok().json
        assert (found["topic"], found["partition"], found["start_offset"]) == (hanging.topic, 0, 0)
        assert (found["transactional_id"], found["hanging"]) == (hanging.transactional_id, True)
        assert hanging.run(tool, "find-hanging", "--json").ok().json == [], "it is young yet"

    def test_it_is_ended_and_readers_go_on(self, tool: Tool, hanging: Hanging) -> None:
        where = TopicPartition(hanging.topic, 0)
        with Producer(bootstrap_servers=hanging.bootstrap) as producer:
            producer.send(hanging.topic, b"behind", partition=0).result(10)
        with Consumer(bootstrap_servers=hanging.bootstrap, isolation_level="read_committed") as consumer:
            consumer.assign([where])
            consumer.seek_to_beginning(where)
            assert consumer.end_offsets(where) == {where: 0}, "nobody reads past it"
            abort = ("abort", "--topic", hanging.topic, "--partition", "0", "--start-offset", "0")
            done = hanging.run(tool, *abort).ok()
            assert done.lines == [f"aborted in {hanging.topic}-0 from offset 0 on"]
            assert [record.value for record in consumer.poll(10)] == [b"behind"]
        again = hanging.run(tool, "find-hanging", "--max-transaction-timeout", "0", "--json")
        assert again.ok().json == []

    def test_its_owner_can_go_on(self, tool: Tool, hanging: Hanging) -> None:
        hanging.run(tool, "abort", "--topic", hanging.topic, "--partition", "0", "--start-offset", "0").ok()
        settings = {"bootstrap_servers": hanging.bootstrap, "transactional_id": hanging.transactional_id}
        with Producer(**settings) as producer, producer.transaction():
            producer.send(hanging.topic, b"next", partition=0)


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
