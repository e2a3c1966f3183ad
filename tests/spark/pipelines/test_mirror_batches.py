"""barnabas.spark.pipelines.mirror_batches: which bytes are copied, and what is done to them (B1-B6)."""

import pytest

from barnabas.client.bulk_fetch import FetchedChunk
from barnabas.records.batch import RecordBatch, split_batches, stamp_log_append_time
from barnabas.records.builder import build_batch, end_txn_marker
from barnabas.records.codecs import Codec
from barnabas.records.copied import check_copied
from barnabas.records.errors import CorruptBatch
from barnabas.records.legacy import write_message_set
from barnabas.records.record import Record
from barnabas.spark.pipelines.mirror_batches import MERGED_BYTES, SMALL_BYTES, kept_run, pieces

LIMIT = 10**6


def batch(
    base: int, *values: bytes, producer: int = -1, transactional: bool = False, codec: Codec = Codec.NONE
) -> bytes:
    made = build_batch(
        [(1_000 + base + at, b"k", value, ()) for at, value in enumerate(values)],
        base_offset=base,
        codec=codec,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=0 if producer >= 0 else -1,
        transactional=transactional,
    )
    return bytes(made)


def marker(base: int, producer: int, *, committed: bool) -> bytes:
    return bytes(
        end_txn_marker(
            committed=committed,
            coordinator_epoch=0,
            timestamp=1,
            producer_id=producer,
            producer_epoch=0,
            base_offset=base,
        )
    )


def gappy(base: int, *values: bytes, last: int) -> bytes:
    """What compaction leaves: the batch says that it ends at `last`."""
    made = bytearray(batch(base, *values))
    made[23:27] = (last - base).to_bytes(4, "big")
    from barnabas.records.batch import seal_batch

    seal_batch(made, 0, len(made))
    return bytes(made)


def chunk(
    *batches: bytes, aborted: list[tuple[int, int]] | None = None, readonly: bool = False
) -> FetchedChunk:
    joined = b"".join(batches)
    data = memoryview(joined if readonly else bytearray(joined))
    return FetchedChunk(0, "t", 0, data, 0, aborted or [])


def offsets(spans: list[memoryview]) -> list[tuple[int, int]]:
    found = [one for span in spans for one in split_batches(span)]
    for one in found:
        one.check()
        check_copied(one)
    return [(one.base_offset, one.record_count) for one in found]


class TestKept:
    def test_plain_batches_are_one_stretch_of_the_same_memory(self) -> None:
        given = chunk(batch(0, b"a", b"b"), batch(2, b"c"))
        run = kept_run(given, 0)
        assert [bytes(span) for span in run.spans] == [bytes(given.records)]
        assert (run.next_offset, run.records, run.size_bytes) == (3, 3, len(given.records))

    @pytest.mark.parametrize("readonly", [False, True])
    def test_producers_are_taken_out(self, readonly: bool) -> None:
        run = kept_run(chunk(batch(0, b"a", producer=7), batch(1, b"b", producer=8), readonly=readonly), 0)
        assert offsets(run.spans) == [(0, 1), (1, 1)]

    def test_aborted_data_and_markers_are_left_out(self) -> None:
        given = chunk(
            batch(0, b"a", producer=7, transactional=True),
            batch(1, b"x", producer=8, transactional=True),
            batch(2, b"b", producer=7, transactional=True),
            marker(3, 8, committed=False),
            marker(4, 7, committed=True),
            batch(5, b"c", producer=8, transactional=True),
            marker(6, 8, committed=True),
            aborted=[(8, 1)],
        )
        run = kept_run(given, 0)
        assert offsets(run.spans) == [(0, 1), (2, 1), (5, 1)]
        assert (run.next_offset, run.records) == (6, 3)

    def test_what_is_there_already_is_left_out(self) -> None:
        run = kept_run(chunk(batch(0, b"a", b"b"), batch(2, b"c")), 2)
        assert offsets(run.spans) == [(2, 1)]

    def test_a_batch_across_the_position_is_cut(self) -> None:
        run = kept_run(chunk(batch(0, b"a", b"b", b"c", codec=Codec.ZSTD), batch(3, b"d")), 1)
        assert offsets(run.spans) == [(1, 2), (3, 1)]
        first = split_batches(run.spans[0])[0]
        assert [(r.offset, r.timestamp, r.value) for r in first.records(limit=LIMIT)] == [
            (1, 1_001, b"b"),
            (2, 1_002, b"c"),
        ]

    def test_gaps_stay_and_empty_batches_go(self) -> None:
        empty = bytearray(batch(50, b"x")[:61])
        empty[8:12] = (49).to_bytes(4, "big")
        empty[57:61] = bytes(4)
        run = kept_run(chunk(gappy(10, b"a", b"b", last=19), bytes(empty), batch(60, b"c")), 0)
        assert offsets(run.spans) == [(10, 2), (60, 1)]
        assert run.next_offset == 61

    def test_append_times_stay(self) -> None:
        data = bytearray(batch(0, b"a", producer=3))
        stamp_log_append_time(data, 0, 9_999)
        (span,) = kept_run(chunk(bytes(data)), 0).spans
        assert RecordBatch(span).log_append_time == 9_999

    def test_nothing_to_copy_is_no_run(self) -> None:
        run = kept_run(chunk(marker(3, 8, committed=False)), 0)
        assert (run.spans, run.next_offset) == ([], 0)

    def test_old_messages_become_batches(self) -> None:
        old = write_message_set(
            [Record(4, 11, b"k", b"a"), Record(5, 12, None, b"b"), Record(9, 13, b"k", b"c")], magic=1
        )
        run = kept_run(chunk(bytes(old)), 5)
        assert offsets(run.spans) == [(5, 1), (9, 1)]


class TestPieces:
    def test_plain_batches_are_copied_whole(self) -> None:
        packed, large = batch(0, b"a", bytes(500), codec=Codec.LZ4), batch(2, bytes(SMALL_BYTES))
        found = list(pieces(chunk(packed, large, batch(3, b"c")), 0))
        assert [(p.source, p.records, p.is_dense) for p in found] == [
            (0, 2, True),
            (2, 1, True),
            (3, 1, True),
        ]
        assert [bytes(p.data) for p in found] == [packed, large, batch(3, b"c")]

    def test_small_neighbours_become_one_and_lose_nothing(self) -> None:
        given: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]] = [
            (5, b"k", b"v", ()),
            (-1, None, b"", (("h", b"1"), ("h", None))),
            (3, b"", None, (("x", b""),)),
        ]
        batches = [bytes(build_batch(given, base_offset=base)) for base in (0, 3, 6, 9)]
        (piece,) = pieces(chunk(*batches), 0)
        assert (piece.source, piece.records, piece.is_dense, piece.next_offset) == (0, 12, True, 12)
        found = RecordBatch(memoryview(piece.data)).records(limit=LIMIT)
        assert [(r.timestamp, r.key, r.value, tuple(r.headers)) for r in found] == given * 4

    def test_neighbours_are_merged_up_to_a_size_and_not_over_gaps(self) -> None:
        batches = [batch(base, bytes(20_000)) for base in range(40)] + [
            batch(base, b"x") for base in (50, 51, 52)
        ]
        found = list(pieces(chunk(*batches), 0))
        assert [p.source for p in found] == [0, 26, 50]
        assert sum(p.records for p in found) == 43
        assert max(len(p.data) for p in found) <= MERGED_BYTES

    def test_neighbours_are_merged_only_up_to_what_the_target_takes(self) -> None:
        batches = [batch(base, bytes(3_000)) for base in range(20)]
        found = list(pieces(chunk(*batches), 0, batch_bytes_max=10_000))
        assert [p.records for p in found] == [3] * 6 + [2]
        assert max(len(p.data) for p in found) <= 10_000
        alone = list(pieces(chunk(*batches), 0, batch_bytes_max=1))
        assert [bytes(p.data) for p in alone] == batches

    def test_records_that_grow_when_they_are_numbered_anew_go_in_more_batches(self) -> None:
        """Tiny records: behind the 64th of a batch, offsets take a byte more."""
        rows = [(0, None, None, ())] * 60
        one = bytes(build_batch(rows))
        count = MERGED_BYTES // len(one)
        batches = [bytes(build_batch(rows, base_offset=60 * number)) for number in range(count)]
        found = list(pieces(chunk(*batches), 0))
        assert len(found) == 2
        assert max(len(p.data) for p in found) <= MERGED_BYTES
        first, last = found
        assert (first.source, first.next_offset, last.next_offset) == (0, last.source, 60 * count)
        for piece in found:
            made = RecordBatch(memoryview(piece.data))
            assert (made.record_count, piece.records) == (piece.next_offset - piece.source,) * 2
            assert [r.offset for r in made.records(limit=LIMIT)] == list(range(piece.records))

    @pytest.mark.parametrize("codec", [Codec.LZ4, Codec.ZSTD])
    def test_compressed_ones_stay_as_they_are(self, codec: Codec) -> None:
        batches = [batch(base, bytes(500), codec=codec) for base in range(5)]
        assert [bytes(p.data) for p in pieces(chunk(*batches), 0)] == batches

    def test_absurd_times_stay(self) -> None:
        times = [2**62, -1, -(2**62), 0]
        late = [bytes(build_batch([(time, b"k", b"v", ())], base_offset=at)) for at, time in enumerate(times)]
        (piece,) = pieces(chunk(*late), 0)
        found = RecordBatch(memoryview(piece.data)).records(limit=LIMIT)
        assert [record.timestamp for record in found] == times

    def test_gaps_are_closed(self) -> None:
        data = bytearray(gappy(10, b"a", b"b", last=19))
        (piece,) = pieces(chunk(bytes(data)), 0)
        made = RecordBatch(memoryview(piece.data))
        assert (piece.source, piece.records, made.last_offset_delta) == (10, 2, 1)
        assert [r.value for r in made.records(limit=LIMIT)] == [b"a", b"b"]

    def test_append_times_become_the_times_of_the_records(self) -> None:
        data = bytearray(batch(0, b"a", b"b"))
        stamp_log_append_time(data, 0, 9_999)
        (piece,) = pieces(chunk(bytes(data)), 0)
        made = RecordBatch(memoryview(piece.data))
        assert made.log_append_time is None
        assert [r.timestamp for r in made.records(limit=LIMIT)] == [9_999, 9_999]

    def test_records_below_the_position_are_left_out(self) -> None:
        found = list(pieces(chunk(batch(0, b"a"), batch(1, b"b", b"c"), batch(3, b"d")), 2))
        assert [(p.source, p.records) for p in found] == [(2, 1), (3, 1)]

    def test_aborted_data_and_markers_are_left_out(self) -> None:
        given = chunk(
            batch(0, b"x", producer=8, transactional=True),
            marker(1, 8, committed=False),
            batch(2, b"a", producer=8, transactional=True),
            marker(3, 8, committed=True),
            aborted=[(8, 0)],
        )
        assert [p.source for p in pieces(given, 0)] == [2]

    def test_old_messages_become_a_batch(self) -> None:
        old = write_message_set([Record(4, 11, b"k", b"a"), Record(9, 13, b"k", b"c")], magic=1)
        (piece,) = pieces(chunk(bytes(old)), 0)
        assert (piece.source, piece.records, piece.is_dense) == (4, 2, False)


@pytest.mark.parametrize("producer", [-1, 8])
@pytest.mark.parametrize("around", [[], [batch(0, b"a")]])
def test_bytes_that_broke_before_do_not_get_a_good_checksum(producer: int, around: list[bytes]) -> None:
    broken = bytearray(batch(1, b"value", producer=producer))
    broken[-3] ^= 1
    with pytest.raises(CorruptBatch, match="CRC"):
        kept_run(chunk(*around, bytes(broken)), 0)
    with pytest.raises(CorruptBatch, match="CRC"):
        list(pieces(chunk(*around, bytes(broken)), 0))
