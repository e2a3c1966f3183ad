"""StopReplica (key 5), v0-4, flexible from v2."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import INT32, array, boolean, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, request, response


class StopReplicaPartitionV0(Struct):
    topic_name: str = string(versions="0")
    partition_index: int = int32(versions="0")


class StopReplicaTopicV1(Struct):
    name: str = string(versions="1-2")
    partition_indexes: list[int] = array(INT32, versions="1-2")


class StopReplicaPartitionState(Struct):
    partition_index: int = int32(versions="3+")
    leader_epoch: int = int32(versions="3+", default=-1)
    delete_partition: bool = boolean(versions="3+")


class StopReplicaTopicState(Struct):
    topic_name: str = string(versions="3+")
    partition_states: list[StopReplicaPartitionState] = array(StopReplicaPartitionState, versions="3+")


@request(ApiKey.STOP_REPLICA, versions="0-4", flexible="2+")
class StopReplicaRequest(Message):
    controller_id: int = int32()
    is_k_raft_controller: bool = boolean(versions="4+")
    controller_epoch: int = int32()
    broker_epoch: int = int64(versions="1+", default=-1, ignorable=True)
    delete_partitions: bool = boolean(versions="0-2")
    ungrouped_partitions: list[StopReplicaPartitionV0] = array(StopReplicaPartitionV0, versions="0")
    topics: list[StopReplicaTopicV1] = array(StopReplicaTopicV1, versions="1-2")
    topic_states: list[StopReplicaTopicState] = array(StopReplicaTopicState, versions="3+")


class StopReplicaPartitionError(Struct):
    topic_name: str = string()
    partition_index: int = int32()
    error_code: int = int16()


@response(ApiKey.STOP_REPLICA, versions="0-4", flexible="2+")
class StopReplicaResponse(Message):
    error_code: int = int16()
    partition_errors: list[StopReplicaPartitionError] = array(StopReplicaPartitionError)
