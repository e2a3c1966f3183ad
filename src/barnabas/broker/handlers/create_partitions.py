"""CreatePartitions (key 37), v0-3: more partitions for a topic; fewer are never possible."""

from collections import Counter

from barnabas.base.errors import BarnabasError
from barnabas.broker.context import Context
from barnabas.broker.error_codes import code_of
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def handle(request: CreatePartitionsRequest, ctx: Context) -> CreatePartitionsResponse:
    times = Counter(topic.name for topic in request.topics)
    results = [
        await _enlarge(topic, request.validate_only, ctx)
        for topic in request.topics
        if times[topic.name] == 1
    ]
    results += [
        CreatePartitionsTopicResult(
            name=name,
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="the request names the topic more than once",
        )
        for name, count in times.items()
        if count > 1
    ]
    return CreatePartitionsResponse(results=results)


async def _enlarge(
    topic: CreatePartitionsTopic, validate_only: bool, ctx: Context
) -> CreatePartitionsTopicResult:
    assignment = None if topic.assignments is None else [each.broker_ids for each in topic.assignments]
    try:
        await ctx.services.topics.add_partitions(
            topic.name, topic.count, assignment, validate_only=validate_only
        )
    except BarnabasError as error:
        return CreatePartitionsTopicResult(
            name=topic.name, error_code=code_of(error), error_message=str(error)
        )
    return CreatePartitionsTopicResult(name=topic.name, error_code=0)
