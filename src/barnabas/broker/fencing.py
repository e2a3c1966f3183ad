"""Transaction errors as a client of a given version understands them."""

from barnabas.protocol.codes import ErrorCode

__all__ = ["fenced_code", "old_verification_code", "produce_code"]

_FIRST_ABORTABLE_VERSION = 11  # of Produce
_FIRST_CONCURRENT_VERSION = 12
_NOT_NOW = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


def fenced_code(error: ErrorCode, version: int, first_version: int) -> ErrorCode:
    """PRODUCER_FENCED is known to clients from `first_version` of the API on."""
    if error is ErrorCode.PRODUCER_FENCED and version < first_version:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def old_verification_code(error: ErrorCode) -> ErrorCode:
    """TRANSACTION_ABORTABLE is new; before, a partition outside the transaction was INVALID_TXN_STATE."""
    return ErrorCode.INVALID_TXN_STATE if error is ErrorCode.TRANSACTION_ABORTABLE else error


def produce_code(error: ErrorCode, version: int) -> ErrorCode:
    """What a producer is told when its coordinator does not vouch for a batch; `version` is that of Produce.

    Producers never heard of a coordinator in an answer to Produce: what passes is NOT_ENOUGH_REPLICAS,
    which all of them send again.  Those of transactions V2 know that their last transaction may be ending.
    """
    if error is ErrorCode.CONCURRENT_TRANSACTIONS and version >= _FIRST_CONCURRENT_VERSION:
        return error
    if error in _NOT_NOW:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error if version >= _FIRST_ABORTABLE_VERSION else old_verification_code(error)
