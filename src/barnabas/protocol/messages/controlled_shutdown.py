"""ControlledShutdown (key 7), v0-3, flexible from v3."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import array, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, request, response


@request(ApiKey.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+")
class ControlledShutdownRequest(Message):
    broker_id: int = int32()
    broker_epoch: int = int64(versions="2+", default=-1, ignorable=True)


class RemainingPartition(Struct):
    topic_name: str = string()
    partition_index: int = int32()


@response(ApiKey.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+")
class ControlledShutdownResponse(Message):
    error_code: int = int16()
    remaining_partitions: list[RemainingPartition] = array(RemainingPartition)
