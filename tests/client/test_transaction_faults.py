"""Transactions over connections that break: all or nothing, once."""

import pytest

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.errors import KafkaError
from barnabas.client.producer import Producer
from tests.client._consumers import consumer_of, read
from tests.client._faulty import FaultyBroker, faulty_broker
from tests.client._kit import settings_for


def committed_values(broker: FaultyBroker, last: bytes) -> list[bytes | None]:
    values: list[bytes | None] = []
    with consumer_of(broker.direct, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition("t", 0)])
        while not values or values[-1] != last:
            values += [record.value for record in read(consumer, 1)]
    return values


def producer_of(broker: FaultyBroker, **more: object) -> Producer:
    return Producer(
        settings_for(broker.bootstrap_servers, **{"transactional.id": "x", "linger.ms": 0, **more})
    )


def finish(producer: Producer) -> None:
    """Commits, as often as it takes until the client has found the broker again."""
    for _ in range(50):
        try:
            producer.commit_transaction()
        except KafkaError as error:
            if not error.retriable:
                raise
        else:
            return
    raise AssertionError("the commit did not come through")


@pytest.mark.slow
def test_connections_that_break_anywhere_neither_lose_nor_double_a_transaction() -> None:
    with faulty_broker() as broker:
        broker.broker.create_topic("t")
        with producer_of(broker) as producer:
            for number in range(40):
                # Behind what it takes to connect, each time at another place of a request or an answer.
                broker.proxy.cut_after(3000 + 61 * number)
                with producer.transaction():
                    producer.send("t", b"%d" % number)
                    producer.send("t", b"%d'" % number)
            with producer.transaction():
                producer.send("t", b"end")
        broker.proxy.heal()  # the reader comes through it too
        values = committed_values(broker, b"end")
    expected = [text for number in range(40) for text in (b"%d" % number, b"%d'" % number)]
    assert values == [*expected, b"end"]


@pytest.mark.slow
def test_a_commit_that_nobody_answered_is_finished_by_the_next_call() -> None:
    with faulty_broker() as broker:
        broker.broker.create_topic("t")
        with producer_of(broker, **{"max.block.ms": 300}) as producer:
            producer.begin_transaction()
            producer.send("t", b"end").result(10)
            broker.proxy.refuse()
            broker.proxy.cut()
            with pytest.raises(KafkaError) as caught:
                producer.commit_transaction()
            assert caught.value.retriable
            with pytest.raises(Misuse, match="is committing"):
                producer.abort_transaction()
            broker.proxy.accept()
            finish(producer)
        assert committed_values(broker, b"end") == [b"end"]


@pytest.mark.slow
def test_a_batch_given_up_aborts_and_the_next_transaction_is_whole() -> None:
    with faulty_broker() as broker:
        broker.broker.create_topic("t")
        limits = {"delivery.timeout.ms": 400, "request.timeout.ms": 300}
        with producer_of(broker, **limits) as producer:
            with producer.transaction():
                producer.send("t", b"first")
            producer.begin_transaction()
            producer.send("t", b"written").result(10)
            broker.proxy.stall(answers_only=True)
            lost = producer.send("t", b"doubtful")
            with pytest.raises(KafkaError):
                lost.result(10)
            with pytest.raises(KafkaError):
                producer.commit_transaction()
            broker.proxy.resume()
            producer.abort_transaction()
            with producer.transaction():
                producer.send("t", b"end")
        assert committed_values(broker, b"end") == [b"first", b"end"]
