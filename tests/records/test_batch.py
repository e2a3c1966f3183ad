"""The view over a batch: fields, checks, and rewriting in place."""

import struct
from typing import Any

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.records.batch import (
    HEADER,
    HEADER_BYTES,
    RecordBatch,
    iter_batches,
    patch_batch,
    read_header,
    seal_batch,
    split_batches,
    stamp_log_append_time,
    stamp_producer,
)
from barnabas.records.builder import Row, assemble_batch, build_batch, end_txn_marker
from barnabas.records.codecs import Codec
from barnabas.records.errors import CorruptBatch, InvalidRecord, RecordError, TooLarge, UnsupportedCodec
from tests.records.samples import LIMIT, NOW, ROWS, rows, small_batch

FIELDS = {
    "base_offset": (0, ">q"),
    "leader_epoch": (12, ">i"),
    "magic": (16, ">b"),
    "crc": (17, ">I"),
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "base_timestamp": (27, ">q"),
    "max_timestamp": (35, ">q"),
    "producer_id": (43, ">q"),
    "producer_epoch": (51, ">h"),
    "base_sequence": (53, ">i"),
    "record_count": (57, ">i"),
}


def changed(data: bytearray, *, sealed: bool = True, **fields: int) -> RecordBatch:
    """The batch with header fields overwritten, and its checksum right again unless told."""
    data = bytearray(data)
    for name, value in fields.items():
        position, form = FIELDS[name]
        struct.pack_into(form, data, position, value)
    if sealed:
        seal_batch(data, 0, len(data))
    return RecordBatch(memoryview(data))


class TestFields:
    def test_every_field_is_read_from_its_position(self) -> None:
        values = {name: number * 3 + 1 for number, name in enumerate(FIELDS)}
        batch = changed(small_batch(), sealed=False, **values)
        assert {name: getattr(batch, name) for name in FIELDS} == values
        assert batch.size_bytes == len(small_batch())

    @given(st.data())
    def test_any_value_of_a_field_is_read(self, data: st.DataObject) -> None:
        values = {}
        for name, (_, form) in FIELDS.items():
            bits = 8 * struct.calcsize(form)
            low, high = (0, 2**bits - 1) if form.isupper() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            values[name] = data.draw(st.integers(low, high), label=name)
        batch = changed(small_batch(), sealed=False, **values)
        assert {name: getattr(batch, name) for name in FIELDS} == values

    def test_read_header_gives_the_same_fields_in_wire_order(self) -> None:
        data = memoryview(bytes(5) + small_batch())
        batch = RecordBatch(data, 5)
        assert read_header(data, 5) == (
            batch.base_offset,
            batch.size_bytes - 12,
            batch.leader_epoch,
            batch.magic,
            batch.crc,
            batch.attributes,
            batch.last_offset_delta,
            batch.base_timestamp,
            batch.max_timestamp,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.record_count,
        )

    def test_offsets_follow_from_base_and_delta(self) -> None:
        batch = changed(small_batch(), base_offset=2**40, last_offset_delta=2**31 - 1)
        assert batch.last_offset == 2**40 + 2**31 - 1
        assert batch.next_offset == 2**40 + 2**31

    def test_attribute_bits(self) -> None:
        plain = changed(small_batch(), attributes=0)
        assert not plain.is_compressed
        assert not plain.is_transactional
        assert not plain.is_control
        assert plain.timestamp_type == 0
        assert plain.log_append_time is None
        assert plain.delete_horizon_ms is None
        full = changed(small_batch(), attributes=0x7C, base_timestamp=5, max_timestamp=9)
        assert full.codec is Codec.ZSTD
        assert full.is_compressed
        assert full.is_transactional
        assert full.is_control
        assert full.timestamp_type == 1
        assert full.log_append_time == 9
        assert full.delete_horizon_ms == 5

    @pytest.mark.parametrize("codec_id", [5, 6, 7])
    def test_an_unknown_codec_is_an_error_when_asked_for(self, codec_id: int) -> None:
        batch = changed(small_batch(), attributes=codec_id)
        batch.check()
        with pytest.raises(UnsupportedCodec, match=f"^compression id {codec_id} does not exist$"):
            _ = batch.codec

    def test_the_last_sequence_follows_int32_max_with_zero(self) -> None:
        producer: Any = {"producer_id": 1, "producer_epoch": 0, "last_offset_delta": 9}
        assert changed(small_batch(), base_sequence=5, **producer).last_sequence == 14
        assert changed(small_batch(), base_sequence=2**31 - 10, **producer).last_sequence == 2**31 - 1
        assert changed(small_batch(), base_sequence=2**31 - 9, **producer).last_sequence == 0
        assert changed(small_batch(), base_sequence=2**31 - 1, **producer).last_sequence == 8
        assert changed(small_batch(), base_sequence=-1, **producer).last_sequence == -1

    def test_views_share_the_memory_of_the_buffer(self) -> None:
        data = bytearray(b"before") + small_batch() + b"after"
        batch = RecordBatch(memoryview(data), 6)
        assert bytes(batch.view) == small_batch()
        assert bytes(batch.payload) == small_batch()[HEADER_BYTES:]
        data[6 + HEADER_BYTES] ^= 0xFF
        assert batch.payload[0] == small_batch()[HEADER_BYTES] ^ 0xFF

    def test_repr_names_what_a_log_line_needs(self) -> None:
        assert repr(RecordBatch(memoryview(small_batch()))) == (
            "RecordBatch(base_offset=100, last_offset=102, record_count=3, size_bytes=475, "
            "attributes=0x0, producer_id=-1)"
        )

    @pytest.mark.parametrize("left", [0, 1, 60])
    def test_a_cut_header_is_refused(self, left: int) -> None:
        data = memoryview(bytes(3) + bytes(small_batch())[:left])
        with pytest.raises(CorruptBatch, match=f"^a batch header takes 61 bytes, {left} are left$"):
            RecordBatch(data, 3)

    def test_a_position_past_the_end_is_refused(self) -> None:
        with pytest.raises(CorruptBatch, match=r"^a batch header takes 61 bytes, 0 are left$"):
            RecordBatch(memoryview(small_batch()), 10_000)


class TestCheck:
    @pytest.mark.parametrize("codec", list(Codec))
    def test_a_sound_batch_passes(self, codec: Codec) -> None:
        RecordBatch(memoryview(small_batch(codec))).check()

    def test_every_changed_byte_behind_the_checksum_is_noticed(self) -> None:
        sound = small_batch()
        for position in range(16, len(sound)):
            data = bytearray(sound)
            data[position] ^= 0x10
            with pytest.raises(CorruptBatch):
                RecordBatch(memoryview(data)).check()

    def test_the_checksum_error_says_both_values(self) -> None:
        data = small_batch()
        stored = crc32c.crc32c(bytes(data[21:]))
        data[-1] ^= 1
        with pytest.raises(CorruptBatch) as caught:
            RecordBatch(memoryview(data)).check()
        actual = crc32c.crc32c(bytes(data[21:]))
        assert str(caught.value) == (
            f"batch at offset 100: the stored CRC is {stored:#010x}, the bytes have {actual:#010x}"
        )

    @pytest.mark.parametrize("magic", [-1, 0, 1, 3])
    def test_another_magic_is_refused(self, magic: int) -> None:
        with pytest.raises(CorruptBatch, match=f"^batch at offset 100: magic {magic} instead of 2$"):
            changed(small_batch(), magic=magic).check()

    @pytest.mark.parametrize("length", [-(2**31), -13, -1, 0, 48])
    def test_a_length_below_the_header_is_refused(self, length: int) -> None:
        data = small_batch()
        struct.pack_into(">i", data, 8, length)
        with pytest.raises(CorruptBatch) as caught:
            RecordBatch(memoryview(data)).check()
        assert str(caught.value) == (
            f"batch at offset 100: a size of {length + 12} bytes is less than its header's 61"
        )

    def test_a_batch_that_leaves_its_buffer_is_refused(self) -> None:
        data = small_batch()
        for end in range(HEADER_BYTES, len(data)):
            with pytest.raises(CorruptBatch) as caught:
                RecordBatch(memoryview(data)[:end]).check()
            assert str(caught.value) == f"batch at offset 100: {len(data)} bytes long, {end} are left"

    def test_offset_and_leader_epoch_are_outside_the_checksum(self) -> None:
        changed(small_batch(), sealed=False, base_offset=-5, leader_epoch=99).check()


class TestCheckProduced:
    @pytest.mark.parametrize(
        ("fields", "text"),
        [
            ({"record_count": 4}, "the batch counts 4 records, its last offset delta is 2"),
            ({"record_count": 0}, "the batch counts 0 records, its last offset delta is 2"),
            (
                {"record_count": 0, "last_offset_delta": -1},
                "the batch counts 0 records, its last offset delta is -1",
            ),
            (
                {"record_count": -3, "last_offset_delta": -4},
                "the batch counts -3 records, its last offset delta is -4",
            ),
            ({"attributes": 0x20}, "clients may not write control batches"),
            ({"attributes": 0x40}, "clients may not set a delete horizon"),
            ({"attributes": 0x10}, "a transactional batch needs a producer id"),
            (
                {"producer_id": 5, "producer_epoch": 0},
                "producer id 5 comes with epoch 0 and sequence -1",
            ),
            (
                {"producer_id": 5, "base_sequence": 0},
                "producer id 5 comes with epoch -1 and sequence 0",
            ),
        ],
    )
    def test_what_no_client_may_send_is_refused(self, fields: Any, text: str) -> None:
        batch = changed(small_batch(), **fields)
        batch.check()
        with pytest.raises(InvalidRecord) as caught:
            batch.check_produced()
        assert str(caught.value) == text

    def test_plain_idempotent_and_transactional_batches_pass(self) -> None:
        changed(small_batch()).check_produced()
        producer: Any = {"producer_id": 0, "producer_epoch": 0, "base_sequence": 0}
        changed(small_batch(), **producer).check_produced()
        changed(small_batch(), attributes=0x10, **producer).check_produced()


class TestSplitting:
    def test_batches_follow_each_other(self) -> None:
        data = memoryview(small_batch() + small_batch(Codec.LZ4) + small_batch())
        batches = split_batches(data)
        assert [batch.codec for batch in batches] == [Codec.NONE, Codec.LZ4, Codec.NONE]
        assert b"".join(batch.view for batch in batches) == data
        assert [b.position for b in iter_batches(data)] == [b.position for b in batches]

    def test_nothing_holds_no_batch(self) -> None:
        assert split_batches(memoryview(b"")) == []
        assert list(iter_batches(memoryview(b""))) == []

    def test_a_cut_tail_is_an_error_for_split_and_the_end_for_iter(self) -> None:
        first, second = bytes(small_batch()), bytes(small_batch(Codec.GZIP))
        for end in range(len(first) + 1, len(first) + len(second)):
            cut = memoryview((first + second)[:end])
            with pytest.raises(CorruptBatch):
                split_batches(cut)
            assert [batch.position for batch in iter_batches(cut)] == [0]

    def test_bytes_that_are_no_batch_are_an_error_for_both(self) -> None:
        data = bytes(small_batch())
        for tail, text in [
            (bytes(100), "batch at offset 0: magic 0 instead of 2"),
            (HEADER.pack(4, 0, 0, 2, *[0] * 9), "a size of 12 bytes is less than its header's 61"),
        ]:
            for read in (split_batches, lambda view: list(iter_batches(view))):
                with pytest.raises(CorruptBatch, match=text):
                    read(memoryview(data + tail))

    def test_a_short_tail_with_an_impossible_length_is_no_cut_batch(self) -> None:
        tail = struct.pack(">qi", 200, -1)
        with pytest.raises(
            CorruptBatch, match=r"^batch at offset 200: a size of 11 bytes is less than its header's 61$"
        ):
            list(iter_batches(memoryview(small_batch() + tail)))

    @given(st.binary(max_size=300))
    def test_rubbish_is_an_error_or_nothing(self, rubbish: bytes) -> None:
        for read in (split_batches, lambda view: list(iter_batches(view))):
            try:
                batches = read(memoryview(rubbish))
            except CorruptBatch:
                continue
            assert sum(batch.size_bytes for batch in batches) <= len(rubbish)


class TestPatching:
    def test_offset_and_epoch_change_in_place_and_the_checksum_stays_right(self) -> None:
        data = bytearray(b"12345") + small_batch()
        before = bytes(data)
        patch_batch(memoryview(data), 5, 2**40, 12)
        batch = RecordBatch(memoryview(data), 5)
        batch.check()
        assert (batch.base_offset, batch.leader_epoch) == (2**40, 12)
        assert bytes(data[:5] + data[13:17] + data[21:]) == before[:5] + before[13:17] + before[21:]

    def test_log_append_time_replaces_every_timestamp(self) -> None:
        data = bytearray(b"12345") + build_batch(ROWS) + b"tail"
        end = len(data) - 4
        stamp_log_append_time(data, 5, NOW + 12_345)
        batch = RecordBatch(memoryview(data), 5)
        batch.check()
        assert batch.timestamp_type == 1
        assert batch.max_timestamp == NOW + 12_345
        assert batch.base_timestamp == NOW
        assert {record.timestamp for record in batch.records(limit=LIMIT)} == {NOW + 12_345}
        assert data[end:] == b"tail"

    def test_log_append_time_keeps_the_other_attributes(self) -> None:
        data = small_batch(Codec.GZIP)
        stamp_log_append_time(memoryview(data), 0, 5)
        stamp_log_append_time(memoryview(data), 0, 6)
        batch = RecordBatch(memoryview(data))
        batch.check()
        assert (batch.codec, batch.attributes, batch.max_timestamp) == (Codec.GZIP, 9, 6)

    @pytest.mark.parametrize("transactional", [True, False])
    def test_another_producer_takes_the_batch_over_with_its_records(self, transactional: bool) -> None:
        data = bytearray(b"12345") + build_batch(ROWS, codec=Codec.LZ4, transactional=not transactional)
        patch_batch(data, 5, 900, 7)
        stamp_log_append_time(data, 5, NOW + 12_345)
        stamp_producer(
            data, 5, producer_id=8, producer_epoch=3, base_sequence=40, transactional=transactional
        )
        batch = RecordBatch(memoryview(data), 5)
        batch.check()
        batch.check_produced()
        assert (batch.base_offset, batch.leader_epoch, batch.timestamp_type) == (0, -1, 0)
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (8, 3, 40)
        assert batch.is_transactional is transactional
        assert [(r.timestamp, r.key, r.value, r.headers) for r in batch.records(limit=LIMIT)] == ROWS


class TestRecords:
    @pytest.mark.parametrize("codec", list(Codec))
    def test_records_come_back(self, codec: Codec) -> None:
        batch = RecordBatch(memoryview(build_batch(ROWS, codec=codec, base_offset=50, leader_epoch=3)))
        assert batch.codec is codec
        records = batch.records(limit=LIMIT, topic="t", partition=4)
        assert [(r.timestamp, r.key, r.value, r.headers) for r in records] == ROWS
        assert [r.offset for r in records] == list(range(50, 50 + len(ROWS)))
        assert {(r.topic, r.partition, r.leader_epoch, r.timestamp_type) for r in records} == {("t", 4, 3, 0)}

    @given(rows(), st.sampled_from(Codec), st.integers(0, 2**62))
    def test_any_records_come_back(self, expected: list[Row], codec: Codec, base_offset: int) -> None:
        batch = RecordBatch(memoryview(build_batch(expected, codec=codec, base_offset=base_offset)))
        batch.check()
        batch.check_produced()
        records = batch.records(limit=LIMIT)
        assert [(r.timestamp, r.key, r.value, r.headers) for r in records] == expected
        assert [r.offset for r in records] == list(range(base_offset, base_offset + len(expected)))
        assert batch.max_timestamp == max(row[0] for row in expected)

    def test_records_below_the_start_offset_are_left_out(self) -> None:
        batch = RecordBatch(memoryview(small_batch(Codec.ZSTD)))
        assert [record.offset for record in batch.records(limit=LIMIT, start_offset=101)] == [101, 102]

    def test_the_limit_holds_for_the_decompressed_payload(self) -> None:
        batch = RecordBatch(memoryview(small_batch(Codec.ZSTD)))
        with pytest.raises(TooLarge, match=r"^zstd data passes the limit of 100 bytes$"):
            batch.records(limit=100)

    @pytest.mark.parametrize(
        ("count", "text"),
        [
            (2, "138 bytes follow the last record"),
            (4, "the payload ends after 3 of 4 records"),
            (-1, "-1 records cannot be in 414 bytes"),
            (2**31 - 1, "2147483647 records cannot be in 414 bytes"),
        ],
    )
    def test_a_wrong_count_is_refused(self, count: int, text: str) -> None:
        batch = changed(small_batch(), record_count=count)
        batch.check()
        with pytest.raises(InvalidRecord) as caught:
            batch.records(limit=LIMIT)
        assert str(caught.value) == text

    def test_an_empty_batch_left_by_compaction_has_no_records(self) -> None:
        data = assemble_batch(
            b"", record_count=0, last_offset_delta=4, base_timestamp=1, max_timestamp=2, base_offset=10
        )
        batch = RecordBatch(memoryview(data))
        batch.check()
        assert (batch.records(limit=0), batch.next_offset) == ([], 15)

    @given(st.data())
    def test_damage_with_a_right_checksum_is_a_record_error_and_nothing_else(
        self, data: st.DataObject
    ) -> None:
        codec = data.draw(st.sampled_from(Codec))
        batch_bytes = small_batch(codec)
        for _ in range(data.draw(st.integers(1, 4))):
            position = data.draw(st.integers(21, len(batch_bytes) - 1))
            batch_bytes[position] = data.draw(st.integers(0, 255))
        seal_batch(batch_bytes, 0, len(batch_bytes))
        batch = RecordBatch(memoryview(batch_bytes))
        batch.check()
        try:
            records: list[Any] = batch.records(limit=100_000)
        except RecordError:
            return
        assert len(records) <= max(batch.record_count, 0)

    def test_a_cut_payload_with_a_right_checksum_is_refused_wherever_it_is_cut(self) -> None:
        sound = RecordBatch(memoryview(build_batch(ROWS)))
        for size in range(len(sound.payload)):
            cut = assemble_batch(
                sound.payload[:size],
                record_count=sound.record_count,
                last_offset_delta=sound.last_offset_delta,
                base_timestamp=NOW,
                max_timestamp=NOW,
            )
            batch = RecordBatch(memoryview(cut))
            batch.check()
            with pytest.raises(InvalidRecord):
                batch.records(limit=LIMIT)

    def test_a_control_batch_reads_like_any_other(self) -> None:
        marker = end_txn_marker(
            committed=True, coordinator_epoch=3, timestamp=NOW, producer_id=9, producer_epoch=1
        )
        (record,) = RecordBatch(memoryview(marker)).records(limit=LIMIT)
        assert (record.key, record.value) == (b"\0\0\0\1", b"\0\0\0\0\0\3")
