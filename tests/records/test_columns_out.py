"""Arrow columns to record batches: types and shapes of columns, limits, producer state; both kernels."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import Misuse
from barnabas.records import columns_out
from barnabas.records import kernel as running
from barnabas.records.batch import RecordBatch, split_batches
from barnabas.records.codecs import Codec, decompress
from barnabas.records.columns import read_columns, schema_of
from barnabas.records.columns_out import write_columns
from barnabas.records.kernel import Kernel, Record
from tests.records._kernels import KERNELS, Row, rows

NOW = 1_700_000_000_000


@pytest.fixture(params=KERNELS, autouse=True)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    chosen: Kernel = request.param
    monkeypatch.setattr(columns_out, "PayloadBuilder", chosen.PayloadBuilder)
    return chosen


def batches_of(data: Any, **options: Any) -> list[RecordBatch]:
    found = [split_batches(memoryview(one)) for one in write_columns(data, timestamp=NOW, **options)]
    assert all(len(one) == 1 for one in found)
    for one in found:
        one[0].check()
        one[0].check_produced()
    return [one[0] for one in found]


def records_of(data: Any, **options: Any) -> list[Record]:
    return [
        record
        for batch in batches_of(data, **options)
        for record in running.decode(
            decompress(batch.codec, batch.payload, 2**30), batch.record_count, 0, batch.base_timestamp
        )
    ]


def table(**columns: Any) -> Any:
    return pa.table(columns)


class TestTypesOfColumns:
    @pytest.mark.parametrize(
        "kind",
        [
            pa.binary(),
            pa.string(),
            pa.large_binary(),
            pa.large_string(),
            pa.binary_view(),
            pa.string_view(),
            pa.dictionary(pa.int8(), pa.string()),
            pa.dictionary(pa.int32(), pa.binary()),
        ],
        ids=str,
    )
    def test_bytes_and_text_of_every_kind(self, kind: Any) -> None:
        column = pa.array([b"a", None, b"", "é".encode()], pa.binary())
        text = pa.array(["a", None, "", "é"], pa.string())
        data = (text if "string" in str(kind) else column).cast(kind)
        assert [r.value for r in records_of(table(value=data))] == [b"a", None, b"", "é".encode()]
        assert [r.key for r in records_of(table(key=data))] == [b"a", None, b"", "é".encode()]

    def test_bytes_of_a_fixed_size(self) -> None:
        data = pa.array([b"abc", None, b"xyz"], pa.binary(3))
        assert [r.value for r in records_of(table(value=data))] == [b"abc", None, b"xyz"]

    def test_a_column_of_nothing_is_null(self) -> None:
        found = records_of(
            table(value=pa.nulls(2), key=pa.nulls(2), headers=pa.nulls(2), timestamp=pa.nulls(2))
        )
        assert [(r.key, r.value, r.headers, r.timestamp) for r in found] == [(None, None, (), NOW)] * 2

    @pytest.mark.parametrize(("unit", "factor"), [("s", 0.001), ("ms", 1), ("us", 1000), ("ns", 1_000_000)])
    def test_timestamps_of_every_unit(self, unit: str, factor: float) -> None:
        data = pa.array([int(NOW * factor), None], pa.timestamp(unit, tz="UTC"))
        assert [r.timestamp for r in records_of(table(timestamp=data))] == [NOW, NOW]

    def test_timestamps_as_numbers_are_milliseconds(self) -> None:
        found = records_of(table(timestamp=pa.array([5, None, -7], pa.int64())))
        assert [r.timestamp for r in found] == [5, NOW, -7]

    HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

    @pytest.mark.parametrize(
        "kind",
        [
            HEADERS,
            pa.large_list(pa.struct([("k", pa.large_string()), ("v", pa.large_binary())])),
            pa.map_(pa.string(), pa.binary()),
        ],
        ids=str,
    )
    def test_headers_are_lists_or_maps(self, kind: Any) -> None:
        pairs: list[Any] = [[("h", b"x"), ("n", None)], [], None, [("é", b"")]]
        if not pa.types.is_map(kind):
            names = [field.name for field in kind.value_type]
            pairs = [row and [dict(zip(names, pair, strict=True)) for pair in row] for row in pairs]
        data = pa.array(pairs, kind)
        expected = [(("h", b"x"), ("n", None)), (), (), (("é", b""),)]
        assert [r.headers for r in records_of(table(headers=data))] == expected
        assert [r.headers for r in records_of(table(headers=data.slice(1, 3)))] == expected[1:]

    @pytest.mark.parametrize(
        ("columns", "text"),
        [
            ({"value": [1, 2]}, "column value is of type int64; it must be binary or text"),
            ({"key": [1.5]}, "column key is of type double; it must be binary or text"),
            (
                {"timestamp": ["now"]},
                "column timestamp is of type string; it must be a timestamp or int64 ms",
            ),
            (
                {"headers": ["h"]},
                "column headers is of type string; it must be a list of (key, value) structs",
            ),
            (
                {"headers": [["h"]]},
                "column headers is of type list<item: string>; it must be a list of (key, value) structs",
            ),
            (
                {"headers": [[{"key": "h", "value": 5}]]},
                "column headers.value is of type int64; it must be binary or text",
            ),
            ({"headers": [[{"key": None, "value": b""}]]}, "row 0: a header key is null"),
            ({"headers": [[{"key": b"\xff", "value": b""}]]}, "row 0: a header key is not UTF-8"),
        ],
    )
    def test_other_types_are_misuse(self, columns: dict[str, Any], text: str) -> None:
        with pytest.raises(Misuse) as caught:
            list(write_columns(table(**columns), timestamp=NOW))
        assert str(caught.value) == text

    def test_a_name_is_used_once(self) -> None:
        data = pa.table([pa.array([b"a"]), pa.array([b"b"])], names=["value", "value"])
        with pytest.raises(Misuse, match=r"^there are 2 columns called value$"):
            list(write_columns(data, timestamp=NOW))

    def test_other_columns_are_left_alone(self) -> None:
        assert [r.value for r in records_of(table(value=[b"a"], topic=["t"], partition=[3]))] == [b"a"]


class TestShapes:
    def test_slices_chunks_and_lists_of_batches_are_the_same_rows(self) -> None:
        whole = table(value=pa.array([b"%d" % i for i in range(20)]), key=pa.array([None, b"k"] * 10))
        sliced = whole.slice(3, 11)
        chunked = pa.concat_tables([whole.slice(3, 4), whole.slice(7, 0), whole.slice(7, 7)])
        expected = [b"%d" % i for i in range(3, 14)]
        for data in (sliced, chunked, chunked.to_batches(), [sliced.slice(0, 5), sliced.slice(5)]):
            (batch,) = batches_of(data)
            assert [r.value for r in records_of(data)] == expected
            assert batch.record_count == 11

    def test_no_rows_are_no_batches(self) -> None:
        assert batches_of(table(value=pa.array([], pa.binary()))) == []
        assert batches_of([]) == []

    @given(rows(), st.integers(61, 2000), st.integers(1, 5))
    def test_any_columns_come_back(self, rows: list[Row], limit: int, step: int) -> None:
        data = pa.table(
            {
                "key": pa.array([row[1] for row in rows], pa.binary()),
                "value": pa.array([row[2] for row in rows], pa.binary()),
                "timestamp": pa.array([row[0] for row in rows], pa.int64()),
                "headers": pa.array(
                    [[{"key": key, "value": value} for key, value in row[3]] for row in rows],
                    self.__class__.HEADERS,
                ),
            }
        )
        chunks = [data.slice(at, step) for at in range(0, len(rows), step)]
        found = records_of(chunks, size_limit=limit)
        assert [(r.timestamp, r.key, r.value, r.headers) for r in found] == rows
        batches = batches_of(chunks, size_limit=limit)
        assert all(batch.size_bytes <= limit or batch.record_count == 1 for batch in batches)
        assert [bytes(b.view) for b in batches] == [bytes(b.view) for b in batches_of(data, size_limit=limit)]

    HEADERS = TestTypesOfColumns.HEADERS

    def test_what_was_read_can_be_written(self) -> None:
        source = table(
            key=pa.array([b"a", None]),
            value=pa.array([None, b"b"]),
            headers=pa.array([None, [{"key": "h", "value": None}]], self.HEADERS),
            timestamp=pa.array([5, 6]),
        )
        (first,) = write_columns(source, timestamp=NOW)
        again = list(write_columns(read_columns(first), timestamp=NOW))
        assert again == [first]
        assert pa.Table.from_batches(read_columns(again[0]), schema_of()).num_rows == 2


class TestBatches:
    def test_header_fields_are_those_of_the_rows(self) -> None:
        (batch,) = batches_of(table(value=[b"a", b"b", b"c"], timestamp=[7, 9, 5]))
        assert (batch.base_timestamp, batch.max_timestamp, batch.last_offset_delta) == (7, 9, 2)
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)

    def test_sequences_follow_each_other_and_wrap(self) -> None:
        found = batches_of(
            table(value=[b"a" * 40] * 5),
            size_limit=61 + 2 * 47,
            producer_id=7,
            producer_epoch=1,
            base_sequence=2**31 - 3,
            transactional=True,
        )
        assert [b.record_count for b in found] == [2, 2, 1]
        assert [b.base_sequence for b in found] == [2**31 - 3, 2**31 - 1, 1]
        assert all(b.is_transactional and b.producer_id == 7 and b.producer_epoch == 1 for b in found)

    @pytest.mark.parametrize("codec", list(Codec))
    def test_batches_are_compressed(self, codec: Codec) -> None:
        data = table(value=[b"a" * 500] * 10)
        (batch,) = batches_of(data, codec=codec)
        assert batch.codec is codec
        assert [r.value for r in records_of(data, codec=codec)] == [b"a" * 500] * 10

    def test_a_row_past_the_limit_has_a_batch_of_its_own(self) -> None:
        found = batches_of(table(value=[b"a", b"b" * 500, b"c"]), size_limit=100)
        assert [batch.record_count for batch in found] == [1, 1, 1]

    def test_a_limit_below_the_header_is_misuse(self) -> None:
        with pytest.raises(Misuse, match=r"^a batch of at most 60 bytes cannot be built$"):
            list(write_columns(table(value=[b"a"]), timestamp=NOW, size_limit=60))
