"""InitProducerId (key 22), v0-5: a number for an idempotent producer.

Not done: transactional ids, refused with COORDINATOR_NOT_AVAILABLE because FindCoordinator offers no
coordinator for them either.  v3+ may name the producer's current id and epoch to have the epoch raised.
"""

from barnabas.base.errors import BarnabasError
from barnabas.broker.context import Context
from barnabas.broker.error_codes import code_of
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


async def handle(request: InitProducerIdRequest, ctx: Context) -> InitProducerIdResponse:
    if request.transactional_id == "" or (request.producer_id == -1) != (request.producer_epoch == -1):
        return _failed(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _failed(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    try:
        producer_id = await ctx.services.producer_ids.next()
    except BarnabasError as error:
        return _failed(code_of(error))
    return InitProducerIdResponse(error_code=0, producer_id=producer_id, producer_epoch=0)


def _failed(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
