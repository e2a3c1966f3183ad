"""AlterPartition (key 56), v0-3, flexible from v0."""

from barnabas.base.types import Uuid
from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import INT32, array, int8, int16, int32, int64, string, uuid
from barnabas.protocol.schema import Message, Struct, request, response


class BrokerState(Struct):
    broker_id: int = int32(versions="3+")
    broker_epoch: int = int64(versions="3+", default=-1)


class PartitionData(Struct):
    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: list[int] = array(INT32, versions="0-2")
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, versions="3+")
    leader_recovery_state: int = int8(versions="1+")
    partition_epoch: int = int32()


class TopicData(Struct):
    topic_name: str = string(versions="0-1", ignorable=True)
    topic_id: Uuid = uuid(versions="2+", ignorable=True)
    partitions: list[PartitionData] = array(PartitionData)


@request(ApiKey.ALTER_PARTITION, versions="0-3", flexible="0+")
class AlterPartitionRequest(Message):
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[TopicData] = array(TopicData)


class ResponsePartitionData(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(INT32)
    leader_recovery_state: int = int8(versions="1+", ignorable=True)
    partition_epoch: int = int32()


class ResponseTopicData(Struct):
    topic_name: str = string(versions="0-1", ignorable=True)
    topic_id: Uuid = uuid(versions="2+", ignorable=True)
    partitions: list[ResponsePartitionData] = array(ResponsePartitionData)


@response(ApiKey.ALTER_PARTITION, versions="0-3", flexible="0+")
class AlterPartitionResponse(Message):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[ResponseTopicData] = array(ResponseTopicData)
