"""FindCoordinator (key 10), v0-6, flexible from v3."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import STRING, array, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, request, response


@request(ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+")
class FindCoordinatorRequest(Message):
    key: str = string(versions="0-3")
    key_type: int = int8(versions="1+")
    coordinator_keys: list[str] = array(STRING, versions="4+")


class Coordinator(Struct):
    key: str = string(versions="4+")
    node_id: int = int32(versions="4+")
    host: str = string(versions="4+")
    port: int = int32(versions="4+")
    error_code: int = int16(versions="4+")
    error_message: str | None = string(versions="4+", nullable="4+", ignorable=True)


@response(ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+")
class FindCoordinatorResponse(Message):
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16(versions="0-3")
    error_message: str | None = string(versions="1-3", nullable="1-3", ignorable=True)
    node_id: int = int32(versions="0-3")
    host: str = string(versions="0-3")
    port: int = int32(versions="0-3")
    coordinators: list[Coordinator] = array(Coordinator, versions="4+")
