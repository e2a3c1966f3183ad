"""barnabas.cli.demo.jobs: the job without Spark."""

import json
from collections.abc import Callable

import pytest

from barnabas.cli.demo.jobs import PythonJob, RegionTotals
from barnabas.cli.demo.results import Results
from barnabas.client.producer import Producer
from barnabas.testing import Broker
from tests.broker._wire import until


def order(region: str, quantity: int = 1, unit_price: float = 2.5) -> dict[str, object]:
    return {"region": region, "quantity": quantity, "unit_price": unit_price}


class TestTotals:
    def test_only_what_has_changed_is_given(self) -> None:
        totals = RegionTotals()
        assert totals.add([order("Asia"), order("Europe", 2), order("Asia", 3)]) == [
            {"region": "Asia", "orders": 2, "revenue": 10.0},
            {"region": "Europe", "orders": 1, "revenue": 5.0},
        ]
        assert totals.add([order("Europe")]) == [{"region": "Europe", "orders": 2, "revenue": 7.5}]
        assert totals.add([]) == []


@pytest.mark.slow
class TestPythonJob:
    def test_every_order_is_in_the_results_once(
        self, shared_broker: Broker, topic: str, name: Callable[[str], str]
    ) -> None:
        address, target = shared_broker.bootstrap_servers, name("revenue")
        shared_broker.create_topic(target)
        with Producer({"bootstrap.servers": address}) as producer:
            for number in range(300):
                producer.send(topic, json.dumps(order(f"r{number % 3}")).encode())
        job, results = PythonJob(address, topic, target), Results(address, target)
        assert job.progress().state == "starting"
        results.start()
        job.start()
        until(lambda: sum(row["orders"] for row in results.rows.values()) == 300)
        job.stop()
        results.stop()
        told = job.progress()
        assert (told.state, told.rows_in, told.rows_out) == ("running", 300, results.count)
        assert list(results.rows) == ["r0", "r1", "r2"]
        assert results.rows["r0"] == {"region": "r0", "orders": 100, "revenue": 250.0}

    def test_what_fails_is_raised_by_check(self) -> None:
        job = PythonJob("localhost:1", "a", "b")
        job.start()
        job.stop()
        with pytest.raises(Exception, match="no broker could be reached"):
            job.check()
