"""DeleteTopics (key 20), v0-6, flexible from v4."""

from barnabas.base.types import Uuid
from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import STRING, array, int16, int32, string, uuid
from barnabas.protocol.schema import Message, Struct, request, response


class DeleteTopicState(Struct):
    name: str | None = string(versions="6+", nullable="6+", default=None)
    topic_id: Uuid = uuid(versions="6+")


@request(ApiKey.DELETE_TOPICS, versions="0-6", flexible="4+")
class DeleteTopicsRequest(Message):
    topics: list[DeleteTopicState] = array(DeleteTopicState, versions="6+")
    topic_names: list[str] = array(STRING, versions="0-5", ignorable=True)
    timeout_ms: int = int32()


class DeletableTopicResult(Struct):
    name: str | None = string(nullable="6+")
    topic_id: Uuid = uuid(versions="6+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)


@response(ApiKey.DELETE_TOPICS, versions="0-6", flexible="4+")
class DeleteTopicsResponse(Message):
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
