"""barnabas.broker.handlers.describe_cluster: the brokers and who controls them."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.testing import Broker
from tests.broker._calls import image_of
from tests.broker._wire import WireClient

VERSIONS = range(3)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_one_broker_is_the_controller(broker: Broker, client: WireClient, version: int) -> None:
    response = client.call(DescribeClusterRequest(), version, DescribeClusterResponse)
    assert (response.error_code, response.error_message) == (0, None)
    assert (response.cluster_id, response.controller_id) == (image_of(broker).cluster_id, 1)
    (node,) = response.brokers
    assert f"{node.host}:{node.port}" == broker.bootstrap_servers
    assert (node.broker_id, node.rack, node.is_fenced) == (1, None, False)
    assert response.cluster_authorized_operations == -(2**31)
    assert response.endpoint_type == 1


@pytest.mark.parametrize("version", VERSIONS[1:])
@pytest.mark.parametrize(
    ("kind", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_there_are_no_controllers_to_ask_for(
    client: WireClient, version: int, kind: int, code: ErrorCode
) -> None:
    response = client.call(DescribeClusterRequest(endpoint_type=kind), version, DescribeClusterResponse)
    assert (response.error_code, response.brokers) == (code, [])
    assert response.error_message == "this is a broker; ask for endpoints of type 1"
