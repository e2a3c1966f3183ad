"""Tests of transactional producers against a real broker (Apache Kafka too, see conftest)."""

from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest

from barnabas.base.errors import ConfigFault, Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.consumer import Consumer
from barnabas.client.errors import CommitFailed, KafkaError, ProducerFenced, TransactionAborted
from barnabas.client.offsets import GroupIdentity
from barnabas.client.producer import Producer
from tests.client._consumers import consumer_of, read
from tests.client._kit import settings_for
from tests.client._servers import ClientServer

MakeProducer = Callable[..., Producer]


@pytest.fixture
def transactional_id(name: Callable[[str], str]) -> str:
    return name("txn")


@pytest.fixture
def make(bootstrap: str, transactional_id: str) -> Iterator[MakeProducer]:
    """Opens producers with one transactional id, and closes them."""
    opened: list[Producer] = []

    def open_one(**more: object) -> Producer:
        settings: dict[str, Any] = {"transactional_id": transactional_id, "linger_ms": 0, **more}
        producer = Producer(settings_for(bootstrap), **settings)
        opened.append(producer)
        return producer

    yield open_one
    for producer in opened:
        producer.close(5)


def committed_values(bootstrap: str, topic: str, last: bytes) -> list[bytes | None]:
    """What a read_committed reader sees, up to and with the value `last`."""
    values: list[bytes | None] = []
    with consumer_of(bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        while not values or values[-1] != last:
            values += [record.value for record in read(consumer, 1)]
    return values


def fail_in_block(producer: Producer, topic: str, consumer: Consumer | None = None) -> None:
    """A transaction whose block raises, after a record was written, and three read if there is a consumer."""
    try:
        with producer.transaction(consumer):
            if consumer is not None:
                read(consumer, 3)
            producer.send(topic, b"aborted").result(10)
            raise ZeroDivisionError
    except ZeroDivisionError:
        return
    raise AssertionError("the exception did not leave the block")


class TestTransactions:
    def test_what_is_committed_is_seen_and_what_is_aborted_is_not(
        self, make: MakeProducer, bootstrap: str, topic: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 1)
        producer = make()
        for number in range(6):
            producer.begin_transaction()
            producer.send(topic, b"%d" % number)
            producer.send(topic, b"%d'" % number)
            if number % 2 == 0:
                producer.commit_transaction()
            else:
                producer.flush()
                producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"end")
        producer.commit_transaction()
        assert committed_values(bootstrap, topic, b"end") == [b"0", b"0'", b"2", b"2'", b"4", b"4'", b"end"]

    def test_over_many_partitions_and_records(
        self, make: MakeProducer, bootstrap: str, topic: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 6)
        producer = make()
        with producer.transaction():
            for number in range(3000):
                producer.send(topic, b"%d" % number, b"%d" % number)
        with consumer_of(bootstrap, isolation_level="read_committed") as consumer:
            consumer.assign([TopicPartition(topic, index) for index in range(6)])
            records = read(consumer, 3000)
        assert sorted(int(record.value or b"") for record in records) == list(range(3000))

    def test_a_block_commits_at_its_end(
        self, make: MakeProducer, bootstrap: str, topic: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 1)
        with make().transaction():
            pass
        producer = make()
        with producer.transaction():
            future = producer.send(topic, b"end")
        assert future.result(0).offset == 0
        assert committed_values(bootstrap, topic, b"end") == [b"end"]

    def test_an_exception_aborts_the_block(
        self, make: MakeProducer, bootstrap: str, topic: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 1)
        producer = make()
        fail_in_block(producer, topic)
        with producer.transaction():
            producer.send(topic, b"end")
        assert committed_values(bootstrap, topic, b"end") == [b"end"]

    def test_records_not_sent_when_it_aborts_fail_without_a_report(
        self, make: MakeProducer, topic: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 1)
        producer = make(linger_ms=60_000, delivery_timeout_ms=120_000)
        producer.begin_transaction()
        future = producer.send(topic, b"lingers")
        producer.abort_transaction()
        with pytest.raises(TransactionAborted):
            future.result(1)
        producer.flush()

    def test_closing_aborts_what_is_open(
        self, make: MakeProducer, bootstrap: str, topic: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 1)
        producer = make()
        producer.begin_transaction()
        producer.send(topic, b"lost").result(10)
        producer.close()
        with make().transaction():
            pass
        last = make()
        with last.transaction():
            last.send(topic, b"end")
        assert committed_values(bootstrap, topic, b"end") == [b"end"]


class TestOffsets:
    def test_are_committed_with_the_transaction(
        self, make: MakeProducer, bootstrap: str, topic: str, group: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 1)
        tp = TopicPartition(topic, 0)
        producer = make()
        with producer.transaction():
            producer.send_offsets_to_transaction({tp: 5}, GroupIdentity(group))
        with consumer_of(bootstrap, group_id=group) as consumer:
            assert consumer.committed(tp)[tp].offset == 5
            producer.begin_transaction()
            producer.send_offsets_to_transaction({tp: 9}, GroupIdentity(group))
            producer.abort_transaction()
            assert consumer.committed(tp)[tp].offset == 5

    def test_of_a_consumer_go_with_the_block(
        self,
        make: MakeProducer,
        bootstrap: str,
        topic: str,
        group: str,
        name: Callable[[str], str],
        admin: Admin,
    ) -> None:
        out = name("out")
        admin.create_topic(topic, 1)
        admin.create_topic(out, 1)
        producer = make()
        with producer.transaction():
            for value in (b"a", b"b", b"c"):
                producer.send(topic, value)
        settings: dict[str, Any] = {"isolation_level": "read_committed", "enable_auto_commit": False}
        with consumer_of(bootstrap, group_id=group, **settings) as consumer:
            consumer.subscribe(topic)
            fail_in_block(producer, out, consumer)
            with producer.transaction(consumer):
                for record in read(consumer, 3):
                    assert record.value is not None
                    producer.send(out, record.value.upper())
            tp = TopicPartition(topic, 0)
            assert consumer.committed(tp)[tp].offset == consumer.position(tp)
        assert committed_values(bootstrap, out, b"C") == [b"A", b"B", b"C"]

    def test_of_a_member_that_is_gone_make_it_abortable(
        self, make: MakeProducer, topic: str, group: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 1)
        producer = make()
        producer.begin_transaction()
        stranger = GroupIdentity(group, generation=3, member_id="nobody")
        with pytest.raises(TransactionAborted) as caught:
            producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, stranger)
        assert isinstance(caught.value.__cause__, CommitFailed)
        with pytest.raises(TransactionAborted):
            producer.send(topic, b"x")
        with pytest.raises(TransactionAborted):
            producer.commit_transaction()
        producer.abort_transaction()
        with producer.transaction():
            producer.send(topic, b"end")

    def test_need_a_consumer_that_does_not_commit_by_itself(
        self, make: MakeProducer, bootstrap: str, group: str
    ) -> None:
        producer = make()
        with (
            consumer_of(bootstrap, group_id=group) as consumer,
            pytest.raises(Misuse, match=r"enable\.auto\.commit=false"),
            producer.transaction(consumer),
        ):
            pass


class TestFencing:
    def test_a_second_producer_ends_the_first(
        self, make: MakeProducer, bootstrap: str, topic: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 1)
        zombie = make()
        zombie.begin_transaction()
        zombie.send(topic, b"lost").result(10)
        successor = make()
        successor.init_transactions()
        with pytest.raises(ProducerFenced):
            zombie.commit_transaction()
        with pytest.raises(ProducerFenced):
            zombie.begin_transaction()
        with pytest.raises(ProducerFenced):
            zombie.send(topic, b"x")
        with pytest.raises(ProducerFenced):
            zombie.abort_transaction()
        with successor.transaction():
            successor.send(topic, b"end")
        assert committed_values(bootstrap, topic, b"end") == [b"end"]

    def test_a_zombie_that_only_sends_is_refused(
        self, make: MakeProducer, bootstrap: str, topic: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 1)
        zombie = make()
        with zombie.transaction():
            zombie.send(topic, b"first")
        successor = make()
        successor.init_transactions()
        with pytest.raises(ProducerFenced), zombie.transaction():
            zombie.send(topic, b"lost")
        with successor.transaction():
            successor.send(topic, b"end")
        assert committed_values(bootstrap, topic, b"end") == [b"first", b"end"]


class TestMisuse:
    def test_sending_outside_of_a_transaction(self, make: MakeProducer, topic: str) -> None:
        producer = make()
        with pytest.raises(Misuse, match="inside of a transaction; this one has no id yet"):
            producer.send(topic, b"x")
        with producer.transaction():
            producer.send(topic, b"x")
        with pytest.raises(Misuse, match="has no transaction open"):
            producer.send(topic, b"x")

    def test_of_the_order_of_calls(self, make: MakeProducer) -> None:
        producer = make()
        for call in (producer.commit_transaction, producer.abort_transaction):
            with pytest.raises(Misuse):
                call()
        producer.begin_transaction()
        with pytest.raises(Misuse, match="has a transaction open"):
            producer.begin_transaction()

    def test_without_a_transactional_id(self, bootstrap: str) -> None:
        with (
            Producer(settings_for(bootstrap)) as producer,
            pytest.raises(Misuse, match=r"transactional\.id"),
        ):
            producer.begin_transaction()

    @pytest.mark.parametrize(
        "more", [{"transactional.id": ""}, {"acks": "1"}, {"enable.idempotence": False}, {"retries": 0}]
    )
    def test_of_settings(self, more: dict[str, object]) -> None:
        with pytest.raises(ConfigFault, match=r"transactional\.id"):
            Producer({"bootstrap.servers": "localhost:1", "transactional.id": "t", **more})


class TestFaults:
    def test_a_restart_of_the_broker_in_between(self, own_server: ClientServer, topic: str) -> None:
        with Admin(settings_for(own_server.bootstrap_servers)) as admin:
            admin.create_topic(topic, 1)
        settings = settings_for(own_server.bootstrap_servers, **{"transactional.id": "restart"})
        with Producer(settings) as producer:
            producer.begin_transaction()
            producer.send(topic, b"before").result(10)
            own_server.stop()
            producer.send(topic, b"while it is down")
            own_server.start()
            producer.send(topic, b"end")
            producer.commit_transaction()
        values = committed_values(own_server.bootstrap_servers, topic, b"end")
        assert values == [b"before", b"while it is down", b"end"]

    def test_a_batch_that_fails_makes_it_abortable_and_the_next_one_works(
        self, make: MakeProducer, bootstrap: str, topic: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 1, configs={"max.message.bytes": "1000"})
        producer = make()
        producer.begin_transaction()
        producer.send(topic, b"fits").result(10)
        with pytest.raises(KafkaError):
            producer.send(topic, b"x" * 5000).result(10)
        with pytest.raises(TransactionAborted):
            producer.commit_transaction()
        producer.abort_transaction()
        with producer.transaction():
            producer.send(topic, b"end")
        assert committed_values(bootstrap, topic, b"end") == [b"end"]

    def test_a_failed_batch_aborts_a_block(
        self, make: MakeProducer, bootstrap: str, topic: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 1, configs={"max.message.bytes": "1000"})
        producer = make()
        with pytest.raises(TransactionAborted), producer.transaction():
            producer.send(topic, b"x" * 5000)
        with producer.transaction():
            producer.send(topic, b"end")
        assert committed_values(bootstrap, topic, b"end") == [b"end"]


class TestOtherClients:
    def test_confluent_kafka_reads_what_we_commit(
        self, make: MakeProducer, bootstrap: str, topic: str, group: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 1)
        producer = make()
        fail_in_block(producer, topic)
        with producer.transaction():
            producer.send(topic, b"seen")
        reader = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        try:
            reader.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
            message = reader.poll(10)
            assert message is not None
            assert message.value() == b"seen"
        finally:
            reader.close()

    def test_we_read_what_confluent_kafka_commits(
        self, transactional_id: str, bootstrap: str, topic: str, admin: Admin
    ) -> None:
        admin.create_topic(topic, 1)
        writer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": transactional_id}
        )
        writer.init_transactions(10)
        for value, commits in ((b"a", True), (b"b", False), (b"end", True)):
            writer.begin_transaction()
            writer.produce(topic, value)
            writer.flush(10)
            if commits:
                writer.commit_transaction(10)
            else:
                writer.abort_transaction(10)
        assert committed_values(bootstrap, topic, b"end") == [b"a", b"end"]
