"""DescribeTopicPartitions (key 75), v0: like Metadata, in pages of so many partitions.

No topics named means all.  The cursor names the first partition of the next page.
"""

from barnabas.base.types import ZERO_UUID
from barnabas.broker.context import Context
from barnabas.broker.operations import ALL_ON_TOPIC
from barnabas.metadata.image import NO_LEADER, ClusterImage, PartitionImage
from barnabas.metadata.names import topic_name_fault
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

PARTITIONS_MAX = 2_000


def handle(request: DescribeTopicPartitionsRequest, ctx: Context) -> DescribeTopicPartitionsResponse:
    image = ctx.services.image
    names = sorted({topic.name for topic in request.topics} if request.topics else set(image.topics))
    first_partition = 0
    if request.cursor is not None:
        names = [name for name in names if name >= request.cursor.topic_name]
        if names and names[0] == request.cursor.topic_name:
            first_partition = max(request.cursor.partition_index, 0)
    left = min(max(request.response_partition_limit, 1), PARTITIONS_MAX)
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if left <= 0:
            return _page(topics, Cursor(topic_name=name, partition_index=0))
        described = _describe(name, first_partition, left, image)
        topics.append(described)
        end = first_partition + len(described.partitions)
        left -= len(described.partitions)
        known = image.topics.get(name)
        if known is not None and end < len(known.partitions):
            return _page(topics, Cursor(topic_name=name, partition_index=end))
        first_partition = 0
    return _page(topics, None)


def _page(
    topics: list[DescribeTopicPartitionsResponseTopic], next_cursor: Cursor | None
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=topics, next_cursor=next_cursor)


def _describe(name: str, first: int, count: int, image: ClusterImage) -> DescribeTopicPartitionsResponseTopic:
    topic = image.topics.get(name)
    if topic is None:
        invalid = topic_name_fault(name) is not None
        code = ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return DescribeTopicPartitionsResponseTopic(error_code=code, name=name, topic_id=ZERO_UUID)
    return DescribeTopicPartitionsResponseTopic(
        error_code=0,
        name=name,
        topic_id=topic.id,
        is_internal=topic.internal,
        topic_authorized_operations=ALL_ON_TOPIC,
        partitions=[
            _partition(index, state, image)
            for index, state in enumerate(topic.partitions[first : first + count], first)
        ],
    )


def _partition(
    index: int, state: PartitionImage, image: ClusterImage
) -> DescribeTopicPartitionsResponsePartition:
    alive = state.leader in image.brokers
    return DescribeTopicPartitionsResponsePartition(
        error_code=0 if alive else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=state.leader if alive else NO_LEADER,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        # The Java admin client reads these without asking whether they are null.
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=[
            node for node in state.replicas if node not in image.brokers or node in state.offline
        ],
    )
