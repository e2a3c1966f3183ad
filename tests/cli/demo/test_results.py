"""barnabas.cli.demo.results."""

import pytest

from barnabas.cli.demo.results import Results
from barnabas.client.producer import Producer
from barnabas.testing import Broker
from tests.broker._wire import until


@pytest.mark.slow
def test_the_newest_row_of_each_key_is_kept(shared_broker: Broker, topic: str) -> None:
    address = shared_broker.bootstrap_servers
    with Producer({"bootstrap.servers": address}) as producer:
        for value in (b'{"n": 1}', b'{"n": 2}'):
            producer.send(topic, value, b"b", partition=0)
        producer.send(topic, b'{"n": 3}', b"a", partition=0)
    results = Results(address, topic)
    results.start()
    until(lambda: results.count == 3)
    results.stop()
    assert list(results.rows.items()) == [("a", {"n": 3}), ("b", {"n": 2})]


@pytest.mark.slow
def test_a_broker_that_is_away_is_a_failure() -> None:
    results = Results("localhost:1", "t")
    results.start()
    results.stop()
    assert "no broker could be reached" in str(results.failure)
