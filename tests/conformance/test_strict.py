"""A broker that makes no topics by itself: unknown is unknown, to every kind of call."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # public by its docs

from tests.conformance._client import eventually
from tests.conformance._servers import Server, make_server
from tests.conformance._setup import ClientMissing, kcat
from tests.conformance.test_kcat import Kcat


@pytest.fixture(scope="module")
def strict(kind: str) -> Iterator[Server]:
    server = make_server(kind, {"auto.create.topics.enable": "false"})
    try:
        server.start()
        yield server
    finally:
        server.close()


def test_producing_to_an_unknown_topic_is_refused(strict: Server, topic: str) -> None:
    producer = Producer(
        {
            "bootstrap.servers": strict.bootstrap_servers,
            "topic.metadata.propagation.max.ms": 200,
            "topic.metadata.refresh.fast.interval.ms": 50,
        }
    )
    errors: list[KafkaError | None] = []
    producer.produce(topic, b"v", on_delivery=lambda error, _message: errors.append(error))
    assert producer.flush(20) == 0
    [error] = errors
    assert error is not None
    assert error.code() in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}
    admin = AdminClient({"bootstrap.servers": strict.bootstrap_servers})
    assert topic not in admin.list_topics(timeout=10).topics


def test_a_subscriber_is_told_and_finds_the_topic_once_it_is_there(
    strict: Server, topic: str, group: str
) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": strict.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 200,
        }
    )
    try:
        consumer.subscribe([topic])
        told = eventually(lambda: consumer.poll(0.2), what="word about the unknown topic")
        error = told.error()
        assert error is not None
        assert error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        admin = AdminClient({"bootstrap.servers": strict.bootstrap_servers})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
        producer = Producer({"bootstrap.servers": strict.bootstrap_servers})
        producer.produce(topic, b"at last")
        assert producer.flush(20) == 0

        def received() -> bytes | None:
            message = consumer.poll(0.2)
            return message.value() if message is not None and message.error() is None else None

        assert eventually(received, what="the first message") == b"at last"
    finally:
        consumer.close()


def test_metadata_of_an_unknown_topic_makes_none(strict: Server, topic: str) -> None:
    try:
        program = Kcat(kcat(), strict)
    except ClientMissing as missing:
        pytest.skip(str(missing))
    shown = program.run("-L", "-t", topic)
    assert b"Unknown topic or partition" in shown
    assert topic.encode() not in program.run("-L")
