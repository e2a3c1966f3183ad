"""Metadata (key 3), v0-13: brokers, topics and partition leaders, as this listener's clients reach them.

v0 with no topics and v1+ with null ask for all; v4 says whether a missing topic may be created (before,
it always may); v10 topic ids, v12 look-up by id.  A topic created on the way is in the same answer; one
named twice is answered once.
"""

from collections.abc import Awaitable

from barnabas.base.errors import BarnabasError
from barnabas.base.types import ZERO_UUID
from barnabas.broker.context import Context
from barnabas.broker.error_codes import code_of
from barnabas.broker.operations import ALL_ON_CLUSTER, ALL_ON_TOPIC, NOT_ASKED
from barnabas.metadata.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage
from barnabas.metadata.names import topic_name_fault
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

FIRST_NULL_IS_ALL_VERSION = 1
FIRST_BY_ID_VERSION = 12


def handle(request: MetadataRequest, ctx: Context) -> MetadataResponse | Awaitable[MetadataResponse]:
    wanted = request.topics
    if wanted is None or (ctx.version < FIRST_NULL_IS_ALL_VERSION and not wanted):
        return _answer(request, ctx, [_found(topic, ctx) for topic in ctx.services.image.topics.values()])
    if ctx.version < FIRST_BY_ID_VERSION and any(t.name is None or t.topic_id != ZERO_UUID for t in wanted):
        return _answer(
            request,
            ctx,
            [MetadataResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=t.name or "") for t in wanted],
        )
    wanted = list({(topic.name, topic.topic_id): topic for topic in wanted}.values())
    missing = [topic.name for topic in wanted if topic.name is not None and _may_create(topic, request, ctx)]
    if missing:
        return _create_then_answer(request, wanted, missing, ctx)
    return _answer(request, ctx, [_look_up(topic, ctx) for topic in wanted])


def _may_create(topic: MetadataRequestTopic, request: MetadataRequest, ctx: Context) -> bool:
    return (
        topic.name is not None
        and topic.name not in ctx.services.image.topics
        and topic_name_fault(topic.name) is None
        and request.allow_auto_topic_creation
        and ctx.services.settings.boolean("auto.create.topics.enable")
    )


async def _create_then_answer(
    request: MetadataRequest, wanted: list[MetadataRequestTopic], missing: list[str], ctx: Context
) -> MetadataResponse:
    failed: dict[str, ErrorCode] = {}
    for name in dict.fromkeys(missing):
        try:
            await ctx.services.topics.ensure(name)
        except BarnabasError as error:
            failed[name] = code_of(error)
    topics = [_look_up(topic, ctx) for topic in wanted]
    for topic in topics:
        if topic.name in failed:
            topic.error_code = failed[topic.name]
    return _answer(request, ctx, topics)


def _look_up(wanted: MetadataRequestTopic, ctx: Context) -> MetadataResponseTopic:
    image = ctx.services.image
    if wanted.name is None:
        by_id = image.topics_by_id.get(wanted.topic_id)
        if by_id is None:
            return MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=wanted.topic_id
            )
        return _found(by_id, ctx)
    topic = image.topics.get(wanted.name)
    if topic is not None:
        return _found(topic, ctx)
    fault = topic_name_fault(wanted.name)
    code = ErrorCode.INVALID_TOPIC_EXCEPTION if fault else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return MetadataResponseTopic(error_code=code, name=wanted.name, topic_id=ZERO_UUID)


def _found(topic: TopicImage, ctx: Context) -> MetadataResponseTopic:
    image = ctx.services.image
    return MetadataResponseTopic(
        error_code=0,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.internal,
        partitions=[_partition(index, state, image) for index, state in enumerate(topic.partitions)],
    )


def _partition(index: int, state: PartitionImage, image: ClusterImage) -> MetadataResponsePartition:
    alive = state.leader in image.brokers
    return MetadataResponsePartition(
        error_code=0 if alive else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=state.leader if alive else NO_LEADER,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        offline_replicas=[
            node for node in state.replicas if node not in image.brokers or node in state.offline
        ],
    )


def _answer(request: MetadataRequest, ctx: Context, topics: list[MetadataResponseTopic]) -> MetadataResponse:
    image = ctx.services.image
    listener = ctx.connection.listener
    brokers = [
        MetadataResponseBroker(node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
        for broker in image.brokers.values()
        if (endpoint := broker.endpoints.get(listener)) is not None
    ]
    if request.include_topic_authorized_operations:
        for topic in topics:
            if not topic.error_code:
                topic.topic_authorized_operations = ALL_ON_TOPIC
    asked = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=brokers,
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
        cluster_authorized_operations=ALL_ON_CLUSTER if asked else NOT_ASKED,
    )
