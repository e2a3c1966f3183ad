"""FindCoordinator (key 10), v0-6: which broker looks after a group or a transactional id.

v0 knows groups only; v1 adds key types; v4 asks for several keys at once.  The first look-up creates
`__consumer_offsets`, or `__transaction_state`.  Not done: share groups (key type 2), refused as
INVALID_REQUEST.
"""

from barnabas.base.errors import BarnabasError
from barnabas.broker.context import Context
from barnabas.broker.error_codes import code_of
from barnabas.coordinator.hashing import partition_of
from barnabas.metadata.names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

TOPICS = {0: GROUP_METADATA_TOPIC, 1: TRANSACTION_STATE_TOPIC}  # by type of key
FIRST_BATCHED_VERSION = 4


async def handle(request: FindCoordinatorRequest, ctx: Context) -> FindCoordinatorResponse:
    if ctx.version >= FIRST_BATCHED_VERSION:
        found = [await _find(key, request.key_type, ctx) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)
    one = await _find(request.key, request.key_type, ctx)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


async def _find(key: str, key_type: int, ctx: Context) -> Coordinator:
    name = TOPICS.get(key_type)
    if name is None:
        return _none(key, ErrorCode.INVALID_REQUEST, f"there is no coordinator for keys of type {key_type}")
    services = ctx.services
    topic = services.image.topics.get(name)
    if topic is None:
        try:
            topic = await services.topics.ensure(name)
        except BarnabasError as error:
            return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{code_of(error).name}: {error}")
    leader = topic.partitions[partition_of(key, len(topic.partitions))].leader
    broker = services.image.brokers.get(leader)
    endpoint = broker.endpoints.get(ctx.connection.listener) if broker else None
    if endpoint is None:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "the coordinator's broker is not up")
    return Coordinator(
        key=key, node_id=leader, host=endpoint.host, port=endpoint.port, error_code=0, error_message=""
    )


def _none(key: str, code: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)
