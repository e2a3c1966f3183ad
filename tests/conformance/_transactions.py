"""Transactions as every client must find them, whatever its language, and the drivers that run them.

The module of a client derives its test class from `TransactionScenarios` and names the client.  Every
expectation holds for Apache Kafka too, and is checked against it (BARNABAS_CONFORMANCE=kafka).
"""

import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public by its documentation only
    AdminClient,
    NewTopic,
)

from tests._kafka import KafkaMissing, cache_folder, java, only_one
from tests.conformance._client import Client, ClientError, eventually
from tests.conformance._servers import Server, make_server
from tests.conformance._setup import ClientMissing, _npm, _run, _target, table

DRIVERS = Path(__file__).parent / "drivers"
PATIENT_MS = 20_000
HASTY_MS = 1_000
INVALID_PRODUCER_EPOCH = 47
SETTINGS = {
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}


def start_driver(name: str, bootstrap_servers: str) -> Client:
    """A running driver of the client's transactions; raises ClientMissing when it cannot be had."""
    environment = dict(os.environ)
    row = table()[name]
    if name == "java":
        command = _java_command()
    elif "npm" in row:
        command = ["node", str(DRIVERS / "kafkajs_transactions.js")]
        environment["NODE_PATH"] = str(_npm(name, row["npm"]) / "node_modules")
    else:
        command = [sys.executable, "-m", f"tests.conformance.drivers.{row['module']}_transactions"]
        if "extra" in row:
            environment["PYTHONPATH"] = str(_target(name, row["extra"]))
    return Client(name, [*command, bootstrap_servers], environment, ())


def _java_command() -> list[str]:
    source = DRIVERS / "TransactionsDriver.java"
    if shutil.which("javac") is None:
        raise ClientMissing("the Java driver needs javac, which is not installed")
    try:
        classpath = java()[-1]
    except KafkaMissing as missing:
        raise ClientMissing(str(missing)) from missing
    with only_one("java-transactions"):
        folder = cache_folder() / "java-transactions"
        folder.mkdir(exist_ok=True)
        mark = folder / source.name
        if not mark.exists() or mark.read_text() != source.read_text():
            _run(["javac", "-cp", classpath, "-d", str(folder), str(source)], folder, "the Java driver")
            mark.write_text(source.read_text())
    command = java("TransactionsDriver")
    command[command.index("-cp") + 1] = f"{folder}:{classpath}"
    return command


@dataclass(frozen=True, slots=True)
class Producer:
    """A transactional producer in the driver."""

    client: Client
    number: int

    def begin(self) -> None:
        self.client.call("txn_begin", number=self.number)

    def send(self, topic: str, *values: str, partition: int = 0) -> None:
        self.client.call("txn_send", number=self.number, topic=topic, partition=partition, values=values)

    def commit(self) -> None:
        self.client.call("txn_commit", number=self.number)

    def abort(self) -> None:
        self.client.call("txn_abort", number=self.number)

    def copy(self, group: str, source: str, target: str, count: int, *, commit: bool) -> list[str]:
        copied: list[str] = self.client.call(
            "txn_copy",
            number=self.number,
            group=group,
            source=source,
            target=target,
            count=count,
            commit=commit,
        )
        return copied

    def write(self, topic: str, *values: str, partition: int = 0) -> None:
        """One committed transaction of these values."""
        self.begin()
        self.send(topic, *values, partition=partition)
        self.commit()


@dataclass(frozen=True, slots=True)
class Scene:
    """A server, a client's driver at it, and fresh names."""

    server: Server
    client: Client

    def topic(self, partitions: int = 1) -> str:
        name = f"topic-{uuid.uuid4().hex[:10]}"
        admin = AdminClient({"bootstrap.servers": self.server.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(20)
        return name

    def producer(self, transactional_id: str | None = None, timeout_ms: int = PATIENT_MS) -> Producer:
        name = transactional_id or f"id-{uuid.uuid4().hex[:10]}"
        return Producer(
            self.client, self.client.call("txn_open", transactional_id=name, timeout_ms=timeout_ms)
        )

    def read(self, topic: str, count: int, *, partition: int = 0, committed: bool = True) -> list[str]:
        """The first `count` records of the partition; 0 is what comes until it stays quiet."""
        values: list[str] = self.client.call(
            "txn_read", topic=topic, partition=partition, committed=committed, count=count
        )
        return values

    def committed_offset(self, group: str, topic: str) -> int:
        """What the group committed, once no transaction holds it back."""
        consumer = Consumer(
            {"bootstrap.servers": self.server.bootstrap_servers, "group.id": group, "log_level": 0}
        )
        try:
            [found] = consumer.committed([TopicPartition(topic, 0)], 20)
            return int(found.offset)
        finally:
            consumer.close()


class CoreScenarios:
    """What every way to run transactions must show."""

    CLIENT: ClassVar[str]
    SETTINGS: ClassVar[dict[str, str]] = {}

    @pytest.fixture(scope="class")
    @classmethod
    def running(cls, kind: str) -> Iterator[Server]:
        if cls.SETTINGS and kind != "barnabas":
            pytest.skip("these settings are Barnabas's own")
        server = make_server(kind, {**SETTINGS, **cls.SETTINGS})
        try:
            server.start()
            yield server
        finally:
            server.close()

    @pytest.fixture(scope="class")
    @classmethod
    def scene(cls, running: Server) -> Iterator[Scene]:
        try:
            driver = start_driver(cls.CLIENT, running.bootstrap_servers)
        except ClientMissing as missing:
            pytest.skip(str(missing))
        with driver:
            yield Scene(running, driver)

    def test_a_commit_is_seen_whole_and_an_abort_only_by_readers_of_everything(self, scene: Scene) -> None:
        topic, producer = scene.topic(partitions=2), scene.producer()
        producer.begin()
        producer.send(topic, "a", "b", partition=0)
        producer.send(topic, "c", partition=1)
        producer.commit()
        producer.begin()
        producer.send(topic, "gone", partition=0)
        producer.send(topic, "gone", partition=1)
        producer.abort()
        producer.begin()
        producer.send(topic, "d", partition=0)
        producer.send(topic, "e", partition=1)
        producer.commit()
        assert scene.read(topic, 3, partition=0) == ["a", "b", "d"]
        assert scene.read(topic, 2, partition=1) == ["c", "e"]
        assert scene.read(topic, 4, partition=0, committed=False) == ["a", "b", "gone", "d"]
        assert scene.read(topic, 3, partition=1, committed=False) == ["c", "gone", "e"]

    def test_offsets_are_committed_with_the_records_they_led_to(self, scene: Scene) -> None:
        source, target, group = scene.topic(), scene.topic(), f"group-{uuid.uuid4().hex[:10]}"
        producer = scene.producer()
        producer.write(source, "1", "2", "3")
        assert producer.copy(group, source, target, 3, commit=False) == ["1", "2", "3"]
        assert scene.committed_offset(group, source) < 0
        assert producer.copy(group, source, target, 3, commit=True) == ["1", "2", "3"]
        assert scene.committed_offset(group, source) == 3
        producer.write(target, "end")
        assert scene.read(target, 4) == ["1", "2", "3", "end"]

    def test_a_second_instance_fences_the_first_and_aborts_its_transaction(self, scene: Scene) -> None:
        topic, name = scene.topic(), f"id-{uuid.uuid4().hex[:10]}"
        zombie = scene.producer(name)
        zombie.begin()
        zombie.send(topic, "zombie")
        heir = scene.producer(name)
        heir.write(topic, "heir")
        with pytest.raises(ClientError):
            zombie.commit()
        heir.write(topic, "end")
        assert scene.read(topic, 2) == ["heir", "end"]


class TransactionScenarios(CoreScenarios):
    """Derived by the module of each client."""

    def test_two_producers_in_one_partition_hold_back_readers_until_the_older_one_ends(
        self, scene: Scene
    ) -> None:
        topic, slow, quick = scene.topic(), scene.producer(), scene.producer()
        slow.begin()
        slow.send(topic, "slow 1")
        quick.write(topic, "quick 1")
        assert scene.read(topic, 2, committed=False) == ["slow 1", "quick 1"]
        assert scene.read(topic, 0) == []
        quick.begin()
        quick.send(topic, "gone")
        slow.send(topic, "slow 2")
        quick.abort()
        slow.commit()
        quick.write(topic, "quick 2")
        assert scene.read(topic, 4) == ["slow 1", "quick 1", "slow 2", "quick 2"]

    def test_a_transaction_that_runs_out_of_time_is_aborted_and_its_producer_fenced(
        self, scene: Scene
    ) -> None:
        topic, late = scene.topic(), scene.producer(timeout_ms=HASTY_MS)
        late.begin()
        late.send(topic, "late")
        scene.producer().write(topic, "in time")
        assert scene.read(topic, 1) == ["in time"]
        with pytest.raises(ClientError):
            late.commit()

    def test_a_transaction_goes_on_over_a_restart_of_the_broker(self, scene: Scene) -> None:
        topic, producer, other = scene.topic(), scene.producer(), scene.producer()
        other.begin()
        other.send(topic, "gone")
        producer.begin()
        producer.send(topic, "before")
        scene.server.stop()
        scene.server.start()
        eventually(lambda: self._sends(producer, topic), what="the broker after its restart")
        producer.commit()
        other.abort()
        producer.write(topic, "end")
        found = scene.read(topic, 0)
        assert found[0] == "before"
        assert found[-1] == "end"
        assert "gone" not in found

    def _sends(self, producer: Producer, topic: str) -> bool:
        producer.send(topic, "after")
        return True


class LateScenarios(CoreScenarios):
    """For clients of version 2: who ran out of time may abort and go on; only a commit is too late."""

    def test_a_producer_whose_time_was_over_aborts_and_goes_on(self, scene: Scene) -> None:
        topic, late = scene.topic(), scene.producer(timeout_ms=HASTY_MS)
        late.begin()
        late.send(topic, "late")
        scene.producer().write(topic, "in time")
        assert scene.read(topic, 1) == ["in time"], "the coordinator has aborted"
        late.abort()
        late.write(topic, "again")
        assert scene.read(topic, 2) == ["in time", "again"]

    def test_a_record_that_comes_too_late_is_refused_and_the_producer_goes_on(self, scene: Scene) -> None:
        topic, late = scene.topic(), scene.producer(timeout_ms=HASTY_MS)
        late.begin()
        late.send(topic, "late")
        scene.producer().write(topic, "in time")
        assert scene.read(topic, 1) == ["in time"], "the coordinator has aborted"
        with pytest.raises(ClientError) as refused:
            late.send(topic, "too late")
        assert refused.value.code in (INVALID_PRODUCER_EPOCH, None)
        with pytest.raises(ClientError):
            late.commit()
        late.abort()
        late.write(topic, "again")
        assert scene.read(topic, 2) == ["in time", "again"]
