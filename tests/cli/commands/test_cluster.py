"""barnabas cluster."""

import pytest

from tests.cli._command import barnabas
from tests.cli.conftest import Tool


def test_brokers_and_what_they_hold(tool: Tool, topic: str, bootstrap: str) -> None:
    head, columns, row = tool("cluster", "describe").ok().lines
    assert head.startswith("Cluster ")
    assert head.endswith("0 without leader, 0 under-replicated")
    assert columns.split() == ["BROKER", "ADDRESS", "RACK", "CONTROLLER", "LEADERS", "REPLICAS", "SIZE"]
    assert row.split()[:4] == ["1", bootstrap, "-", "yes"]


def test_json(tool: Tool, topic: str) -> None:
    found = tool("cluster", "describe", "--json").ok().json
    (broker,) = found["brokers"]
    assert (broker["id"], broker["controller"], found["controller"]) == (1, True, 1)
    assert broker["leaders"] == broker["replicas"] == found["partitions"] >= 2
    assert broker["size_bytes"] >= 0


def test_the_id_as_kafka_prints_it(tool: Tool, bootstrap: str) -> None:
    shown = tool("cluster", "cluster-id", "--bootstrap-server", bootstrap).ok().out
    found = tool("cluster", "cluster-id", "--json").ok().json["cluster_id"]
    assert shown == f"Cluster ID: {found}\n"


@pytest.mark.slow
def test_the_real_command(bootstrap: str) -> None:
    assert barnabas("cluster", "describe", env={"BARNABAS_BOOTSTRAP": bootstrap}).returncode == 0
    assert barnabas("cluster", "describe", "-b", "localhost:1").returncode == 1
    assert barnabas("cluster", "nosuch").returncode == 2
