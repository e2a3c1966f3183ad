"""ElectLeaders (key 43), v0-2, flexible from v2."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import INT32, array, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, request, response


class TopicPartitions(Struct):
    topic: str = string()
    partitions: list[int] = array(INT32)


@request(ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+")
class ElectLeadersRequest(Message):
    election_type: int = int8(versions="1+")
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable="0+")
    timeout_ms: int = int32(default=60000)


class PartitionResult(Struct):
    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class ReplicaElectionResult(Struct):
    topic: str = string()
    partition_result: list[PartitionResult] = array(PartitionResult)


@response(ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+")
class ElectLeadersResponse(Message):
    throttle_time_ms: int = int32()
    error_code: int = int16(versions="1+")
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)
