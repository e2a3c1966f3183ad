"""DeleteTopics (key 20), v0-6: by name, from v6 also by id; gone at once, from disk soon after."""

from barnabas.base.errors import BarnabasError
from barnabas.base.types import ZERO_UUID, Uuid
from barnabas.broker.context import Context
from barnabas.broker.error_codes import code_of
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

FIRST_DISABLED_CODE_VERSION = 3
FIRST_TOPIC_ID_VERSION = 6


async def handle(request: DeleteTopicsRequest, ctx: Context) -> DeleteTopicsResponse:
    if ctx.version >= FIRST_TOPIC_ID_VERSION:
        wanted = request.topics
    else:
        wanted = [DeleteTopicState(name=name) for name in request.topic_names]
    return DeleteTopicsResponse(responses=[await _delete(topic, ctx) for topic in wanted])


async def _delete(wanted: DeleteTopicState, ctx: Context) -> DeletableTopicResult:
    services = ctx.services
    if not services.settings.boolean("delete.topic.enable"):
        old = ctx.version < FIRST_DISABLED_CODE_VERSION
        code = ErrorCode.INVALID_REQUEST if old else ErrorCode.TOPIC_DELETION_DISABLED
        return _failed(wanted.name, wanted.topic_id, code, "delete.topic.enable is false")
    if (wanted.name is not None) == (wanted.topic_id != ZERO_UUID):
        message = "give either the name or the id"
        return _failed(wanted.name, wanted.topic_id, ErrorCode.INVALID_REQUEST, message)
    if wanted.name is None:
        topic = services.image.topics_by_id.get(wanted.topic_id)
        if topic is None:
            return _failed(None, wanted.topic_id, ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic of that id")
    else:
        topic = services.image.topics.get(wanted.name)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return _failed(wanted.name, ZERO_UUID, code, "there is no topic of that name")
    try:
        await services.topics.delete(topic.name)
    except BarnabasError as error:
        return _failed(topic.name, topic.id, code_of(error), str(error))
    return DeletableTopicResult(name=topic.name, topic_id=topic.id, error_code=0)


def _failed(name: str | None, topic_id: Uuid, code: ErrorCode, message: str) -> DeletableTopicResult:
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=message)
