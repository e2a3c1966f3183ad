"""What compaction leaves of a single batch."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.log.cleaner_rewrite import BatchCleaner, LastRecord, Retained, plain_payload
from barnabas.log.cleaner_transactions import CleanedTransactions
from barnabas.log.offset_map import OffsetMap
from barnabas.log.txn_index import AbortedTransaction
from barnabas.records import kernel
from barnabas.records.batch import RecordBatch, stamp_log_append_time
from barnabas.records.builder import build_batch, end_txn_marker
from barnabas.records.codecs import Codec
from barnabas.records.errors import InvalidRecord
from barnabas.records.record import Record
from tests.log._compaction import records_of

NOW = 50_000
Pair = tuple[bytes, bytes | None]


def batch(
    *pairs: Pair, base_offset: int = 100, codec: Codec = Codec.NONE, producer_id: int = -1, time: int = 1000
) -> RecordBatch:
    rows = [(time + number, key, value, (("h", b"1"),)) for number, (key, value) in enumerate(pairs)]
    data = build_batch(
        rows,
        codec=codec,
        base_offset=base_offset,
        leader_epoch=3,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=40 if producer_id >= 0 else -1,
    )
    return RecordBatch(memoryview(data))


def cleaner(
    *later: tuple[int, bytes],
    up_to: int = 1000,
    last_records: Mapping[int, LastRecord] | None = None,
    end_offset: int = 10_000,
    aborted: Sequence[AbortedTransaction] = (),
    now_ms: int = NOW,
) -> BatchCleaner:
    """A pass that knows these later (offset, key) records."""
    known = OffsetMap(10_000)
    for offset, key in later:
        known.add(kernel.encode([(0, key, b"", ())]), 1, offset)
    known.speak_up_to(up_to)
    transactions = CleanedTransactions()
    transactions.expect(aborted)
    return BatchCleaner(
        known,
        transactions,
        now_ms=now_ms,
        delete_retention_ms=500,
        last_records=last_records or {},
        end_offset=end_offset,
    )


def written(retained: Retained | None) -> RecordBatch:
    assert retained is not None
    result = RecordBatch(memoryview(bytearray(retained.data)))
    result.check()
    assert result.size_bytes == len(retained.data)
    assert (result.last_offset, result.max_timestamp) == (retained.last_offset, retained.max_timestamp)
    assert result.record_count == retained.record_count
    return result


def left(retained: Retained | None) -> list[Record]:
    return records_of(written(retained))


class TestWhole:
    def test_a_batch_that_keeps_everything_keeps_its_bytes(self) -> None:
        original = batch((b"a", b"1"), (b"b", b"2"), codec=Codec.GZIP)
        retained = cleaner((1000, b"z")).clean(original)
        assert retained is not None
        assert retained.data == original.view

    def test_a_batch_that_the_map_does_not_speak_for_is_not_looked_into(self) -> None:
        original = batch((b"a", None), base_offset=500)
        retained = cleaner((400, b"a"), up_to=499).clean(original)
        assert retained is not None
        assert retained.data == original.view


class TestParts:
    @pytest.mark.parametrize("codec", list(Codec))
    def test_what_stays_is_as_it_was(self, codec: Codec) -> None:
        original = batch((b"a", b"1"), (b"b", b"2" * 200), (b"c", b"3" * 200), codec=codec)
        result = written(cleaner((1000, b"a")).clean(original))
        assert records_of(result) == records_of(original)[1:]
        assert result.codec is codec
        assert (result.base_offset, result.last_offset, result.leader_epoch) == (100, 102, 3)

    def test_the_largest_time_is_that_of_what_stays(self) -> None:
        original = batch((b"a", b"1"), (b"b", b"2"))
        assert written(cleaner((1000, b"b")).clean(original)).max_timestamp == 1000

    def test_log_append_time_stays(self) -> None:
        original = batch((b"a", b"1"), (b"b", b"2"))
        stamp_log_append_time(original.buffer, 0, 7777)
        result = written(cleaner((1000, b"a")).clean(RecordBatch(original.buffer)))
        assert result.log_append_time == 7777
        assert [record.timestamp for record in records_of(result)] == [7777]

    def test_the_producers_fields_stay(self) -> None:
        original = batch((b"a", b"1"), (b"b", b"2"), producer_id=9)
        result = written(cleaner((1000, b"b")).clean(original))
        assert (result.producer_id, result.producer_epoch, result.base_sequence) == (9, 0, 40)
        assert result.last_sequence == original.last_sequence == 41

    def test_nothing_left_is_no_batch(self) -> None:
        assert cleaner((1000, b"a"), (1001, b"b")).clean(batch((b"a", b"1"), (b"b", b"2"))) is None

    def test_malformed_records_are_an_error(self) -> None:
        original = batch((b"a", b"1"), (b"b", b"2"))
        original.record_count = 3
        with pytest.raises(InvalidRecord, match="after 2 of 3 records"):
            cleaner((1000, b"a")).clean(original)


class TestEmpty:
    def test_the_last_batch_of_a_producer_stays_without_records(self) -> None:
        last = {9: LastRecord(101, 0)}
        passed = cleaner((1000, b"a"), (1001, b"b"), last_records=last)
        result = written(passed.clean(batch((b"a", b"1"), (b"b", b"2"), producer_id=9, codec=Codec.LZ4)))
        assert (result.record_count, result.size_bytes, result.attributes) == (0, 61, 0)
        assert (result.base_offset, result.last_offset, result.last_sequence) == (100, 101, 41)
        assert (result.base_timestamp, result.max_timestamp) == (-1, 1001)

    def test_an_earlier_batch_of_the_producer_does_not(self) -> None:
        last = {9: LastRecord(500, 0)}
        assert cleaner((1000, b"a"), last_records=last).clean(batch((b"a", b"1"), producer_id=9)) is None

    def test_the_batch_at_the_end_of_the_range_stays(self) -> None:
        passed = cleaner((1000, b"a"), end_offset=101)
        assert written(passed.clean(batch((b"a", b"1")))).record_count == 0

    def test_an_empty_batch_goes_once_nobody_needs_it(self) -> None:
        last = {9: LastRecord(100, 0)}
        kept = written(cleaner((1000, b"a"), last_records=last).clean(batch((b"a", b"1"), producer_id=9)))
        again = cleaner((1000, b"a"), last_records=last).clean(kept)
        assert again is not None
        assert again.data == kept.view
        assert cleaner((1000, b"a")).clean(kept) is None

    def test_aborted_batches_go_whatever_they_hold(self) -> None:
        data = build_batch(
            [(0, b"fresh", b"v", ())],
            base_offset=100,
            producer_id=9,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        original = RecordBatch(memoryview(data))
        aborted = AbortedTransaction(9, 100, 105, 106)
        assert cleaner(aborted=[aborted]).clean(original) is None
        kept = cleaner(aborted=[aborted], last_records={9: LastRecord(100, 0)}).clean(original)
        assert written(kept).is_transactional


class TestTombstones:
    def test_get_a_horizon_and_keep_their_times(self) -> None:
        original = batch((b"a", None), (b"b", b"2"))
        result = written(cleaner((100, b"a")).clean(original))
        assert result.delete_horizon_ms == NOW + 500
        assert records_of(result) == records_of(original)
        assert result.max_timestamp == original.max_timestamp

    def test_keep_the_horizon_they_have(self) -> None:
        with_horizon = written(cleaner((100, b"a")).clean(batch((b"a", None), (b"b", b"2"))))
        again = cleaner((100, b"a"), now_ms=NOW + 499).clean(with_horizon)
        assert again is not None
        assert again.data == with_horizon.view

    def test_keep_it_when_other_records_go(self) -> None:
        with_horizon = written(cleaner((100, b"a")).clean(batch((b"a", None), (b"b", b"2"))))
        again = written(cleaner((100, b"a"), (500, b"b"), now_ms=NOW + 1).clean(with_horizon))
        assert again.delete_horizon_ms == NOW + 500
        assert [record.key for record in records_of(again)] == [b"a"]

    def test_go_when_it_is_over(self) -> None:
        with_horizon = written(cleaner((100, b"a")).clean(batch((b"a", None), (b"b", b"2"))))
        after = cleaner((100, b"a"), now_ms=NOW + 500).clean(with_horizon)
        assert [record.key for record in left(after)] == [b"b"]

    def test_that_something_newer_replaced_set_no_horizon(self) -> None:
        result = cleaner((500, b"a")).clean(batch((b"a", None), (b"b", b"2")))
        assert written(result).delete_horizon_ms is None


class TestMarkers:
    def marker(self) -> RecordBatch:
        return RecordBatch(
            memoryview(
                end_txn_marker(
                    committed=True,
                    coordinator_epoch=5,
                    timestamp=1234,
                    producer_id=9,
                    producer_epoch=2,
                    base_offset=100,
                )
            )
        )

    def test_of_a_transaction_that_is_gone_get_a_horizon(self) -> None:
        original = self.marker()
        result = written(cleaner().clean(original))
        assert result.delete_horizon_ms == NOW + 500
        assert result.is_control
        assert records_of(result) == records_of(original)

    def test_go_when_it_is_over(self) -> None:
        with_horizon = written(cleaner().clean(self.marker()))
        kept = cleaner(now_ms=NOW + 499).clean(with_horizon)
        assert kept is not None
        assert kept.data == with_horizon.view
        assert cleaner(now_ms=NOW + 500).clean(with_horizon) is None

    def test_stay_empty_while_only_they_hold_the_producers_epoch(self) -> None:
        with_horizon = written(cleaner().clean(self.marker()))
        last = {9: LastRecord(None, 2)}
        kept = written(cleaner(now_ms=NOW + 500, last_records=last).clean(with_horizon))
        assert (kept.record_count, kept.producer_epoch, kept.is_control) == (0, 2, True)
        assert cleaner(now_ms=NOW + 500, last_records={9: LastRecord(None, 3)}).clean(kept) is None


PAIRS = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.none() | st.binary(max_size=5)), min_size=1, max_size=8
)


@given(PAIRS, st.sets(st.sampled_from([b"a", b"b", b"c"])), st.sampled_from(list(Codec)))
def test_a_cleaned_batch_holds_the_last_record_of_each_key_that_nothing_replaces(
    pairs: list[Pair], replaced: set[bytes], codec: Codec
) -> None:
    original = batch(*pairs, codec=codec)
    known = OffsetMap(10_000)
    known.add(plain_payload(original), original.record_count, original.base_offset)
    for number, key in enumerate(replaced):
        known.add(kernel.encode([(0, key, b"", ())]), 1, 500 + number)
    known.speak_up_to(1000)
    passed = BatchCleaner(
        known, CleanedTransactions(), now_ms=NOW, delete_retention_ms=0, last_records={}, end_offset=0
    )
    last = {record.key: record for record in records_of(original) if record.key not in replaced}
    result = passed.clean(original)
    assert (left(result) if result else []) == sorted(last.values(), key=lambda record: record.offset)
