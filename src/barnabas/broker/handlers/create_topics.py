"""CreateTopics (key 19), v0-7: each topic by itself, created or refused with a reason.

A count of -1 is the broker's default.  v1 can check without creating; v5 answers with the topic's settings,
v7 with its id.
"""

from collections import Counter

from barnabas.base.errors import BarnabasError, ConfigFault
from barnabas.broker.context import Context
from barnabas.broker.error_codes import code_of
from barnabas.broker.topics import DEFAULT_COUNT
from barnabas.controller.changes import InvalidAssignment
from barnabas.controller.topics import NewTopic
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


async def handle(request: CreateTopicsRequest, ctx: Context) -> CreateTopicsResponse:
    times = Counter(topic.name for topic in request.topics)
    results = [
        await _create(topic, request.validate_only, ctx) for topic in request.topics if times[topic.name] == 1
    ]
    results += [
        _failed(name, ErrorCode.INVALID_REQUEST, "the request names the topic more than once")
        for name, count in times.items()
        if count > 1
    ]
    return CreateTopicsResponse(topics=results)


async def _create(wanted: CreatableTopic, validate_only: bool, ctx: Context) -> CreatableTopicResult:
    if wanted.assignments and (wanted.num_partitions, wanted.replication_factor) != (
        DEFAULT_COUNT,
        DEFAULT_COUNT,
    ):
        return _failed(wanted.name, ErrorCode.INVALID_REQUEST, "give an assignment or counts of -1, not both")
    try:
        topic = await ctx.services.topics.create(_new_topic(wanted), validate_only=validate_only)
    except BarnabasError as error:
        return _failed(wanted.name, code_of(error), str(error))
    return CreatableTopicResult(
        name=topic.name,
        topic_id=bytes(16) if validate_only else topic.id,
        error_code=0,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=_configs(wanted, ctx),
    )


def _new_topic(wanted: CreatableTopic) -> NewTopic:
    config: dict[str, str] = {}
    for setting in wanted.configs:
        if setting.value is None:
            raise ConfigFault(f"{setting.name}: a value is needed")
        config[setting.name] = setting.value
    if not wanted.assignments:
        return NewTopic(wanted.name, wanted.num_partitions, wanted.replication_factor, config=config)
    by_index = {each.partition_index: each.broker_ids for each in wanted.assignments}
    if sorted(by_index) != list(range(len(wanted.assignments))):
        raise InvalidAssignment("the assignment must name the partitions from 0 without a gap, each once")
    return NewTopic(wanted.name, assignment=[by_index[index] for index in sorted(by_index)], config=config)


def _configs(wanted: CreatableTopic, ctx: Context) -> list[CreatableTopicConfigs]:
    given = {setting.name: setting.value or "" for setting in wanted.configs}
    return [
        CreatableTopicConfigs(
            name=entry.key.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.key.sensitive,
        )
        for entry in ctx.services.configs.describe_overrides(given)
    ]


def _failed(name: str, code: ErrorCode, message: str) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message, configs=[])
