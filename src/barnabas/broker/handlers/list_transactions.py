"""ListTransactions (key 66), v0-2: transactional ids by state and producer, v1 also by age, v2 by pattern.

Names of states that do not exist are given back.  A pattern is a regular expression that the whole id must
match; one that cannot be compiled, or whose search could take very long, is INVALID_REGULAR_EXPRESSION.
"""

import re
from collections.abc import Callable

from barnabas.broker.context import Context
from barnabas.coordinator.txn_calls import TransactionFilter
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

PATTERN_LENGTH_MAX = 256
REPEATS_MAX = 3
# What our engine searches by trying: a repeat of a group, references back, looking around.
_COSTLY = re.compile(r"\)[*+{]|\\[1-9]|\(\?[^:]")
_REPEAT = re.compile(r"(?<!\\)(?:[*+]|\{\d*,\d*\})")


def handle(request: ListTransactionsRequest, ctx: Context) -> ListTransactionsResponse:
    matches: Callable[[str], bool] | None = None
    if request.transactional_id_pattern:
        matches = _matcher(request.transactional_id_pattern)
        if matches is None:
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    found = ctx.services.transactions.list_transactions(
        TransactionFilter(
            frozenset(request.state_filters),
            frozenset(request.producer_id_filters),
            request.duration_filter,
            matches,
        )
    )
    return ListTransactionsResponse(
        error_code=found.error,
        unknown_state_filters=found.unknown_states,
        transaction_states=[
            TransactionState(
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                transaction_state=each.state.text,
            )
            for each in found.transactions
        ],
    )


def _matcher(pattern: str) -> Callable[[str], bool] | None:
    """Whether an id matches; None for a pattern that is wrong or too costly for the event loop."""
    if len(pattern) > PATTERN_LENGTH_MAX or _COSTLY.search(pattern):
        return None
    if len(_REPEAT.findall(pattern)) > REPEATS_MAX:
        return None
    try:
        compiled = re.compile(pattern)
    except re.error:
        return None
    return lambda text: compiled.fullmatch(text) is not None
