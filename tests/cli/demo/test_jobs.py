"""barnabas.cli.demo.jobs: the job without Spark."""

import json
from collections.abc import Callable

import pytest

from barnabas.cli.demo.jobs import PythonJob, sale
from barnabas.cli.demo.results import Results
from barnabas.client.producer import Producer
from barnabas.testing import Broker
from tests.broker._wire import until


def order(number: int) -> dict[str, object]:
    return {
        "order_id": f"o-{number:07d}", "region": f"r{number % 3}", "product": "tea",
        "quantity": 2, "unit_price": 1.25,
    }  # fmt: skip


def test_a_sale_is_an_order_with_its_total() -> None:
    assert sale(order(7)) == {"order_id": "o-0000007", "region": "r1", "product": "tea", "total": 2.5}


@pytest.mark.slow
class TestPythonJob:
    def test_every_order_becomes_a_sale_once(
        self, shared_broker: Broker, topic: str, name: Callable[[str], str]
    ) -> None:
        address, target = shared_broker.bootstrap_servers, name("sales")
        shared_broker.create_topic(target)
        with Producer({"bootstrap.servers": address}) as producer:
            for number in range(300):
                producer.send(topic, json.dumps(order(number)).encode())
        job, results = PythonJob(address, topic, target), Results(address, target)
        assert job.progress().state == "starting"
        results.start()
        job.start()
        until(lambda: results.count == 300)
        job.stop()
        results.stop()
        told = job.progress()
        assert (told.state, told.rows_in, told.rows_out) == ("running", 300, results.count)
        assert (results.orders, results.repeated) == (300, 0)
        assert [row["region"] for row in results.rows] == ["r0", "r1", "r2"]
        assert results.rows[0] == {"region": "r0", "orders": 100, "revenue": 250.0}

    def test_what_fails_is_raised_by_check(self) -> None:
        job = PythonJob("localhost:1", "a", "b")
        job.start()
        job.stop()
        with pytest.raises(Exception, match="no broker could be reached"):
            job.check()
