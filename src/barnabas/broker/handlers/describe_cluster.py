"""DescribeCluster (key 60), v0-2: the brokers and the controller.

v1 asks for brokers or controllers: there is no separate controller quorum, so the latter is refused.
v2 can list fenced brokers: there are none.
"""

from barnabas.broker.context import Context
from barnabas.broker.operations import ALL_ON_CLUSTER, NOT_ASKED
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1
CONTROLLERS = 2


def handle(request: DescribeClusterRequest, ctx: Context) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        known = request.endpoint_type == CONTROLLERS
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message="this is a broker; ask for endpoints of type 1",
            endpoint_type=BROKERS,
        )
    image = ctx.services.image
    listener = ctx.connection.listener
    return DescribeClusterResponse(
        error_code=0,
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack
            )
            for broker in image.brokers.values()
            if (endpoint := broker.endpoints.get(listener)) is not None
        ],
        cluster_authorized_operations=ALL_ON_CLUSTER
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )
