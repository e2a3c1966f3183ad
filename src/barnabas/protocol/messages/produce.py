"""Produce (key 0), v0-13, flexible from v9."""

from barnabas.base.types import Uuid
from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import NullableBulk, array, int16, int32, int64, records, string, struct, uuid
from barnabas.protocol.schema import Message, Struct, request, response


class PartitionProduceData(Struct):
    index: int = int32()
    records: NullableBulk = records(nullable="0+")


class TopicProduceData(Struct):
    name: str = string(versions="0-12", ignorable=True)
    topic_id: Uuid = uuid(versions="13+", ignorable=True)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


@request(ApiKey.PRODUCE, versions="0-13", flexible="9+")
class ProduceRequest(Message):
    transactional_id: str | None = string(versions="3+", nullable="3+", default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)


class BatchIndexAndErrorMessage(Struct):
    batch_index: int = int32(versions="8+")
    batch_index_error_message: str | None = string(versions="8+", nullable="8+", default=None)


class LeaderIdAndEpoch(Struct):
    leader_id: int = int32(versions="10+", default=-1)
    leader_epoch: int = int32(versions="10+", default=-1)


class PartitionProduceResponse(Struct):
    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64(versions="2+", default=-1, ignorable=True)
    log_start_offset: int = int64(versions="5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(
        BatchIndexAndErrorMessage, versions="8+", ignorable=True
    )
    error_message: str | None = string(versions="8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch | None = struct(LeaderIdAndEpoch, versions="10+", tag=0)


class TopicProduceResponse(Struct):
    name: str = string(versions="0-12", ignorable=True)
    topic_id: Uuid = uuid(versions="13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


class NodeEndpoint(Struct):
    node_id: int = int32(versions="10+")
    host: str = string(versions="10+")
    port: int = int32(versions="10+")
    rack: str | None = string(versions="10+", nullable="10+", default=None)


@response(ApiKey.PRODUCE, versions="0-13", flexible="9+")
class ProduceResponse(Message):
    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="10+", tag=0)
