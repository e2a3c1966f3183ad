"""Building batches: the size limit, compression, producer state, ready payloads and markers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import Misuse
from barnabas.records.batch import ATTRIBUTE_DELETE_HORIZON, HEADER_BYTES, RecordBatch, seal_batch
from barnabas.records.builder import (
    BatchBuilder,
    EndTxnMarker,
    Row,
    assemble_batch,
    build_batch,
    end_txn_marker,
    read_end_txn_marker,
)
from barnabas.records.codecs import Codec
from barnabas.records.errors import InvalidRecord
from tests.records.samples import LIMIT, NOW, ROWS, rows
from tests.records.test_codecs import noise


def view(data: bytearray) -> RecordBatch:
    batch = RecordBatch(memoryview(data))
    batch.check()
    return batch


class TestTheSizeLimit:
    @pytest.mark.parametrize("codec", list(Codec))
    @pytest.mark.parametrize("limit", [61, 100, 500, 5000])
    def test_a_batch_never_passes_it(self, limit: int, codec: Codec) -> None:
        builder = BatchBuilder(limit, codec=codec)
        batches = []
        for row in ROWS * 3:
            if not builder.append(*row):
                batches.append((len(builder), builder.build()))
                assert builder.append(*row), "the first record of a batch always fits"
        batches.append((len(builder), builder.build()))
        for count, data in batches:
            assert len(data) <= limit or count == 1
        found = [r for _, data in batches for r in view(data).records(limit=LIMIT)]
        assert [(r.timestamp, r.key, r.value, r.headers) for r in found] == ROWS * 3

    @given(rows(max_size=40), st.integers(61, 1500), st.sampled_from(Codec))
    def test_it_holds_for_any_records(self, records: list[Row], limit: int, codec: Codec) -> None:
        builder = BatchBuilder(limit, codec=codec)
        for row in records:
            size_before = builder.size_bytes
            if not builder.append(*row):
                assert builder.size_bytes == size_before
                count = builder.record_count
                data = builder.build()
                assert len(data) <= limit or count == 1
                assert builder.append(*row)

    def test_the_announced_size_is_that_of_the_plain_batch(self) -> None:
        builder = BatchBuilder(100_000)
        for row in ROWS:
            assert builder.append(*row)
        size = builder.size_bytes
        assert size == len(builder.build())
        assert builder.size_bytes == HEADER_BYTES

    def test_a_batch_that_is_sealed_later_lacks_only_its_crc(self) -> None:
        builder = BatchBuilder(10_000)
        builder.append(*ROWS[0])
        data = builder.build(seal=False)
        assert RecordBatch(memoryview(data)).crc == 0
        seal_batch(data, 0, len(data))
        assert data == build_batch(ROWS[:1])

    def test_the_last_byte_can_be_used(self) -> None:
        size = len(build_batch(ROWS[:2]))
        for limit, fits in [(size, True), (size - 1, False)]:
            builder = BatchBuilder(limit)
            assert builder.append(*ROWS[0])
            assert builder.append(*ROWS[1]) is fits

    def test_incompressible_data_is_stored_plain(self) -> None:
        for codec in Codec:
            data = build_batch([(NOW, None, noise(5000), ())], codec=codec)
            assert view(data).codec is Codec.NONE
            assert len(data) == len(build_batch([(NOW, None, noise(5000), ())]))

    def test_an_expected_ratio_fills_the_batch_further(self) -> None:
        row: Row = (NOW, b"key", b"the same text again and again " * 3, ())

        def fill(ratio: float) -> bytearray:
            builder = BatchBuilder(2000, codec=Codec.ZSTD, expected_ratio=ratio)
            while builder.append(*row):
                pass
            return builder.build()

        assert view(fill(0.25)).record_count > 3 * view(fill(1.0)).record_count
        assert len(fill(0.25)) < 2000

    @pytest.mark.parametrize("limit", [-1, 0, 60, 2**31])
    def test_an_impossible_limit_is_misuse(self, limit: int) -> None:
        with pytest.raises(Misuse, match=f"^a batch of at most {limit} bytes cannot be built$"):
            BatchBuilder(limit)

    @pytest.mark.parametrize("ratio", [-1.0, 0.0, 1.5])
    def test_an_impossible_ratio_is_misuse(self, ratio: float) -> None:
        with pytest.raises(Misuse, match=f"^the expected ratio {ratio} is not above 0 and at most 1$"):
            BatchBuilder(1000, expected_ratio=ratio)


class TestTheHeader:
    def test_a_plain_batch_has_no_producer(self) -> None:
        batch = view(build_batch(ROWS[:1]))
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
        assert (batch.base_offset, batch.leader_epoch, batch.attributes) == (0, -1, 0)

    def test_producer_state_and_transaction_are_written(self) -> None:
        batch = view(
            build_batch(
                ROWS,
                codec=Codec.LZ4,
                base_offset=2**40,
                leader_epoch=5,
                producer_id=2**50,
                producer_epoch=2**15 - 1,
                base_sequence=2**31 - 1,
                transactional=True,
            )
        )
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (2**50, 32767, 2**31 - 1)
        assert (batch.base_offset, batch.leader_epoch) == (2**40, 5)
        assert batch.is_transactional
        assert batch.codec is Codec.LZ4
        assert not batch.is_control

    def test_times_and_counts_come_from_the_records(self) -> None:
        batch = view(build_batch(ROWS))
        assert batch.base_timestamp == NOW, "that of the first record, not the lowest"
        assert batch.max_timestamp == NOW + 70_000
        assert (batch.record_count, batch.last_offset_delta) == (len(ROWS), len(ROWS) - 1)

    def test_a_level_is_passed_to_the_codec(self) -> None:
        text: list[Row] = [(NOW, None, b"%d" % (i * i), ()) for i in range(2000)]
        fast = build_batch(text, codec=Codec.ZSTD, level=-5)
        assert len(build_batch(text, codec=Codec.ZSTD, level=19)) < len(fast)


class TestReuse:
    def test_building_empties_the_builder(self) -> None:
        builder = BatchBuilder(10_000)
        builder.append(NOW, b"a", b"1")
        assert (len(builder), builder.record_count, builder.max_timestamp) == (1, 1, NOW)
        builder.build()
        assert (len(builder), builder.record_count, builder.max_timestamp) == (0, 0, -1)
        builder.append(NOW + 9, b"b", b"2")
        (record,) = view(builder.build()).records(limit=LIMIT)
        assert (record.offset, record.timestamp, record.key) == (0, NOW + 9, b"b")

    def test_an_empty_batch_is_misuse(self) -> None:
        with pytest.raises(Misuse, match=r"^a batch without records cannot be built$"):
            BatchBuilder(1000).build()
        with pytest.raises(Misuse, match=r"^a batch without records cannot be built$"):
            build_batch([])


class TestAssembling:
    @pytest.mark.parametrize("codec", list(Codec))
    def test_kept_records_keep_their_offsets_and_times(self, codec: Codec) -> None:
        whole = view(build_batch(ROWS, base_offset=40))
        sizes = [len(build_batch(ROWS[: n + 1])) - HEADER_BYTES for n in range(len(ROWS))]
        kept = bytes(whole.payload[sizes[0] : sizes[1]]) + bytes(whole.payload[sizes[4] : sizes[5]])
        data = assemble_batch(
            kept,
            record_count=2,
            last_offset_delta=whole.last_offset_delta,
            base_offset=40,
            base_timestamp=whole.base_timestamp,
            max_timestamp=whole.max_timestamp,
            leader_epoch=6,
            attributes=0x10 | ATTRIBUTE_DELETE_HORIZON | Codec.GZIP,
            codec=codec,
            producer_id=1,
            producer_epoch=2,
            base_sequence=3,
        )
        batch = view(data)
        assert batch.codec is codec
        assert [(r.offset, r.key) for r in batch.records(limit=LIMIT)] == [(41, None), (45, b"with headers")]
        assert batch.next_offset == whole.next_offset
        assert batch.is_transactional
        assert batch.delete_horizon_ms == NOW
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (1, 2, 3)
        assert batch.leader_epoch == 6


class TestMarkers:
    @pytest.mark.parametrize("committed", [False, True])
    def test_a_marker_has_kafkas_bytes(self, committed: bool) -> None:
        data = end_txn_marker(
            committed=committed,
            coordinator_epoch=0x01020304,
            timestamp=NOW,
            producer_id=77,
            producer_epoch=8,
            base_offset=1000,
            leader_epoch=2,
        )
        batch = view(data)
        assert len(data) == 78, "the size that Kafka reckons with"
        assert batch.attributes == 0x30
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (77, 8, -1)
        assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (1000, 1000, 2)
        assert (batch.base_timestamp, batch.max_timestamp) == (NOW, NOW)
        (record,) = batch.records(limit=LIMIT)
        assert record.key == bytes([0, 0, 0, committed])
        assert record.value == b"\0\0\1\2\3\4"
        assert read_end_txn_marker(batch) == EndTxnMarker(committed, 0x01020304)

    def control(self, key: bytes | None, value: bytes | None, attributes: int = 0x30) -> RecordBatch:
        data = build_batch([(NOW, key, value, ())])
        data[22] = attributes
        seal_batch(data, 0, len(data))
        return view(data)

    def test_kraft_records_are_no_markers(self) -> None:
        assert read_end_txn_marker(self.control(b"\0\0\0\2", b"leader change")) is None

    def test_later_versions_may_be_longer(self) -> None:
        batch = self.control(b"\0\1\0\1 and more", b"\0\1\0\0\0\5 and more")
        assert read_end_txn_marker(batch) == EndTxnMarker(True, 5)

    @pytest.mark.parametrize(
        ("key", "value", "text"),
        [
            (None, b"\0\0\0\0\0\0", "the key of a control record has 4 bytes, not None"),
            (b"\0\0\0", b"\0\0\0\0\0\0", r"the key of a control record has 4 bytes, not b'\x00\x00\x00'"),
            (b"\xff\xff\0\0", b"\0\0\0\0\0\0", "version -1 of a control record's key does not exist"),
            (b"\0\0\0\1", None, "the value of a transaction marker has 6 bytes, not None"),
            (b"\0\0\0\1", b"\0\0", r"the value of a transaction marker has 6 bytes, not b'\x00\x00'"),
            (
                b"\0\0\0\1",
                b"\xff\xfe\0\0\0\0",
                "version -2 of a transaction marker's value does not exist",
            ),
        ],
    )
    def test_a_malformed_marker_is_refused(self, key: bytes | None, value: bytes | None, text: str) -> None:
        with pytest.raises(InvalidRecord) as caught:
            read_end_txn_marker(self.control(key, value))
        assert str(caught.value) == text

    def test_only_a_control_batch_of_one_record_can_be_one(self) -> None:
        for batch in (
            view(build_batch(ROWS[:1])),
            self.control(b"\0\0\0\1", b"\0\0\0\0\0\0", attributes=0x31),
        ):
            with pytest.raises(InvalidRecord, match=r"is not a control batch of one record$"):
                read_end_txn_marker(batch)
