"""barnabas.broker.fencing: one error, as each version knows it."""

import pytest

from barnabas.broker.fencing import fenced_code, old_verification_code, produce_code
from barnabas.protocol.codes import ErrorCode


def test_fenced_is_a_new_word() -> None:
    assert fenced_code(ErrorCode.PRODUCER_FENCED, 1, 2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert fenced_code(ErrorCode.PRODUCER_FENCED, 2, 2) is ErrorCode.PRODUCER_FENCED
    assert fenced_code(ErrorCode.NONE, 0, 2) is ErrorCode.NONE


def test_abortable_is_a_newer_one() -> None:
    assert old_verification_code(ErrorCode.TRANSACTION_ABORTABLE) is ErrorCode.INVALID_TXN_STATE
    assert old_verification_code(ErrorCode.PRODUCER_FENCED) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(
    ("error", "old", "new"),
    [
        (ErrorCode.NONE, ErrorCode.NONE, ErrorCode.NONE),
        (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ),
    ],
)
def test_a_producer_hears_nothing_of_coordinators(error: ErrorCode, old: ErrorCode, new: ErrorCode) -> None:
    assert produce_code(error, 10) is old
    assert produce_code(error, 11) is new


def test_a_producer_of_transactions_v2_hears_that_its_last_transaction_is_still_ending() -> None:
    assert produce_code(ErrorCode.CONCURRENT_TRANSACTIONS, 12) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert produce_code(ErrorCode.NOT_COORDINATOR, 12) is ErrorCode.NOT_ENOUGH_REPLICAS
