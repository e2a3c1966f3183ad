"""EndTxn (key 26), v0-5: commits or aborts the producer's transaction.

Answered when the decision is durable; the markers follow.  A repeated call gets the same answer, one that
says the opposite INVALID_TXN_STATE, one during the end CONCURRENT_TRANSACTIONS.  Before v2 a fenced producer
is told INVALID_PRODUCER_EPOCH.  v5 raises the epoch with every end and tells the new one (KIP-890); it may
abort what was never begun.
"""

from barnabas.broker.context import Context
from barnabas.broker.fencing import fenced_code
from barnabas.coordinator import txn_ending
from barnabas.coordinator.ports import Producer
from barnabas.coordinator.txn_calls import InitResult
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

FIRST_FENCED_VERSION = 2
FIRST_BUMPING_VERSION = 5


def handle(request: EndTxnRequest, ctx: Context) -> None:
    bumps = ctx.version >= FIRST_BUMPING_VERSION

    def reply(result: InitResult) -> None:
        error = fenced_code(result.error, ctx.version, FIRST_FENCED_VERSION)
        told = EndTxnResponse(error_code=error)
        if bumps:
            told.producer_id, told.producer_epoch = result.producer_id, result.producer_epoch
        ctx.reply(told)

    ctx.services.transactions.end(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        request.committed,
        reply,
        version=txn_ending.FIRST_BUMPING_VERSION if bumps else 0,
    )
