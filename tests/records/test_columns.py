"""Fetched bytes to Arrow columns: types, bounds, limits, transactions, damage; with both kernels."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import Misuse
from barnabas.records import columns
from barnabas.records.batch import patch_batch, stamp_log_append_time
from barnabas.records.builder import assemble_batch, build_batch, end_txn_marker
from barnabas.records.codecs import Codec
from barnabas.records.columns import COLUMNS, ColumnReader, read_columns, schema_of
from barnabas.records.errors import CorruptBatch, TooLarge
from barnabas.records.faults import MalformedRecord
from barnabas.records.kernel import Kernel
from tests.records._kernels import KERNELS, Row, rows

NOW = 1_700_000_000_000


@pytest.fixture(params=KERNELS, autouse=True)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    chosen: Kernel = request.param
    monkeypatch.setattr(columns, "ColumnBuilder", chosen.ColumnBuilder)
    return chosen


def batch(*values: bytes | None, at: int, **options: Any) -> bytes:
    """A batch whose records have these values, the first one at offset `at`."""
    return bytes(build_batch([(NOW, None, value, ()) for value in values], base_offset=at, **options))


def values_of(batches: Iterator[Any]) -> list[bytes | None]:
    return [value for one in batches for value in one.column("value").to_pylist()]


class TestTypes:
    def test_the_schema_is_what_spark_demands(self) -> None:
        assert [(field.name, str(field.type)) for field in schema_of(list(COLUMNS))] == [
            ("key", "binary"),
            ("value", "binary"),
            ("topic", "string"),
            ("partition", "int32"),
            ("offset", "int64"),
            ("timestamp", "timestamp[us, tz=UTC]"),
            ("timestampType", "int32"),
            ("headers", "list<element: struct<key: string, value: binary>>"),
        ]

    def test_every_column_has_its_values(self) -> None:
        data: list[Row] = [(NOW, b"k", b"v", (("h", b"x"), ("n", None))), (NOW + 1, None, None, ())]
        (found,) = read_columns(build_batch(data, base_offset=5), list(COLUMNS), topic="t", partition=3)
        found.validate(full=True)
        first, second = found.to_pylist()
        assert second.pop("timestamp").timestamp() == (NOW + 1) / 1000
        assert second == {
            "key": None,
            "value": None,
            "topic": "t",
            "partition": 3,
            "offset": 6,
            "timestampType": 0,
            "headers": None,
        }
        assert first["headers"] == [{"key": "h", "value": b"x"}, {"key": "n", "value": None}]

    def test_only_the_wanted_columns_are_made_in_the_wanted_order(self) -> None:
        (found,) = read_columns(batch(b"v", at=5), ["offset", "value"])
        assert found.to_pydict() == {"offset": [5], "value": [b"v"]}

    def test_a_column_that_does_not_exist_is_misuse(self) -> None:
        with pytest.raises(Misuse, match=r"^no column is called keys; there are key, value, topic, "):
            schema_of(["keys"])

    def test_log_append_time_is_said(self) -> None:
        data = bytearray(batch(b"v", b"w", at=0))
        stamp_log_append_time(data, 0, 77_000)
        (found,) = read_columns(data, ["timestamp", "timestampType"])
        assert found.column("timestampType").to_pylist() == [1, 1]
        assert found.column("timestamp").cast(pa.int64()).to_pylist() == [77_000_000] * 2

    def test_times_past_64_bits_of_microseconds_stop_at_the_end(self) -> None:
        data = build_batch([(2**62, None, None, ()), (NOW, None, None, ()), (-(2**62), None, None, ())])
        (found,) = read_columns(data, ["timestamp"])
        assert found.column("timestamp").cast(pa.int64()).to_pylist() == [
            (2**63 - 1) // 1000 * 1000,
            NOW * 1000,
            -((2**63 - 1) // 1000) * 1000,
        ]

    @given(rows(max_size=20))
    def test_any_records_come_back(self, rows: list[Row]) -> None:
        data = build_batch(rows, base_offset=9) if rows else b""
        found = pa.Table.from_batches(read_columns(data), schema_of())
        found.validate(full=True)
        assert found["offset"].to_pylist() == list(range(9, 9 + len(rows)))
        assert found["key"].to_pylist() == [row[1] for row in rows]
        assert found["value"].to_pylist() == [row[2] for row in rows]
        assert found["headers"].to_pylist() == [
            [{"key": key, "value": value} for key, value in row[3]] or None for row in rows
        ]


class TestSeveralBatches:
    @pytest.mark.parametrize("codec", list(Codec))
    def test_plain_and_compressed_batches_follow_each_other(self, codec: Codec) -> None:
        data = (
            batch(b"a" * 99, b"b" * 99, at=0, codec=codec)
            + batch(b"c", at=2)
            + batch(b"d" * 99, at=3, codec=codec)
        )
        assert values_of(read_columns(data)) == [b"a" * 99, b"b" * 99, b"c", b"d" * 99]

    def test_bounds_cut_rows_and_whole_batches(self) -> None:
        data = b"".join(batch(b"%d" % at, b"%d" % (at + 1), at=at) for at in range(0, 10, 2))
        assert values_of(read_columns(data, start_offset=3, end_offset=8)) == [b"3", b"4", b"5", b"6", b"7"]

    def test_a_cut_last_batch_is_left_for_the_next_fetch(self) -> None:
        whole, cut = batch(b"a", at=0), batch(b"b", at=1)
        for end in range(len(cut)):
            reader = ColumnReader(["value"])
            assert list(reader.feed(whole + cut[:end])) == []
            assert (reader.rows, reader.next_offset) == (1, 1)

    def test_an_emptied_batch_moves_the_offset(self) -> None:
        emptied = assemble_batch(
            b"", record_count=0, last_offset_delta=4, base_timestamp=0, max_timestamp=0, base_offset=10
        )
        reader = ColumnReader(["value"], start_offset=10)
        list(reader.feed(emptied))
        assert (reader.rows, reader.next_offset) == (0, 15)

    def test_no_bytes_are_no_rows(self) -> None:
        assert list(read_columns(b"")) == []


class TestLimits:
    def test_arrow_batches_have_at_most_so_many_rows(self) -> None:
        data = batch(*(b"%d" % i for i in range(7)), at=0) + batch(*(b"%d" % i for i in range(7, 10)), at=7)
        found = list(read_columns(data, ["value"], rows_max=3))
        assert [one.num_rows for one in found] == [3, 3, 3, 1]
        assert values_of(iter(found)) == [b"%d" % i for i in range(10)]

    def test_arrow_batches_have_about_so_many_bytes(self) -> None:
        data = batch(b"a" * 60, b"b" * 60, b"c" * 200, b"d", at=0)
        assert [one.num_rows for one in read_columns(data, ["value"], bytes_max=100)] == [1, 1, 1, 1]
        assert [one.num_rows for one in read_columns(data, ["value"], bytes_max=120)] == [2, 1, 1]

    def test_rows_wait_for_the_next_fetch_until_the_batch_is_full(self) -> None:
        reader = ColumnReader(["value"], rows_max=4)
        assert list(reader.feed(batch(b"0", b"1", b"2", at=0))) == []
        (full,) = reader.feed(batch(b"3", b"4", at=3))
        assert full.num_rows == 4
        assert reader.next_offset == 5
        rest = reader.flush()
        assert rest is not None
        assert rest.column("value").to_pylist() == [b"4"]
        assert reader.flush() is None

    def test_what_decompresses_past_the_limit_is_refused(self) -> None:
        reader = ColumnReader(["value"], payload_bytes_max=1000)
        with pytest.raises(TooLarge):
            list(reader.feed(batch(b"a" * 5000, at=0, codec=Codec.GZIP)))

    def test_a_reader_is_done_at_its_end_offset(self) -> None:
        reader = ColumnReader(["value"], start_offset=1, end_offset=3)
        assert not reader.done
        list(reader.feed(batch(b"0", b"1", at=0)))
        assert (reader.done, reader.next_offset) == (False, 2)
        list(reader.feed(batch(b"2", b"3", b"4", at=2) + b"what follows is not looked at"))
        assert (reader.done, reader.next_offset, reader.rows) == (True, 3, 2)

    def test_a_fetch_that_is_read_again_brings_nothing_twice(self) -> None:
        reader = ColumnReader(["value"])
        for _ in range(2):
            list(reader.feed(batch(b"0", b"1", at=0)))
        assert reader.rows == 2


class TestTransactions:
    """Producer 7 aborts at offsets 1 and 5, producer 8 commits; the log of one partition."""

    def log(self) -> bytes:
        def part(value: bytes, at: int, producer: int) -> bytes:
            return batch(
                value, at=at, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True
            )

        def marker(at: int, producer: int, committed: bool) -> bytes:
            return bytes(
                end_txn_marker(
                    committed=committed,
                    coordinator_epoch=1,
                    timestamp=NOW,
                    producer_id=producer,
                    producer_epoch=0,
                    base_offset=at,
                )
            )

        return b"".join(
            (
                batch(b"plain 0", at=0),
                part(b"aborted 1", 1, 7),
                part(b"kept 2", 2, 8),
                part(b"aborted 3", 3, 7),
                marker(4, 7, False),
                part(b"aborted 5", 5, 7),
                marker(6, 7, False),
                part(b"kept 7", 7, 7),
                marker(8, 8, True),
                marker(9, 7, True),
            )
        )

    def test_read_committed_drops_from_the_first_offset_to_the_abort_marker(self) -> None:
        found = values_of(read_columns(self.log(), aborted=[(7, 5), (7, 1)]))
        assert found == [b"plain 0", b"kept 2", b"kept 7"]

    def test_read_uncommitted_keeps_all_but_the_markers(self) -> None:
        found = values_of(read_columns(self.log()))
        assert found == [
            b"plain 0",
            b"aborted 1",
            b"kept 2",
            b"aborted 3",
            b"aborted 5",
            b"kept 7",
        ]

    def test_no_aborted_transactions_drop_nothing(self) -> None:
        assert len(values_of(read_columns(self.log(), aborted=[]))) == 6

    def test_a_fetch_in_the_middle_of_an_aborted_transaction(self) -> None:
        reader = ColumnReader(["value"], start_offset=3)
        list(reader.feed(self.log(), aborted=[(7, 1), (7, 5)]))
        rest = reader.flush()
        assert rest is not None
        assert rest.column("value").to_pylist() == [b"kept 7"]
        assert reader.next_offset == 10

    def test_markers_below_the_start_still_end_their_transactions(self) -> None:
        assert values_of(read_columns(self.log(), aborted=[(7, 1), (7, 5)], start_offset=7)) == [b"kept 7"]

    def test_batches_without_a_transaction_of_the_same_producer_stay(self) -> None:
        data = batch(b"idempotent", at=1, producer_id=7, producer_epoch=0, base_sequence=0)
        assert values_of(read_columns(data, aborted=[(7, 0)])) == [b"idempotent"]


class TestDamage:
    def test_a_wrong_crc_is_found_unless_it_is_not_looked_at(self) -> None:
        data = bytearray(batch(b"value", at=4))
        data[-3] ^= 1
        with pytest.raises(CorruptBatch, match=r"^batch at offset 4: the stored CRC is "):
            list(read_columns(data))
        reader = ColumnReader(["value"], check_crc=False)
        list(reader.feed(data))
        assert reader.rows == 1

    def test_rows_before_a_malformed_batch_are_kept(self) -> None:
        good, bad = batch(b"a", at=0), bytearray(batch(b"b", b"c", at=1))
        bad[60] = 3  # the record count
        reader = ColumnReader(["value"], check_crc=False)
        with pytest.raises(
            MalformedRecord, match=r"^the payload ends after 2 of 3 records|^3 records cannot be in"
        ):
            list(reader.feed(good + bad))
        assert (reader.rows, reader.next_offset) == (1, 1)

    def test_a_magic_of_the_past_is_named(self) -> None:
        data = bytearray(batch(b"a", at=0))
        data[16] = 1
        with pytest.raises(CorruptBatch, match="magic 1"):
            list(read_columns(data))

    def test_a_payload_that_does_not_decompress_is_corrupt(self) -> None:
        data = bytearray(batch(b"a" * 500, at=0, codec=Codec.ZSTD))
        data[70] ^= 0xFF
        reader = ColumnReader(["value"], check_crc=False)
        with pytest.raises(CorruptBatch):
            list(reader.feed(data))

    @given(st.binary(max_size=200))
    def test_rubbish_is_a_record_error_or_nothing(self, data: bytes) -> None:
        with suppress(CorruptBatch, MalformedRecord):
            list(read_columns(data))


def test_offsets_come_from_the_batch_that_the_broker_patched() -> None:
    data = bytearray(batch(b"a", b"b", at=0))
    patch_batch(data, 0, 2**40, 3)
    (found,) = read_columns(data, ["offset"])
    assert found.column("offset").to_pylist() == [2**40, 2**40 + 1]
