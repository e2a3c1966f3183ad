"""Arrow buffers of both kernels: gathering records in them, and building payloads from them."""

from functools import partial
from struct import pack, unpack
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import Misuse
from barnabas.records._columns_plain import (
    BinaryColumn,
    HeaderColumn,
    TimeColumn,
    held_binary,
    mended_text,
    read_binary,
)
from barnabas.records.kernel import Kernel
from tests.records._kernels import (
    COMPILED,
    KERNELS,
    PLAIN,
    Row,
    needs_both,
    outcome,
    plain_value,
    raw_record,
    rows,
    varint,
)

both = pytest.mark.parametrize("kernel", KERNELS)

ROWS: list[Row] = [
    (5, b"key", b"value", ()),
    (6, None, b"", (("h", b"x"), ("n", None))),
    (7, b"", None, ()),
    (8, b"k4", b"v4", (("", b""),)),
]


def gather(kernel: Kernel, rows: list[Row], wanted: int = 63, **options: Any) -> Any:
    builder = kernel.ColumnBuilder(wanted, rows_max=1000, bytes_max=10**6)
    base = rows[0][0] if rows else 0
    assert builder.append(kernel.encode(rows), len(rows), 100, base, **options)[0] == len(rows)
    return plain_value(builder.take())


class TestGathering:
    @both
    def test_buffers_are_in_arrows_layout(self, kernel: Kernel) -> None:
        count, offset, timestamp, timestamp_type, key, value, headers = gather(kernel, ROWS)
        assert count == 4
        assert unpack("<4q", offset) == (100, 101, 102, 103)
        assert unpack("<4q", timestamp) == (5, 6, 7, 8)
        assert unpack("<4i", timestamp_type) == (0, 0, 0, 0)
        assert key[:5] == [b"\x0d", pack("<5i", 0, 3, 3, 3, 5), b"keyk4", 4, 1]
        assert value[:5] == [b"\x0b", pack("<5i", 0, 5, 5, 5, 7), b"valuev4", 4, 1]
        validity, offsets, rows, nulls, names, values = headers[:6]
        assert (validity, unpack("<5i", offsets), rows, nulls) == (b"\x0a", (0, 0, 2, 2, 3), 4, 2)
        assert names[:5] == [None, pack("<4i", 0, 1, 2, 2), b"hn", 3, 0]
        assert values[:5] == [b"\x05", pack("<4i", 0, 1, 1, 1), b"x", 3, 1]

    @both
    def test_what_is_not_wanted_is_none(self, kernel: Kernel) -> None:
        assert [part is None for part in gather(kernel, ROWS, 8)] == [
            False,
            True,
            True,
            True,
            False,
            True,
            True,
        ]

    @both
    def test_bounds_leave_records_out(self, kernel: Kernel) -> None:
        found = gather(kernel, ROWS, 1, start_offset=101, end_offset=103)
        assert unpack("<2q", found[1]) == (101, 102)

    @both
    def test_a_log_append_time_is_everybodys(self, kernel: Kernel) -> None:
        found = gather(kernel, ROWS, 6, log_append_time=77)
        assert (unpack("<4q", found[2]), unpack("<4i", found[3])) == ((77,) * 4, (1,) * 4)

    @both
    def test_no_rows_are_sound_columns(self, kernel: Kernel) -> None:
        count, offset, *_, key, _, headers = gather(kernel, [])
        assert (count, offset, key[:5]) == (0, b"", [None, bytes(4), b"", 0, 0])
        assert headers[:4] == [None, bytes(4), 0, 0]

    @both
    def test_a_full_builder_says_where_to_go_on(self, kernel: Kernel) -> None:
        payload = kernel.encode(ROWS)
        builder = kernel.ColumnBuilder(1, rows_max=3, bytes_max=10**6)
        index, position = builder.append(payload, 4, 0, 5)
        assert (index, builder.rows) == (3, 3)
        assert builder.append(payload, 4, 0, 5, index=index, position=position) == (index, position)
        builder.take()
        assert builder.append(payload, 4, 0, 5, index=index, position=position) == (4, len(payload))
        assert unpack("<q", bytes(builder.take().offset)) == (3,)

    @both
    def test_bytes_are_limited_but_for_the_first_record(self, kernel: Kernel) -> None:
        payload = kernel.encode([(0, b"a" * 50, b"b" * 60, ()), (0, b"c", b"d", ())])
        builder = kernel.ColumnBuilder(8 + 16, rows_max=10, bytes_max=100)
        assert builder.append(payload, 2, 0, 0)[0] == 1
        assert builder.size == 110
        narrow = kernel.ColumnBuilder(8, rows_max=10, bytes_max=100)
        assert narrow.append(payload, 2, 0, 0)[0] == 2
        assert narrow.size == 51

    @both
    def test_a_malformed_payload_leaves_no_trace(self, kernel: Kernel) -> None:
        builder = kernel.ColumnBuilder(63, rows_max=100, bytes_max=10**6)
        builder.append(kernel.encode(ROWS), 4, 0, 5)
        bad = raw_record(header_count=1, headers=varint(1) + b"\xff" + varint(-1)) * 9 + raw_record(length=99)
        with pytest.raises(Exception, match="record 9: its length is 99"):
            builder.append(bad, 10, 4, 5)
        builder.append(kernel.encode(ROWS), 4, 100, 5)
        again = kernel.ColumnBuilder(63, rows_max=100, bytes_max=10**6)
        again.append(kernel.encode(ROWS), 4, 0, 5)
        again.append(kernel.encode(ROWS), 4, 100, 5)
        assert builder.size == again.size
        assert plain_value(builder.take()) == plain_value(again.take())

    @both
    def test_a_place_outside_the_payload_is_misuse(self, kernel: Kernel) -> None:
        builder = kernel.ColumnBuilder(1, rows_max=100, bytes_max=10**6)
        for index, position in ((0, 10), (2, 0), (-1, 0), (0, -1)):
            with pytest.raises(Misuse, match=f"^record {index} at byte {position} is outside the payload$"):
                builder.append(raw_record(), 1, 0, 0, index=index, position=position)

    @both
    def test_limits_are_positive(self, kernel: Kernel) -> None:
        with pytest.raises(Misuse, match=r"^rows_max 0 and bytes_max 1 must be positive$"):
            kernel.ColumnBuilder(1, rows_max=0, bytes_max=1)

    @both
    def test_large_payloads_give_the_same(self, kernel: Kernel) -> None:
        rows: list[Row] = [(i, b"k%d" % i, b"v" * 1000, (("h", b"%d" % i),)) for i in range(100)]
        found = gather(kernel, rows)
        assert found[5][2] == b"v" * 100_000
        assert found[6][5][2] == b"".join(b"%d" % i for i in range(100))

    @both
    def test_columns_outlive_their_builder(self, kernel: Kernel) -> None:
        builder = kernel.ColumnBuilder(16, rows_max=100, bytes_max=10**6)
        builder.append(kernel.encode(ROWS), 4, 0, 5)
        value = builder.take().value
        assert value is not None
        view = memoryview(value.data)
        del builder, value
        assert bytes(view) == b"valuev4"
        assert view.readonly


class TestMendedText:
    def test_bad_bytes_are_replaced(self) -> None:
        column = BinaryColumn(None, pack("<4i", 0, 2, 3, 5), b"ab\xff\xc3\xa9", 3)
        mended = mended_text(column)
        assert [read_binary(held_binary(mended, 3), row) for row in range(3)] == [
            b"ab",
            b"\xef\xbf\xbd",
            b"\xc3\xa9",
        ]

    @both
    @given(st.lists(st.binary(max_size=5), min_size=1, max_size=5))
    def test_header_keys_are_always_text(self, kernel: Kernel, keys: list[bytes]) -> None:
        headers = b"".join(varint(len(key)) + key + varint(-1) for key in keys)
        builder = kernel.ColumnBuilder(32, rows_max=10, bytes_max=10**6)
        builder.append(raw_record(header_count=len(keys), headers=headers), 1, 0, 0)
        taken = builder.take().headers
        assert taken is not None
        found = [read_binary(held_binary(taken.keys, len(keys)), row) for row in range(len(keys))]
        assert found == [key.decode(errors="replace").encode() for key in keys]


def arrow_layout(values: list[bytes | None], *, wide: bool, before: int) -> BinaryColumn:
    """A column as Arrow has it, `before` rows into its buffers, which hold more than the rows need."""
    everything = [b"junk"] * before + values
    offsets, data, bits = [0], b"", 0
    for at, value in enumerate(everything):
        data += value or b""
        offsets.append(len(data))
        bits |= (value is not None) << at
    validity = bits.to_bytes(len(everything) // 8 + 1, "little") if None in values else None
    packed = pack(f"<{len(offsets)}{'q' if wide else 'i'}", *offsets)
    return BinaryColumn(validity, packed, data + b"tail", len(values), values.count(None), before, wide)


def header_layout(rows: list[Row], *, wide: bool, before: int) -> HeaderColumn:
    pairs = [pair for row in rows for pair in row[3]]
    offsets = [0] * before + [0]
    for row in rows:
        offsets.append(offsets[-1] + len(row[3]))
    return HeaderColumn(
        None,
        pack(f"<{len(offsets)}{'q' if wide else 'i'}", *offsets),
        len(rows),
        0,
        arrow_layout([key.encode() for key, _ in pairs], wide=wide, before=before),
        arrow_layout([value for _, value in pairs], wide=wide, before=before),
        before,
        wide,
    )


def column(first: int = 0, last: int = 0) -> BinaryColumn:
    """One row of three bytes, or what the offsets make of them."""
    return BinaryColumn(None, pack("<2i", first, last), b"abc", 1)


def one_header(part: BinaryColumn) -> HeaderColumn:
    return HeaderColumn(None, pack("<2i", 0, 1), 1, 0, part, part)


class TestBuildingFromColumns:
    @both
    @given(rows(), st.booleans(), st.integers(0, 9))
    def test_rows_become_the_records_that_append_makes(
        self, kernel: Kernel, rows: list[Row], wide: bool, before: int
    ) -> None:
        builder = kernel.PayloadBuilder(2**31 - 1, reserve=5)
        stamps = TimeColumn(
            None, pack(f"<{before + len(rows)}q", *[0] * before, *(r[0] for r in rows)), len(rows), before
        )
        taken = builder.append_columns(
            0,
            len(rows),
            0,
            stamps,
            arrow_layout([row[1] for row in rows], wide=wide, before=before),
            arrow_layout([row[2] for row in rows], wide=not wide, before=before),
            header_layout(rows, wide=wide, before=before),
        )
        assert taken == len(rows) == builder.count
        assert builder.take() == bytes(5) + kernel.encode(rows)

    @both
    def test_missing_columns_are_null_and_the_time_is_the_callers(self, kernel: Kernel) -> None:
        builder = kernel.PayloadBuilder(1000)
        assert builder.append_columns(3, 5, 77) == 2
        assert (builder.base_timestamp, builder.max_timestamp) == (77, 77)
        assert builder.take() == kernel.encode([(77, None, None, ())] * 2)

    @both
    def test_a_null_timestamp_is_the_callers(self, kernel: Kernel) -> None:
        builder = kernel.PayloadBuilder(1000)
        builder.append_columns(0, 2, 77, TimeColumn(b"\x01", pack("<2q", 5, 6), 2))
        assert [r.timestamp for r in kernel.decode(builder.take(), 2, 0, 5)] == [5, 77]

    @both
    @given(rows(), st.integers(0, 500))
    def test_only_what_fits_is_taken(self, kernel: Kernel, rows: list[Row], limit: int) -> None:
        values = arrow_layout([row[2] for row in rows], wide=False, before=0)
        by_columns, by_rows = kernel.PayloadBuilder(limit), kernel.PayloadBuilder(limit)
        taken = by_columns.append_columns(0, len(rows), 9, None, None, values)
        expected = 0
        while expected < len(rows) and by_rows.append(9, None, rows[expected][2]):
            expected += 1
        assert taken == expected
        assert by_columns.take() == by_rows.take()

    @both
    def test_rows_join_those_already_there(self, kernel: Kernel) -> None:
        builder = kernel.PayloadBuilder(1000)
        builder.append(50, b"a", b"b")
        builder.append_columns(0, 1, 40, None, None, arrow_layout([b"c"], wide=False, before=0))
        builder.append(60, None, None)
        expected = kernel.encode([(50, b"a", b"b", ()), (40, None, b"c", ()), (60, None, None, ())])
        assert builder.take() == expected

    @both
    @given(st.data(), rows())
    def test_rows_come_in_the_order_that_is_given(
        self, kernel: Kernel, data: st.DataObject, rows: list[Row]
    ) -> None:
        numbers = data.draw(st.permutations(range(len(rows))))
        start = data.draw(st.integers(0, len(rows)))
        stop = data.draw(st.integers(start, len(rows)))
        builder = kernel.PayloadBuilder(2**31 - 1)
        taken = builder.append_columns(
            start,
            stop,
            0,
            TimeColumn(None, pack(f"<{len(rows)}q", *(row[0] for row in rows)), len(rows)),
            arrow_layout([row[1] for row in rows], wide=False, before=0),
            arrow_layout([row[2] for row in rows], wide=False, before=0),
            header_layout(rows, wide=False, before=0),
            pack(f"<{len(rows)}i", *numbers),
        )
        assert taken == stop - start
        assert builder.take() == kernel.encode([rows[number] for number in numbers[start:stop]])

    @both
    @pytest.mark.parametrize(
        ("order", "text"),
        [
            (pack("<2i", 0, 2), "row 2 is in the order, of 2 rows"),
            (pack("<2i", 0, -1), "row -1 is in the order, of 2 rows"),
            (pack("<i", 0), "the places of a column take 8 bytes, 4 are there"),
            (pack("<2ib", 0, 2, 0), "row 2 is in the order, of 2 rows"),
            (pack("<3i", 0, 1, 2), "the offsets of a column take 16 bytes, 12 are there"),
        ],
    )
    def test_an_order_names_rows_that_are_there(self, kernel: Kernel, order: bytes, text: str) -> None:
        builder = kernel.PayloadBuilder(1000)
        builder.append(1, b"a", b"b")
        keys = arrow_layout([b"c", b"d"], wide=False, before=0)
        with pytest.raises(Misuse) as caught:
            builder.append_columns(0, 2, 0, None, keys, None, None, order)
        assert str(caught.value) == text
        assert builder.take() == kernel.encode([(1, b"a", b"b", ())])

    OUTSIDE = "row 0: its offsets lie outside the data"
    BAD: ClassVar = [
        ({"keys": column(0, 5)}, OUTSIDE),
        ({"keys": column(2, 1)}, OUTSIDE),
        ({"keys": column(-1, 1)}, OUTSIDE),
        ({"keys": column(0, 1)._replace(data=None)}, OUTSIDE),
        ({"keys": column()._replace(offsets=bytes(7))}, "the offsets of a column take 8 bytes, 7 are there"),
        ({"keys": column()._replace(offsets=None)}, "the offsets of a column are missing"),
        (
            {"keys": column()._replace(validity=b"")},
            "the validity bits of a column take 1 bytes, 0 are there",
        ),
        ({"keys": column()._replace(start=-1)}, "a column cannot start at row -1"),
        (
            {"timestamps": TimeColumn(None, bytes(7), 1)},
            "the timestamps of a column take 8 bytes, 7 are there",
        ),
        ({"headers": one_header(column())._replace(offsets=pack("<2i", 0, 2))}, OUTSIDE),
        ({"headers": one_header(column(0, 5))}, OUTSIDE),
        ({"headers": one_header(column()._replace(validity=b"\0"))}, "row 0: a header key is null"),
        ({"headers": one_header(column(0, 1)._replace(data=b"\xff"))}, "row 0: a header key is not UTF-8"),
    ]

    @both
    @pytest.mark.parametrize(("columns", "text"), BAD)
    def test_columns_that_lie_are_misuse_and_change_nothing(
        self, kernel: Kernel, columns: dict[str, Any], text: str
    ) -> None:
        builder = kernel.PayloadBuilder(1000)
        builder.append(1, b"a", b"b")
        with pytest.raises(Misuse) as caught:
            builder.append_columns(0, 1, 0, **columns)
        assert str(caught.value) == text
        assert (builder.count, builder.max_timestamp) == (1, 1)
        assert builder.take() == kernel.encode([(1, b"a", b"b", ())])

    @both
    def test_a_range_runs_forward(self, kernel: Kernel) -> None:
        with pytest.raises(Misuse, match=r"^rows 2 to 1 are no range$"):
            kernel.PayloadBuilder(1000).append_columns(2, 1, 0)

    @needs_both
    @given(
        st.binary(max_size=40),
        st.binary(max_size=20),
        st.none() | st.binary(max_size=3),
        st.integers(0, 3),
        st.booleans(),
    )
    def test_twins_agree_on_any_buffers(
        self, offsets: bytes, data: bytes, validity: bytes | None, start: int, wide: bool
    ) -> None:
        assert COMPILED is not None
        keys = BinaryColumn(validity, offsets, data, 4, 0, start, wide)
        headers = HeaderColumn(validity, offsets, 4, 0, keys, keys, start, wide)
        results = []
        for kernel in (PLAIN, COMPILED):
            builder = kernel.PayloadBuilder(30)
            found = outcome(partial(builder.append_columns, 0, 4, 9, None, keys, None, headers))
            results.append((found, builder.count, builder.take()))
        assert results[0] == results[1]
