"""CreateTopics (key 19), v0-7, flexible from v5."""

from barnabas.base.types import Uuid
from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import INT32, array, boolean, int8, int16, int32, string, uuid
from barnabas.protocol.schema import Message, Struct, request, response


class CreatableReplicaAssignment(Struct):
    partition_index: int = int32()
    broker_ids: list[int] = array(INT32)


class CreatableTopicConfig(Struct):
    name: str = string()
    value: str | None = string(nullable="0+")


class CreatableTopic(Struct):
    name: str = string()
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


@request(ApiKey.CREATE_TOPICS, versions="0-7", flexible="5+")
class CreateTopicsRequest(Message):
    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean(versions="1+")


class CreatableTopicConfigs(Struct):
    name: str = string(versions="5+")
    value: str | None = string(versions="5+", nullable="5+")
    read_only: bool = boolean(versions="5+")
    config_source: int = int8(versions="5+", default=-1, ignorable=True)
    is_sensitive: bool = boolean(versions="5+")


class CreatableTopicResult(Struct):
    name: str = string()
    topic_id: Uuid = uuid(versions="7+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(versions="1+", nullable="1+", ignorable=True)
    topic_config_error_code: int = int16(versions="5+", tag=0, ignorable=True)
    num_partitions: int = int32(versions="5+", default=-1, ignorable=True)
    replication_factor: int = int16(versions="5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array(
        CreatableTopicConfigs, versions="5+", nullable="5+", ignorable=True
    )


@response(ApiKey.CREATE_TOPICS, versions="0-7", flexible="5+")
class CreateTopicsResponse(Message):
    throttle_time_ms: int = int32(versions="2+", ignorable=True)
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)
