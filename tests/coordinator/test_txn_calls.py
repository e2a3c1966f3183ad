"""barnabas.coordinator.txn_calls: results without a producer say so."""

from barnabas.coordinator.txn_calls import InitResult, TransactionDescription, TransactionFilter
from barnabas.protocol.codes import ErrorCode


def test_a_refusal_names_no_producer() -> None:
    assert InitResult(ErrorCode.PRODUCER_FENCED) == (ErrorCode.PRODUCER_FENCED, -1, -1)


def test_an_unknown_id_is_described_by_its_error_alone() -> None:
    found = TransactionDescription(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "tx")
    assert (found.state, found.producer_id, found.partitions) == ("", 0, ())


def test_an_empty_filter_wants_everything() -> None:
    wanted = TransactionFilter()
    assert (wanted.states, wanted.producer_ids, wanted.longer_than_ms) == (frozenset(), frozenset(), -1)
    assert wanted.matches is None
