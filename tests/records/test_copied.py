"""barnabas.records.copied: the header of a run, and batches without their producer."""

import pytest

from barnabas.records.batch import HEADER_BYTES, RecordBatch, split_batches
from barnabas.records.builder import build_batch, end_txn_marker
from barnabas.records.codecs import Codec
from barnabas.records.copied import check_copied, detach_batch, is_run_header, run_header
from barnabas.records.errors import InvalidRecord

ROWS = [(1_000, b"k", b"one", ()), (1_007, None, b"two", ())]


class TestHeader:
    @pytest.mark.parametrize("end", [0, 1, 2**31, 2**62])
    def test_it_names_the_end_of_the_log_and_is_sound(self, end: int) -> None:
        header = RecordBatch(memoryview(run_header(end)))
        header.check()
        assert is_run_header(header)
        assert header.base_offset == end
        assert header.size_bytes == HEADER_BYTES

    def test_what_others_send_is_none(self) -> None:
        plain = RecordBatch(memoryview(build_batch(ROWS)))
        marker = RecordBatch(
            memoryview(
                end_txn_marker(
                    committed=True, coordinator_epoch=1, timestamp=1, producer_id=7, producer_epoch=0
                )
            )
        )
        assert not is_run_header(plain)
        assert not is_run_header(marker)


class TestDetaching:
    @pytest.mark.parametrize("codec", list(Codec))
    def test_a_batch_loses_its_producer_and_nothing_else(self, codec: Codec) -> None:
        data = build_batch(
            ROWS * 50, codec=codec, producer_id=7, producer_epoch=2, base_sequence=40, transactional=True
        )
        before = RecordBatch(memoryview(bytes(data)))
        detach_batch(data, RecordBatch(memoryview(data)))
        after = RecordBatch(memoryview(data))
        after.check()
        check_copied(after)
        assert (after.producer_id, after.producer_epoch, after.base_sequence) == (-1, -1, -1)
        assert not after.is_transactional
        assert after.codec is before.codec
        assert after.records(limit=100_000) == before.records(limit=100_000)

    def test_a_batch_of_nobody_stays_byte_for_byte(self) -> None:
        data = build_batch(ROWS)
        before = bytes(data)
        detach_batch(data, RecordBatch(memoryview(data)))
        assert bytes(data) == before

    def test_it_works_in_the_middle_of_others(self) -> None:
        one = build_batch(ROWS, producer_id=1, producer_epoch=0, base_sequence=0)
        data = one + one + one
        batches = split_batches(memoryview(data))
        detach_batch(data, batches[1])
        after = split_batches(memoryview(data))
        assert [batch.producer_id for batch in after] == [1, -1, 1]
        for batch in after:
            batch.check()


class TestCheck:
    def test_a_batch_of_a_producer_is_refused(self) -> None:
        data = build_batch(ROWS, producer_id=7, producer_epoch=2, base_sequence=40)
        with pytest.raises(InvalidRecord, match="belongs to a producer or a transaction"):
            check_copied(RecordBatch(memoryview(data)))

    @pytest.mark.parametrize(("count", "delta"), [(0, 1), (3, 1), (-1, 1), (1, -1)])
    def test_counts_that_cannot_be_are_refused(self, count: int, delta: int) -> None:
        batch = RecordBatch(memoryview(build_batch(ROWS)))
        batch.record_count, batch.last_offset_delta = count, delta
        with pytest.raises(InvalidRecord, match=f"counts {count} records, its last offset delta is {delta}"):
            check_copied(batch)

    def test_gaps_that_compaction_left_are_taken(self) -> None:
        batch = RecordBatch(memoryview(build_batch(ROWS)))
        batch.last_offset_delta = 99
        check_copied(batch)
