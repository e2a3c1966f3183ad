"""barnabas.cli.demo.feed."""

import json

import pytest

from barnabas.base.types import TopicPartition
from barnabas.cli.demo.feed import Feed, due
from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer
from tests.broker._wire import until


def test_the_rate_swells_and_ebbs_around_what_was_asked_for() -> None:
    assert due(0, 1000) == 0
    assert due(20, 1000) == 20_000
    assert due(40, 1000) == 40_000
    steps = [due(second + 1, 1000) - due(second, 1000) for second in range(20)]
    assert min(steps) < 800
    assert max(steps) > 1200


@pytest.mark.slow
def test_all_that_is_counted_is_in_the_topic(bootstrap: str, topic: str) -> None:
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        feed = Feed(producer, topic, 5000)
        feed.start()
        until(lambda: feed.acknowledged >= 100 or feed.failure is not None)
        feed.stop()
        feed.stop()
    with Consumer({"bootstrap.servers": bootstrap}) as consumer:
        places = [TopicPartition(topic, number) for number in range(2)]
        assert sum(consumer.end_offsets(*places).values()) == feed.acknowledged
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        order = json.loads(consumer.poll(10)[0].value or b"")
    assert set(order) == set(feed.latest[0])
    assert feed.size_bytes > 100 * feed.acknowledged


@pytest.mark.slow
def test_what_the_broker_refuses_is_kept_for_the_main_thread(bootstrap: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "max.block.ms": "200"}
    with Producer(settings) as producer:
        feed = Feed(producer, "nosuch", 100)
        feed.start()
        until(lambda: feed.failure is not None)
        feed.stop()
    assert "nosuch" in str(feed.failure)
