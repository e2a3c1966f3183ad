"""OffsetDelete (key 47), v0, never flexible."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import array, int16, int32, string
from barnabas.protocol.schema import Message, Struct, request, response


class OffsetDeleteRequestPartition(Struct):
    partition_index: int = int32()


class OffsetDeleteRequestTopic(Struct):
    name: str = string()
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition)


@request(ApiKey.OFFSET_DELETE, versions="0", flexible="none")
class OffsetDeleteRequest(Message):
    group_id: str = string()
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic)


class OffsetDeleteResponsePartition(Struct):
    partition_index: int = int32()
    error_code: int = int16()


class OffsetDeleteResponseTopic(Struct):
    name: str = string()
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition)


@response(ApiKey.OFFSET_DELETE, versions="0", flexible="none")
class OffsetDeleteResponse(Message):
    error_code: int = int16()
    throttle_time_ms: int = int32()
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic)
