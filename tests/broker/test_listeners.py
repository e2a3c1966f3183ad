"""Several listeners of one broker: each tells its clients its own address."""

import pytest

from barnabas.base.errors import ConfigFault
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.testing import Broker
from tests.broker._wire import WireClient

LISTENERS = "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0,CONTROL://127.0.0.1:0"


@pytest.fixture
def listening() -> Broker:
    return Broker(
        {
            "listeners": LISTENERS,
            "advertised.listeners": "OUTSIDE://broker.example:19092",
            "control.plane.listener.name": "CONTROL",
        }
    )


def addresses(broker: Broker) -> dict[str, str]:
    """Where each listener really is, by name; the outside one is told to clients differently."""
    assert broker.node is not None
    return {name: f"127.0.0.1:{port}" for name, port in broker.node.bound_ports.items()}


def test_each_listener_tells_its_own_address(listening: Broker) -> None:
    with listening as broker:
        told: dict[str, set[tuple[str, int]]] = {}
        for name, address in addresses(broker).items():
            with WireClient(address) as client:
                metadata = client.call(MetadataRequest(topics=[]), 12, MetadataResponse)
                cluster = client.call(DescribeClusterRequest(), 0, DescribeClusterResponse)
                found = client.call(
                    FindCoordinatorRequest(coordinator_keys=["g"]), 4, FindCoordinatorResponse
                )
            (broker_row,), (cluster_row,), (coordinator,) = (
                metadata.brokers,
                cluster.brokers,
                found.coordinators,
            )
            told[name] = {(row.host, row.port) for row in (broker_row, cluster_row, coordinator)}
        ports = {name: int(address.rpartition(":")[2]) for name, address in addresses(broker).items()}
        assert told == {
            "INSIDE": {("127.0.0.1", ports["INSIDE"])},
            "OUTSIDE": {("broker.example", 19092)},
            "CONTROL": {("127.0.0.1", ports["CONTROL"])},
        }
        assert len(set(ports.values())) == 3


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"control.plane.listener.name": "NOWHERE"},
            "control.plane.listener.name: there is no listener called NOWHERE",
        ),
        (
            {"advertised.listeners": "NOWHERE://a:1"},
            "advertised.listeners: there is no listener called NOWHERE",
        ),
        (
            {"listeners": "A://127.0.0.1:0,A://127.0.0.1:0"},
            "listeners: each listener needs its own name",
        ),
        (
            {"listeners": "A://127.0.0.1:9,B://127.0.0.1:9"},
            "listeners: an address comes twice",
        ),
    ],
)
def test_listeners_that_contradict_each_other_are_named(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigFault) as caught, Broker(settings):
        pass
    assert str(caught.value) == said
