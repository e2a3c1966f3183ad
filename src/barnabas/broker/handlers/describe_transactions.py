"""DescribeTransactions (key 65), v0: state, producer and partitions of transactional ids."""

from barnabas.broker.context import Context
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


def handle(request: DescribeTransactionsRequest, ctx: Context) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            _describe(transactional_id, ctx) for transactional_id in request.transactional_ids
        ]
    )


def _describe(transactional_id: str, ctx: Context) -> TransactionState:
    found = ctx.services.transactions.describe(transactional_id)
    topics: dict[str, TopicData] = {}
    for topic, partition in found.partitions:
        topics.setdefault(topic, TopicData(topic=topic)).partitions.append(partition)
    return TransactionState(
        error_code=found.error,
        transactional_id=transactional_id,
        transaction_state=found.state,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=list(topics.values()),
    )
