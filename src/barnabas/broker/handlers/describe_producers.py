"""DescribeProducers (key 61), v0: the idempotent and transactional producers a partition remembers."""

from barnabas.broker.context import Context
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def handle(request: DescribeProducersRequest, ctx: Context) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_describe(topic.name, index, ctx) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _describe(topic: str, index: int, ctx: Context) -> PartitionResponse:
    partition = ctx.services.partitions.get(topic, index)
    if partition is None:
        return PartitionResponse(
            partition_index=index,
            error_code=ctx.services.partitions.absence(topic, index),
            error_message="there is no such partition here",
        )
    return PartitionResponse(
        partition_index=index,
        error_code=0,
        active_producers=[
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.transaction_first_offset,
            )
            for producer in partition.log.producers.producers.values()
        ],
    )
