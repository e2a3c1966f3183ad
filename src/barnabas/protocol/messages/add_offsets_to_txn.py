"""AddOffsetsToTxn (key 25), v0-4, flexible from v3."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import int16, int32, int64, string
from barnabas.protocol.schema import Message, request, response


@request(ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest(Message):
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


@response(ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse(Message):
    throttle_time_ms: int = int32()
    error_code: int = int16()
