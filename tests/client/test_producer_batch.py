"""Tests of one producer batch: its bytes, its sequence, its split."""

import pytest

from barnabas.client.producer_batch import NO_ID, Compression, Identity, ProducerBatch
from barnabas.records.batch import RecordBatch
from barnabas.records.codecs import Codec
from barnabas.records.kernel import Record
from tests.client._batches import make_batch

PLAIN = Compression()


def read(batch: ProducerBatch, compression: Compression = PLAIN) -> RecordBatch:
    view = RecordBatch(memoryview(bytes(batch.seal(compression))))
    view.check()
    return view


def values(batch: ProducerBatch) -> list[Record]:
    return read(batch).records(limit=10_000_000)


class TestSealing:
    def test_the_bytes_are_a_batch_of_the_records(self) -> None:
        view = read(make_batch(count=3))
        assert (view.record_count, view.last_offset_delta, view.base_offset) == (3, 2, 0)
        assert (view.base_timestamp, view.max_timestamp) == (1_000, 1_002)
        assert [record.key for record in view.records(limit=1000)] == [b"k0", b"k1", b"k2"]

    def test_without_a_sequence_it_has_no_producer(self) -> None:
        view = read(make_batch())
        assert (view.producer_id, view.producer_epoch, view.base_sequence) == (-1, -1, -1)

    def test_with_one_it_carries_it(self) -> None:
        batch = make_batch()
        batch.set_sequence(Identity(7, 3), 55)
        view = read(batch)
        assert (view.producer_id, view.producer_epoch, view.base_sequence) == (7, 3, 55)

    def test_one_of_a_transaction_says_so(self) -> None:
        batch = make_batch()
        batch.set_sequence(Identity(7, 3), 0)
        view = RecordBatch(memoryview(bytes(batch.seal(PLAIN, is_transactional=True))))
        view.check()
        assert (view.is_transactional, view.is_control) == (True, False)

    @pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
    def test_it_is_compressed(self, codec: Codec) -> None:
        view = read(make_batch(count=50), Compression(codec))
        assert view.codec is codec
        assert len(view.records(limit=100_000)) == 50

    def test_a_level_is_used(self) -> None:
        low = make_batch(count=200, value=b"some text that repeats").seal(Compression(Codec.GZIP, 1))
        high = make_batch(count=200, value=b"some text that repeats").seal(Compression(Codec.GZIP, 9))
        assert len(high) <= len(low)
        assert high != low

    def test_sealing_again_gives_the_same_bytes(self) -> None:
        batch = make_batch()
        assert batch.seal(PLAIN) is batch.seal(PLAIN)

    def test_its_size_is_that_of_the_bytes(self) -> None:
        batch = make_batch()
        before = batch.size_bytes
        assert before == len(batch.seal(PLAIN)) == batch.size_bytes


class TestAnotherSequence:
    def test_the_bytes_that_left_stay_as_they_are(self) -> None:
        batch = make_batch()
        batch.set_sequence(Identity(7, 3), 55)
        left = batch.seal(PLAIN)
        copy = bytes(left)
        batch.set_sequence(Identity(7, 4), 0)
        assert bytes(left) == copy
        view = read(batch)
        assert (view.producer_id, view.producer_epoch, view.base_sequence) == (7, 4, 0)

    def test_the_same_one_changes_nothing(self) -> None:
        batch = make_batch()
        batch.set_sequence(Identity(7, 3), 55)
        left = batch.seal(PLAIN)
        batch.set_sequence(Identity(7, 3), 55)
        assert batch.seal(PLAIN) is left


class TestSplitting:
    def test_the_parts_have_all_records_in_order_and_less_than_the_whole(self) -> None:
        batch = make_batch(count=10)
        whole = len(batch.seal(PLAIN))
        expected = values(batch)
        batch.reserved = 99
        parts = batch.split(5)
        assert [first for first, _ in parts] == [0, parts[0][1].count, *[first for first, _ in parts[2:]]]
        found = [record for _, part in parts for record in values(part)]
        assert [(r.key, r.value, r.headers, r.timestamp) for r in found] == [
            (r.key, r.value, r.headers, r.timestamp) for r in expected
        ]
        assert all(part.size_bytes < whole for _, part in parts)
        assert sum(part.count for _, part in parts) == 10
        assert (batch.reserved, sum(part.reserved for _, part in parts)) == (0, 99)

    def test_two_records_become_two_batches(self) -> None:
        batch = make_batch(count=2)
        batch.seal(PLAIN)
        assert [part.count for _, part in batch.split(0)] == [1, 1]

    def test_a_large_record_among_small_ones_is_alone_in_the_end(self) -> None:
        batch = make_batch(count=3, size_limit=100_000)
        assert batch.add(1, None, b"x" * 5_000, (), None) is not None
        batch.seal(PLAIN)
        assert [part.count for _, part in batch.split(0)] == [3, 1]

    def test_a_compressed_batch_is_split_by_what_is_in_it(self) -> None:
        batch = make_batch(count=100)
        batch.seal(Compression(Codec.LZ4))
        parts = batch.split(0)
        assert sum(part.count for _, part in parts) == 100
        assert len(parts) >= 2

    def test_sequences_run_through_the_parts(self) -> None:
        batch = make_batch(count=4)
        batch.set_sequence(Identity(7, 3), 2**31 - 2)
        batch.seal(PLAIN)
        parts = batch.split(0)
        assert [(part.identity, part.sequence) for _, part in parts] == [
            (Identity(7, 3), 2**31 - 2),
            (Identity(7, 3), 0),
        ]

    def test_without_sequences_parts_have_none(self) -> None:
        batch = make_batch(count=2)
        batch.seal(PLAIN)
        assert [part.identity for _, part in batch.split(0)] == [NO_ID, NO_ID]

    def test_parts_stand_between_the_neighbours(self) -> None:
        batch = make_batch(number=5, count=2)
        batch.seal(PLAIN)
        numbers = [part.number for _, part in batch.split(0)]
        assert [(4,), *numbers, (6,)] == sorted([(6,), *numbers, (4,)])

    def test_they_keep_their_age(self) -> None:
        batch = make_batch(count=2, now_ms=77)
        batch.seal(PLAIN)
        assert [part.created_ms for _, part in batch.split(500)] == [77, 77]


def test_it_says_what_it_is() -> None:
    assert repr(make_batch()) == "<ProducerBatch t-0 (1,): 2 records, sequence -1, 0 attempts>"
