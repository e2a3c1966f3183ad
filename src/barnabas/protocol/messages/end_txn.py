"""EndTxn (key 26), v0-5, flexible from v3."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import boolean, int16, int32, int64, string
from barnabas.protocol.schema import Message, request, response


@request(ApiKey.END_TXN, versions="0-5", flexible="3+")
class EndTxnRequest(Message):
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


@response(ApiKey.END_TXN, versions="0-5", flexible="3+")
class EndTxnResponse(Message):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(versions="5+", default=-1, ignorable=True)
    producer_epoch: int = int16(versions="5+", default=-1, ignorable=True)
