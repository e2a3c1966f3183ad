"""InitProducerId (key 22), v0-5: an id for an idempotent producer, id and epoch for a transactional id.

A transactional id gets its epoch raised, which fences every older producer of it; an open transaction is
aborted first, and the producer told CONCURRENT_TRANSACTIONS meanwhile.  v3+ may name the producer's current
id and epoch to go on after an error (KIP-360).  Before v4 a fenced producer is told INVALID_PRODUCER_EPOCH.
"""

from collections.abc import Awaitable

from barnabas.base.errors import BarnabasError
from barnabas.broker.context import Context
from barnabas.broker.error_codes import code_of
from barnabas.broker.fencing import fenced_code
from barnabas.coordinator.ports import Producer
from barnabas.coordinator.txn_calls import InitResult
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FIRST_FENCED_VERSION = 4

Answer = InitProducerIdResponse | Awaitable[InitProducerIdResponse] | None


def handle(request: InitProducerIdRequest, ctx: Context) -> Answer:
    if request.transactional_id == "" or (request.producer_id == -1) != (request.producer_epoch == -1):
        return _failed(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        return _next_id(ctx)
    expected = None if request.producer_id == -1 else Producer(request.producer_id, request.producer_epoch)

    def reply(result: InitResult) -> None:
        error = fenced_code(result.error, ctx.version, FIRST_FENCED_VERSION)
        ctx.reply(
            InitProducerIdResponse(
                error_code=error, producer_id=result.producer_id, producer_epoch=result.producer_epoch
            )
        )

    ctx.services.transactions.init_producer(
        request.transactional_id, request.transaction_timeout_ms, expected, reply
    )
    return None


async def _next_id(ctx: Context) -> InitProducerIdResponse:
    try:
        producer_id = await ctx.services.producer_ids.next()
    except BarnabasError as error:
        return _failed(code_of(error))
    return InitProducerIdResponse(error_code=0, producer_id=producer_id, producer_epoch=0)


def _failed(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
