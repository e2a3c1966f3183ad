"""Message sets become batches, batches become message sets; what cannot go is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import Misuse
from barnabas.records.batch import RecordBatch, patch_batch, split_batches, stamp_log_append_time
from barnabas.records.builder import Row, build_batch, end_txn_marker
from barnabas.records.codecs import Codec
from barnabas.records.conversion import down_convert, up_convert
from barnabas.records.errors import CorruptBatch, InvalidRecord, TooLarge, UnsupportedCodec
from barnabas.records.legacy import read_message_set, write_message_set
from barnabas.records.record import Record
from tests.records.peers import SET_READERS
from tests.records.samples import LIMIT, NOW, ROWS, recorded_files, rows
from tests.records.test_legacy import OLD_CODECS, RECORDS, as_magic


def read(data: bytes | bytearray) -> list[Record]:
    return read_message_set(memoryview(data), limit=LIMIT).records


def without_headers(rows: list[Row], magic: int, base_offset: int = 0) -> list[Record]:
    return [
        Record(
            base_offset + n,
            t if magic else -1,
            None if k is None else bytes(k),
            None if v is None else bytes(v),
        )
        for n, (t, k, v, _) in enumerate(rows)
    ]


class TestUp:
    @pytest.mark.parametrize("magic", [0, 1])
    @pytest.mark.parametrize("codec", OLD_CODECS)
    def test_a_set_becomes_one_batch_of_the_same_records(self, magic: int, codec: Codec) -> None:
        message_set = write_message_set(RECORDS, magic=magic, codec=codec)
        batch = RecordBatch(memoryview(up_convert(memoryview(message_set), limit=LIMIT)))
        batch.check()
        batch.check_produced()
        assert batch.codec is codec
        assert batch.producer_id == -1
        assert [(r.timestamp, r.key, r.value) for r in batch.records(limit=LIMIT)] == [
            (r.timestamp, r.key, r.value) for r in as_magic(RECORDS, magic)
        ]
        assert [r.offset for r in batch.records(limit=LIMIT)] == list(range(len(RECORDS)))
        assert batch.max_timestamp == (NOW + 70_000 if magic else -1)

    def test_another_codec_can_be_asked_for(self) -> None:
        message_set = write_message_set(RECORDS, magic=1, codec=Codec.GZIP)
        batch = RecordBatch(memoryview(up_convert(memoryview(message_set), limit=LIMIT, codec=Codec.ZSTD)))
        assert batch.codec is Codec.ZSTD

    def test_a_cut_last_message_is_left_out(self) -> None:
        message_set = memoryview(write_message_set(RECORDS, magic=1))[:-1]
        assert RecordBatch(memoryview(up_convert(message_set, limit=LIMIT))).record_count == len(RECORDS) - 1

    def test_a_set_without_a_whole_message_is_refused(self) -> None:
        for data in (b"", bytes(write_message_set(RECORDS[:1], magic=1))[:-1]):
            with pytest.raises(InvalidRecord, match=r"^the message set holds no message$"):
                up_convert(memoryview(data), limit=LIMIT)

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
    def test_append_time_from_a_producer_is_refused(self, codec: Codec) -> None:
        message_set = write_message_set(RECORDS, magic=1, codec=codec, log_append_time=NOW)
        with pytest.raises(InvalidRecord, match=r"^clients may not set LogAppendTime$"):
            up_convert(memoryview(message_set), limit=LIMIT)

    def test_the_limit_holds(self) -> None:
        message_set = write_message_set(RECORDS, magic=1, codec=Codec.LZ4)
        with pytest.raises(TooLarge, match=r"^lz4 data passes the limit of 500 bytes$"):
            up_convert(memoryview(message_set), limit=500)

    def test_a_batch_is_no_message_set(self) -> None:
        with pytest.raises(CorruptBatch, match=r"^magic 2 is not a message's$"):
            up_convert(memoryview(build_batch(ROWS)), limit=LIMIT)


class TestDown:
    @pytest.mark.parametrize("magic", [0, 1])
    @pytest.mark.parametrize("codec", OLD_CODECS)
    def test_batches_become_one_set_with_offsets_and_codec_kept(self, magic: int, codec: Codec) -> None:
        log = build_batch(ROWS, base_offset=10, codec=codec) + build_batch(ROWS, base_offset=500)
        data = down_convert(memoryview(log), magic, limit=LIMIT)
        assert read(data) == without_headers(ROWS, magic, 10) + without_headers(ROWS, magic, 500)
        assert read_message_set(memoryview(data), limit=LIMIT).codec is codec

    @given(rows(), st.sampled_from([0, 1]), st.sampled_from(OLD_CODECS), st.integers(0, 2**50))
    def test_any_records_survive(self, expected: list[Row], magic: int, codec: Codec, base: int) -> None:
        data = down_convert(
            memoryview(build_batch(expected, base_offset=base, codec=codec)), magic, limit=LIMIT
        )
        assert read(data) == without_headers(expected, magic, base)

    def test_append_time_stays_append_time(self) -> None:
        for codec in OLD_CODECS:
            log = build_batch(ROWS, codec=codec)
            stamp_log_append_time(log, 0, NOW + 1)
            records = read(down_convert(memoryview(log), 1, limit=LIMIT))
            assert {(r.timestamp, r.timestamp_type) for r in records} == {(NOW + 1, 1)}

    def test_control_batches_are_left_out(self) -> None:
        marker = end_txn_marker(
            committed=True, coordinator_epoch=0, timestamp=NOW, producer_id=1, producer_epoch=0
        )
        log = marker + build_batch(ROWS[:1], base_offset=1) + marker
        assert [r.offset for r in read(down_convert(memoryview(log), 1, limit=LIMIT))] == [1]
        assert down_convert(memoryview(marker), 1, limit=LIMIT) == b""

    def test_records_below_the_fetch_offset_leave_plain_batches_only(self) -> None:
        plain = build_batch(ROWS, base_offset=100)
        packed = build_batch(ROWS, base_offset=100, codec=Codec.GZIP)
        records = read(down_convert(memoryview(plain), 1, limit=LIMIT, first_offset=104))
        assert [r.offset for r in records] == list(range(104, 109))
        records = read(down_convert(memoryview(packed), 1, limit=LIMIT, first_offset=104))
        assert [r.offset for r in records] == list(range(100, 109))
        assert down_convert(memoryview(plain), 1, limit=LIMIT, first_offset=109) == b""

    def test_a_cut_last_batch_is_left_out(self) -> None:
        log = build_batch(ROWS[:2]) + build_batch(ROWS)[:-1]
        assert len(read(down_convert(memoryview(log), 1, limit=LIMIT))) == 2

    def test_ready_made_views_are_taken_too(self) -> None:
        log = memoryview(build_batch(ROWS) + build_batch(ROWS, base_offset=9))
        assert down_convert(split_batches(log), 1, limit=LIMIT) == down_convert(log, 1, limit=LIMIT)

    def test_zstd_cannot_go_down(self) -> None:
        log = build_batch(ROWS, codec=Codec.ZSTD)
        with pytest.raises(UnsupportedCodec, match=r"^a zstd batch cannot be converted to a message set$"):
            down_convert(memoryview(log), 1, limit=LIMIT)

    def test_only_the_two_old_formats_are_targets(self) -> None:
        with pytest.raises(Misuse, match=r"^magic 2 is not a message's$"):
            down_convert(memoryview(b""), 2, limit=LIMIT)

    @pytest.mark.parametrize("name", SET_READERS)
    @pytest.mark.parametrize("magic", [0, 1])
    def test_old_consumers_read_recorded_batches_after_conversion(self, name: str, magic: int) -> None:
        for path in recorded_files():
            for batch in split_batches(memoryview(path.read_bytes())):
                if batch.codec in (Codec.ZSTD, Codec.LZ4) or batch.is_control:
                    continue
                if name == "kafka-python" and batch.codec is Codec.SNAPPY:
                    continue
                converted = bytes(down_convert([batch], magic, limit=LIMIT))
                found = [(r.offset, r.key, r.value) for part in drain(name, converted) for r in part]
                assert found == [(r.offset, r.key, r.value) for r in batch.records(limit=LIMIT)]


def drain(name: str, data: bytes) -> list[list[Record]]:
    batches = SET_READERS[name](data)
    parts = []
    while batches.has_next():
        batch = batches.next_batch()
        assert batch.validate_crc()
        parts.append(list(batch))
    return parts


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_down_after_up_is_the_same_set(magic: int, codec: Codec) -> None:
    first = RECORDS[0].offset
    consecutive = [Record(first + n, r.timestamp, r.key, r.value) for n, r in enumerate(RECORDS)]
    message_set = write_message_set(consecutive, magic=magic, codec=codec)
    stored = up_convert(memoryview(message_set), limit=LIMIT)
    patch_batch(stored, 0, first, 4)
    assert down_convert(memoryview(stored), magic, limit=LIMIT) == message_set
