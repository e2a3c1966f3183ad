"""barnabas.cli.demo.results."""

import json

import pytest

from barnabas.cli.demo.results import Results, Totals
from barnabas.client.producer import Producer
from barnabas.testing import Broker
from tests.broker._wire import until


def sale(number: int, region: str = "Asia", total: float = 2.5) -> dict[str, object]:
    return {"order_id": f"o-{number:07d}", "region": region, "total": total}


def test_totals_are_by_region_and_count_an_order_once() -> None:
    totals = Totals()
    for each in (sale(1), sale(2, "Europe"), sale(70_000), sale(1)):
        totals.add(each)
    assert (totals.orders, totals.repeated) == (3, 1)
    assert totals.rows() == [
        {"region": "Asia", "orders": 2, "revenue": 5.0},
        {"region": "Europe", "orders": 1, "revenue": 2.5},
    ]


@pytest.mark.slow
def test_what_is_in_the_topic_is_counted(shared_broker: Broker, topic: str) -> None:
    address = shared_broker.bootstrap_servers
    with Producer({"bootstrap.servers": address}) as producer:
        for number in (1, 2, 3, 3):
            producer.send(topic, json.dumps(sale(number)).encode(), partition=number % 2)
    results = Results(address, topic)
    results.start()
    until(lambda: results.count == 4)
    results.stop()
    assert (results.orders, results.repeated) == (3, 1)
    assert results.rows == [{"region": "Asia", "orders": 3, "revenue": 7.5}]


@pytest.mark.slow
def test_a_broker_that_is_away_is_a_failure() -> None:
    results = Results("localhost:1", "t")
    results.start()
    results.stop()
    assert "no broker could be reached" in str(results.failure)
