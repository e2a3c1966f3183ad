"""EndTxn (key 26), v0-4: commits or aborts the producer's transaction.

Answered when the decision is durable; the markers follow.  A repeated call gets the same answer, one that
says the opposite INVALID_TXN_STATE, one during the end CONCURRENT_TRANSACTIONS.  Before v2 a fenced producer
is told INVALID_PRODUCER_EPOCH.  Not done: v5, which raises the epoch (transactions of version 2).
"""

from barnabas.broker.context import Context
from barnabas.broker.fencing import fenced_code
from barnabas.coordinator.ports import Producer
from barnabas.coordinator.txn_calls import InitResult
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

FIRST_FENCED_VERSION = 2


def handle(request: EndTxnRequest, ctx: Context) -> None:
    def reply(result: InitResult) -> None:
        error = fenced_code(result.error, ctx.version, FIRST_FENCED_VERSION)
        ctx.reply(EndTxnResponse(error_code=error))

    ctx.services.transactions.end(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        request.committed,
        reply,
    )
