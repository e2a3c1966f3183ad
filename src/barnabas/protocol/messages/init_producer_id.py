"""InitProducerId (key 22), v0-5, flexible from v2."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import int16, int32, int64, string
from barnabas.protocol.schema import Message, request, response


@request(ApiKey.INIT_PRODUCER_ID, versions="0-5", flexible="2+")
class InitProducerIdRequest(Message):
    transactional_id: str | None = string(nullable="0+")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(versions="3+", default=-1)
    producer_epoch: int = int16(versions="3+", default=-1)


@response(ApiKey.INIT_PRODUCER_ID, versions="0-5", flexible="2+")
class InitProducerIdResponse(Message):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
