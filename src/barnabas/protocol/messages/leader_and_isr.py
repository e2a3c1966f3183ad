"""LeaderAndIsr (key 4), v0-7, flexible from v4."""

from barnabas.base.types import Uuid
from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import INT32, array, boolean, int8, int16, int32, int64, string, uuid
from barnabas.protocol.schema import Message, Struct, request, response


class LeaderAndIsrPartitionState(Struct):
    topic_name: str = string(versions="0-1", ignorable=True)
    partition_index: int = int32()
    controller_epoch: int = int32()
    leader: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(INT32)
    partition_epoch: int = int32()
    replicas: list[int] = array(INT32)
    adding_replicas: list[int] = array(INT32, versions="3+", ignorable=True)
    removing_replicas: list[int] = array(INT32, versions="3+", ignorable=True)
    is_new: bool = boolean(versions="1+", ignorable=True)
    leader_recovery_state: int = int8(versions="6+")


class LeaderAndIsrTopicState(Struct):
    topic_name: str = string(versions="2+")
    topic_id: Uuid = uuid(versions="5+", ignorable=True)
    partition_states: list[LeaderAndIsrPartitionState] = array(LeaderAndIsrPartitionState, versions="2+")


class LeaderAndIsrLiveLeader(Struct):
    broker_id: int = int32()
    host_name: str = string()
    port: int = int32()


@request(ApiKey.LEADER_AND_ISR, versions="0-7", flexible="4+")
class LeaderAndIsrRequest(Message):
    controller_id: int = int32()
    is_k_raft_controller: bool = boolean(versions="7+")
    controller_epoch: int = int32()
    broker_epoch: int = int64(versions="2+", default=-1, ignorable=True)
    type: int = int8(versions="5+")
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = array(
        LeaderAndIsrPartitionState, versions="0-1"
    )
    topic_states: list[LeaderAndIsrTopicState] = array(LeaderAndIsrTopicState, versions="2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = array(LeaderAndIsrLiveLeader)


class LeaderAndIsrPartitionError(Struct):
    topic_name: str = string(versions="0-4", ignorable=True)
    partition_index: int = int32()
    error_code: int = int16()


class LeaderAndIsrTopicError(Struct):
    topic_id: Uuid = uuid(versions="5+")
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError, versions="5+")


@response(ApiKey.LEADER_AND_ISR, versions="0-7", flexible="4+")
class LeaderAndIsrResponse(Message):
    error_code: int = int16()
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError, versions="0-4")
    topics: list[LeaderAndIsrTopicError] = array(LeaderAndIsrTopicError, versions="5+")
