"""Which batches are aborted, and which markers still serve."""

from barnabas.log.cleaner_transactions import CleanedTransactions
from barnabas.log.txn_index import AbortedTransaction
from barnabas.records.batch import ATTRIBUTE_CONTROL, ATTRIBUTE_TRANSACTIONAL, RecordBatch
from barnabas.records.builder import assemble_batch, build_batch, end_txn_marker


def data(offset: int, producer_id: int = 7, *, transactional: bool = True) -> RecordBatch:
    return RecordBatch(
        memoryview(
            build_batch(
                [(0, b"k", b"v", ())],
                base_offset=offset,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=0,
                transactional=transactional,
            )
        )
    )


def marker(offset: int, *, committed: bool, producer_id: int = 7) -> RecordBatch:
    return RecordBatch(
        memoryview(
            end_txn_marker(
                committed=committed,
                coordinator_epoch=0,
                timestamp=0,
                producer_id=producer_id,
                producer_epoch=0,
                base_offset=offset,
            )
        )
    )


def aborted(first: int, last: int, producer_id: int = 7) -> AbortedTransaction:
    return AbortedTransaction(producer_id, first, last, last + 1)


class TestData:
    def test_between_first_offset_and_marker_is_aborted(self) -> None:
        seen = CleanedTransactions()
        seen.expect([aborted(10, 12)])
        assert [seen.data(data(10)), seen.data(data(11))] == [True, True]
        seen.marker(marker(12, committed=False))
        assert not seen.data(data(13))

    def test_before_the_first_offset_is_not(self) -> None:
        seen = CleanedTransactions()
        seen.expect([aborted(10, 12)])
        assert not seen.data(data(5))

    def test_of_other_producers_and_outside_of_transactions_is_not(self) -> None:
        seen = CleanedTransactions()
        seen.expect([aborted(10, 12)])
        assert not seen.data(data(10, producer_id=8))
        assert not seen.data(data(11, transactional=False))

    def test_two_transactions_of_one_producer_are_kept_apart(self) -> None:
        seen = CleanedTransactions()
        seen.expect([aborted(20, 22), aborted(10, 12)])
        assert seen.data(data(10))
        seen.marker(marker(12, committed=False))
        assert not seen.data(data(15))
        seen.marker(marker(16, committed=True))
        assert seen.data(data(20))

    def test_naming_a_transaction_for_each_segment_does_no_harm(self) -> None:
        seen = CleanedTransactions()
        seen.expect([aborted(10, 15)])
        assert seen.data(data(10))
        seen.expect([aborted(10, 15)])
        assert seen.data(data(12))
        assert not seen.marker(marker(15, committed=False))
        assert seen.take_retained() == [aborted(10, 15)]


class TestMarkers:
    def test_serve_while_data_of_their_transaction_was_met(self) -> None:
        seen = CleanedTransactions()
        seen.expect([aborted(10, 12)])
        seen.data(data(10))
        seen.data(data(11, producer_id=8))
        assert not seen.marker(marker(12, committed=False))
        assert not seen.marker(marker(13, committed=True, producer_id=8))

    def test_are_free_when_none_was_met(self) -> None:
        seen = CleanedTransactions()
        seen.expect([aborted(10, 12)])
        assert seen.marker(marker(12, committed=False))
        assert seen.marker(marker(13, committed=True, producer_id=8))
        assert seen.take_retained() == []

    def test_end_only_the_transaction_of_their_producer(self) -> None:
        seen = CleanedTransactions()
        seen.data(data(1, producer_id=7))
        assert seen.marker(marker(2, committed=True, producer_id=8))
        assert not seen.marker(marker(3, committed=True, producer_id=7))
        assert seen.marker(marker(4, committed=True, producer_id=7))

    def test_that_were_emptied_before_are_free(self) -> None:
        empty = assemble_batch(
            b"",
            record_count=0,
            last_offset_delta=0,
            base_timestamp=-1,
            max_timestamp=0,
            attributes=ATTRIBUTE_CONTROL | ATTRIBUTE_TRANSACTIONAL,
        )
        assert CleanedTransactions().marker(RecordBatch(memoryview(empty)))


class TestTheIndex:
    def test_keeps_a_transaction_once(self) -> None:
        seen = CleanedTransactions()
        seen.expect([aborted(10, 12)])
        seen.data(data(10))
        seen.marker(marker(12, committed=False))
        assert seen.take_retained() == [aborted(10, 12)]
        assert seen.take_retained() == []
