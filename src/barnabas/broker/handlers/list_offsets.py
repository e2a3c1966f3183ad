"""ListOffsets (key 2), v0-11.

A time gives the first offset at or after it; special times: -1 latest (high watermark, or the last
stable offset for read_committed), -2 earliest, -3 the largest time (v7+), -4 earliest on local disk (v8+),
-5 last in tiered storage (v9+), -6 first not yet uploaded (v11+).  There is no tiered storage here.
v0 answers a list of segment starts; v4 adds epochs.  Later versions refuse a partition asked for twice.
"""

from collections import Counter

from barnabas.base.errors import BarnabasError
from barnabas.broker.context import Context
from barnabas.broker.error_codes import code_of
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.replication.partition import Partition

READ_COMMITTED = 1
LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
FIRST_VERSION_OF = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
CONSUMER = -1
NOTHING = (-1, -1)


def handle(request: ListOffsetsRequest, ctx: Context) -> ListOffsetsResponse:
    committed_only = request.isolation_level == READ_COMMITTED
    times = Counter(
        (topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions
    )
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _failed(asked, ErrorCode.INVALID_REQUEST)
                    if times[topic.name, asked.partition_index] > 1 and ctx.version > 0
                    else _look_up(topic.name, asked, committed_only, ctx)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _look_up(
    topic: str, asked: ListOffsetsPartition, committed_only: bool, ctx: Context
) -> ListOffsetsPartitionResponse:
    partition = ctx.services.partitions.get(topic, asked.partition_index)
    if partition is None:
        return _failed(asked, ctx.services.partitions.absence(topic, asked.partition_index))
    if asked.timestamp < LATEST and asked.timestamp != EARLIEST:
        first_version = FIRST_VERSION_OF.get(asked.timestamp)
        if first_version is None or ctx.version < first_version:
            return _failed(asked, ErrorCode.UNSUPPORTED_VERSION)
    try:
        partition.check_epoch(asked.current_leader_epoch)
        if ctx.version == 0:
            offsets = _segment_starts(partition, asked.timestamp, asked.max_num_offsets)
            return ListOffsetsPartitionResponse(
                partition_index=asked.partition_index, error_code=0, old_style_offsets=offsets
            )
        timestamp, offset = _find(partition, asked.timestamp, committed_only)
    except BarnabasError as error:
        return _failed(asked, code_of(error))
    epoch = _epoch_at(partition, asked.timestamp, offset) if ctx.version >= 4 else -1
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        error_code=0,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch,
    )


def _find(partition: Partition, timestamp: int, committed_only: bool) -> tuple[int, int]:
    """(timestamp, offset); -1 for the time where the question names none."""
    bound = partition.last_stable_offset if committed_only else partition.high_watermark
    log = partition.log
    if timestamp == LATEST:
        return -1, bound
    if timestamp in (EARLIEST, EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD):
        return -1, log.log_start_offset
    if timestamp == LATEST_TIERED:
        return NOTHING
    found = log.max_timestamp_offset() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    if found is None or found.offset >= bound:
        return NOTHING
    return found.timestamp, found.offset


def _epoch_at(partition: Partition, timestamp: int, offset: int) -> int:
    if offset < 0:
        return -1
    if timestamp == LATEST or offset == partition.log.log_end_offset:
        return partition.leader_epoch  # nothing is written there yet; what will be is of this epoch
    return partition.log.epoch_at(offset)


def _segment_starts(partition: Partition, timestamp: int, count: int) -> list[int]:
    """v0's answer: starts of segments, newest first, at most `count`."""
    starts = partition.log.segment_starts()
    if timestamp == EARLIEST:
        return [partition.log.log_start_offset][:count]
    if timestamp == LATEST:
        ends = [] if starts[-1] == partition.high_watermark else [partition.high_watermark]
        return [*ends, *reversed(starts)][:count]
    found = partition.log.offset_for_timestamp(timestamp)
    limit = found.offset if found else partition.high_watermark
    return [start for start in reversed(starts) if start <= limit][:count]


def _failed(asked: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)
