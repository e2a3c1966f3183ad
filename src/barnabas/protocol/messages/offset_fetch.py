"""OffsetFetch (key 9), v0-10, flexible from v6."""

from barnabas.base.types import Uuid
from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import INT32, array, boolean, int16, int32, int64, string, uuid
from barnabas.protocol.schema import Message, Struct, request, response


class OffsetFetchRequestTopic(Struct):
    name: str = string(versions="0-7")
    partition_indexes: list[int] = array(INT32, versions="0-7")


class OffsetFetchRequestTopics(Struct):
    name: str = string(versions="8-9", ignorable=True)
    topic_id: Uuid = uuid(versions="10+", ignorable=True)
    partition_indexes: list[int] = array(INT32, versions="8+")


class OffsetFetchRequestGroup(Struct):
    group_id: str = string(versions="8+")
    member_id: str | None = string(versions="9+", nullable="9+", default=None, ignorable=True)
    member_epoch: int = int32(versions="9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = array(
        OffsetFetchRequestTopics, versions="8+", nullable="8+"
    )


@request(ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+")
class OffsetFetchRequest(Message):
    group_id: str = string(versions="0-7")
    topics: list[OffsetFetchRequestTopic] | None = array(
        OffsetFetchRequestTopic, versions="0-7", nullable="2-7"
    )
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, versions="8+")
    require_stable: bool = boolean(versions="7+")


class OffsetFetchResponsePartition(Struct):
    partition_index: int = int32(versions="0-7")
    committed_offset: int = int64(versions="0-7")
    committed_leader_epoch: int = int32(versions="5-7", default=-1, ignorable=True)
    metadata: str | None = string(versions="0-7", nullable="0-7")
    error_code: int = int16(versions="0-7")


class OffsetFetchResponseTopic(Struct):
    name: str = string(versions="0-7")
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition, versions="0-7")


class OffsetFetchResponsePartitions(Struct):
    partition_index: int = int32(versions="8+")
    committed_offset: int = int64(versions="8+")
    committed_leader_epoch: int = int32(versions="8+", default=-1, ignorable=True)
    metadata: str | None = string(versions="8+", nullable="8+")
    error_code: int = int16(versions="8+")


class OffsetFetchResponseTopics(Struct):
    name: str = string(versions="8-9", ignorable=True)
    topic_id: Uuid = uuid(versions="10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions, versions="8+")


class OffsetFetchResponseGroup(Struct):
    group_id: str = string(versions="8+")
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics, versions="8+")
    error_code: int = int16(versions="8+")


@response(ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+")
class OffsetFetchResponse(Message):
    throttle_time_ms: int = int32(versions="3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, versions="0-7")
    error_code: int = int16(versions="2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, versions="8+")
