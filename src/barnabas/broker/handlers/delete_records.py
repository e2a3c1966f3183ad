"""DeleteRecords (key 21), v0-2: moves the start of a partition up to an offset; -1 is the high watermark."""

from barnabas.base.errors import BarnabasError
from barnabas.broker.context import Context
from barnabas.broker.error_codes import code_of
from barnabas.metadata.names import is_internal
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


def handle(request: DeleteRecordsRequest, ctx: Context) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name, partitions=[_delete(topic.name, asked, ctx) for asked in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _delete(topic: str, asked: DeleteRecordsPartition, ctx: Context) -> DeleteRecordsPartitionResult:
    partition = ctx.services.partitions.get(topic, asked.partition_index)
    if partition is None:
        return _failed(asked, ctx.services.partitions.absence(topic, asked.partition_index))
    if is_internal(topic):
        return _failed(asked, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if not partition.log.config.delete:
        return _failed(asked, ErrorCode.POLICY_VIOLATION)
    try:
        low_watermark = partition.delete_records_before(asked.offset)
    except BarnabasError as error:
        return _failed(asked, code_of(error))
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=low_watermark, error_code=0
    )


def _failed(asked: DeleteRecordsPartition, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=-1, error_code=code
    )
