"""barnabas.broker.handlers.find_coordinator: who looks after a group (WIRE 2.12)."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.testing import Broker
from tests.broker._wire import WireClient
from tests.broker.conftest import StartBroker

VERSIONS = range(7)
GROUP, TRANSACTION, SHARE = 0, 1, 2


@pytest.mark.parametrize("version", VERSIONS[:4])
def test_one_key_is_answered_flat(broker: Broker, client: WireClient, version: int) -> None:
    response = client.call(FindCoordinatorRequest(key="g"), version, FindCoordinatorResponse)
    host, _, port = broker.bootstrap_servers.rpartition(":")
    assert (response.error_code, response.node_id) == (0, 1)
    assert (response.host, response.port) == (host, int(port))
    assert response.coordinators == []


@pytest.mark.parametrize("version", VERSIONS[4:])
def test_several_keys_are_answered_each_with_its_key(
    broker: Broker, client: WireClient, version: int
) -> None:
    request = FindCoordinatorRequest(coordinator_keys=["g1", "g2", ""])
    found = client.call(request, version, FindCoordinatorResponse).coordinators
    assert [(each.key, each.error_code, each.node_id) for each in found] == [
        ("g1", 0, 1),
        ("g2", 0, 1),
        ("", 0, 1),
    ]
    assert {f"{each.host}:{each.port}" for each in found} == {broker.bootstrap_servers}


@pytest.mark.parametrize("version", VERSIONS[4:])
def test_no_keys_are_no_coordinators(client: WireClient, version: int) -> None:
    assert client.call(FindCoordinatorRequest(), version, FindCoordinatorResponse).coordinators == []


@pytest.mark.parametrize("version", VERSIONS[1:])
@pytest.mark.parametrize("kind", [SHARE, 9])
def test_other_kinds_of_keys_are_refused(client: WireClient, version: int, kind: int) -> None:
    request = FindCoordinatorRequest(key_type=kind)
    if version < 4:
        request.key = "t"
        flat = client.call(request, version, FindCoordinatorResponse)
        assert (flat.error_code, flat.node_id, flat.host, flat.port) == (
            ErrorCode.INVALID_REQUEST,
            -1,
            "",
            -1,
        )
        return
    request.coordinator_keys = ["t"]
    (found,) = client.call(request, version, FindCoordinatorResponse).coordinators
    assert (found.key, found.error_code, found.node_id) == ("t", ErrorCode.INVALID_REQUEST, -1)


def test_the_first_look_up_makes_the_offsets_topic(start_broker: StartBroker) -> None:
    fresh = start_broker({"offsets.topic.num.partitions": "3"})
    with WireClient(fresh.bootstrap_servers) as client:
        everything = MetadataRequest(topics=None)
        assert client.call(everything, 9, MetadataResponse).topics == []
        assert client.call(FindCoordinatorRequest(key="g"), 2, FindCoordinatorResponse).error_code == 0
        named = MetadataRequest(topics=[MetadataRequestTopic(name="__consumer_offsets")])
        (topic,) = client.call(named, 9, MetadataResponse).topics
        assert (topic.is_internal, len(topic.partitions)) == (True, 3)
