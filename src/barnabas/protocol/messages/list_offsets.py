"""ListOffsets (key 2), v0-11, flexible from v6."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import INT64, array, int8, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, request, response


class ListOffsetsPartition(Struct):
    partition_index: int = int32()
    current_leader_epoch: int = int32(versions="4+", default=-1, ignorable=True)
    timestamp: int = int64()
    max_num_offsets: int = int32(versions="0", default=1)


class ListOffsetsTopic(Struct):
    name: str = string()
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


@request(ApiKey.LIST_OFFSETS, versions="0-11", flexible="6+")
class ListOffsetsRequest(Message):
    replica_id: int = int32()
    isolation_level: int = int8(versions="2+")
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32(versions="10+", ignorable=True)


class ListOffsetsPartitionResponse(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    old_style_offsets: list[int] = array(INT64, versions="0")
    timestamp: int = int64(versions="1+", default=-1)
    offset: int = int64(versions="1+", default=-1)
    leader_epoch: int = int32(versions="4+", default=-1)


class ListOffsetsTopicResponse(Struct):
    name: str = string()
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


@response(ApiKey.LIST_OFFSETS, versions="0-11", flexible="6+")
class ListOffsetsResponse(Message):
    throttle_time_ms: int = int32(versions="2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)
