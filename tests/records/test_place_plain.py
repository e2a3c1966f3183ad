"""Where rows go and what they come to: both kernels against Kafka's partitioner and each other."""

import random
from array import array

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import Misuse
from barnabas.records._columns_plain import BinaryColumn, TimeColumn
from barnabas.records._place_plain import murmur2
from barnabas.records.columns_out import KernelRows
from barnabas.records.kernel import Kernel
from tests.records._kernels import COMPILED, KERNELS, PLAIN, needs_both

both = pytest.mark.parametrize("kernel", KERNELS)

# What Java's Utils.murmur2 gives, as its own test has it.
JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
Row = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def rows_of(rows: list[Row]) -> KernelRows:
    pairs = [[{"key": k, "value": v} for k, v in headers] for _, _, headers in rows]
    return KernelRows(
        pa.record_batch(
            {
                "key": pa.array([row[0] for row in rows], pa.binary()),
                "value": pa.array([row[1] for row in rows], pa.binary()),
                "headers": pa.array(pairs, HEADERS),
            }
        )
    )


def keys_of(*keys: bytes | None) -> BinaryColumn | None:
    return rows_of([(key, None, ()) for key in keys]).keys


def numbers(*values: int | None) -> TimeColumn | None:
    return KernelRows(pa.record_batch({"timestamp": pa.array(values, pa.int64())})).timestamps


def order_of(placed: tuple[bytearray, list[tuple[int, int, int]]]) -> list[tuple[int, list[int]]]:
    order = array("i", bytes(placed[0])).tolist()
    return [(partition, order[start:stop]) for partition, start, stop in placed[1]]


class TestPlacing:
    @pytest.mark.parametrize(("key", "expected"), JAVA.items())
    def test_the_hash_is_that_of_java(self, key: bytes, expected: int) -> None:
        assert murmur2(key) == expected % 2**32

    @both
    def test_a_key_goes_where_the_default_partitioner_sends_it(self, kernel: Kernel) -> None:
        keys = list(JAVA)
        placed = order_of(kernel.place(len(keys), 7, keys_of(*keys)))
        found = {row: partition for partition, rows in placed for row in rows}
        assert found == {row: (JAVA[key] & 0x7FFF_FFFF) % 7 for row, key in enumerate(keys)}

    @both
    def test_rows_of_a_partition_keep_their_order_and_those_without_a_key_come_first(
        self, kernel: Kernel
    ) -> None:
        placed = kernel.place(6, 3, keys_of(None, b"x", None, b"x", b"x", None), numbers(2, 1, *[None] * 4))
        of_x = (murmur2(b"x") & 0x7FFF_FFFF) % 3
        expected: dict[int, list[int]] = {-1: [2, 5], 1: [1], 2: [0]}
        expected[of_x] = sorted([*expected.get(of_x, []), 3, 4])
        assert order_of(placed) == sorted(expected.items())

    @both
    def test_without_keys_and_without_rows(self, kernel: Kernel) -> None:
        assert order_of(kernel.place(3, 5)) == [(-1, [0, 1, 2])]
        assert kernel.place(0, 5, keys_of()) == (bytearray(), [])

    @both
    @pytest.mark.parametrize("partition", [-1, 3, 2**40])
    def test_a_partition_that_is_not_there_is_refused(self, kernel: Kernel, partition: int) -> None:
        with pytest.raises(Misuse, match=f"row 1: there is no partition {partition}, only 0 to 2"):
            kernel.place(2, 3, None, numbers(0, partition))

    @both
    def test_nonsense_is_refused(self, kernel: Kernel) -> None:
        with pytest.raises(Misuse, match="2 rows cannot be placed in 0 partitions"):
            kernel.place(2, 0)
        broken = BinaryColumn(None, bytes([0, 0, 0, 0, 9, 0, 0, 0]), b"four", 1)
        with pytest.raises(Misuse, match="row 0: its offsets lie outside the data"):
            kernel.place(1, 3, broken)
        with pytest.raises(Misuse, match="row 0: its offsets lie outside the data"):
            kernel.row_sum(1, None, broken)
        with pytest.raises(Misuse, match="-1 rows cannot be summed up"):
            kernel.row_sum(-1)

    @needs_both
    @given(st.lists(st.none() | st.binary(max_size=40), max_size=60), st.integers(1, 12))
    def test_both_kernels_agree(self, keys: list[bytes | None], partitions: int) -> None:
        assert COMPILED is not None
        columns = keys_of(*keys)
        assert PLAIN.place(len(keys), partitions, columns) == COMPILED.place(len(keys), partitions, columns)


ROWS: list[Row] = [
    (b"key", b"value", ()),
    (None, b"no key", ()),
    (b"gone", None, ()),
    (b"", b"", ()),
    (b"h", b"x" * 300, (("trace", b"\x00\xff"), ("null", None), ("", b""))),
]


class TestSums:
    @both
    def test_the_sum_never_changes(self, kernel: Kernel) -> None:
        """It is kept in markers: another value would stop every query that is in the middle of a batch."""
        found = rows_of(ROWS)
        total = kernel.row_sum(found.count, found.keys, found.values, found.headers, 7)
        assert total == 12_560_644_772_070_410_103

    @both
    def test_the_order_of_the_rows_does_not_matter(self, kernel: Kernel) -> None:
        mixed = ROWS[:]
        random.Random(5).shuffle(mixed)
        first, second = rows_of(ROWS), rows_of(mixed)
        assert kernel.row_sum(5, first.keys, first.values, first.headers) == kernel.row_sum(
            5, second.keys, second.values, second.headers
        )

    @both
    @pytest.mark.parametrize(
        "other",
        [
            (None, b"", ()),
            (b"", None, ()),
            (b"a", b"b", ()),
            (b"ab", b"", ()),
            (b"", b"ab", ()),
            (b"", b"", (("ab", b""),)),
            (b"", b"", (("a", b"b"),)),
            (b"", b"", (("a", None),)),
        ],
    )
    def test_what_differs_sums_up_to_something_else(self, kernel: Kernel, other: Row) -> None:
        one, two = rows_of([(b"", b"", ())]), rows_of([other])
        assert kernel.row_sum(1, one.keys, one.values, one.headers) != kernel.row_sum(
            1, two.keys, two.values, two.headers
        )

    @both
    def test_a_header_without_a_key_is_refused(self, kernel: Kernel) -> None:
        batch = pa.record_batch({"headers": pa.array([[], [{"key": None, "value": b"v"}]], HEADERS)})
        with pytest.raises(Misuse, match="row 1: a header key is null"):
            kernel.row_sum(2, None, None, KernelRows(batch).headers)

    @needs_both
    @given(
        st.lists(
            st.tuples(
                st.none() | st.binary(max_size=20),
                st.none() | st.binary(max_size=40),
                st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=3).map(
                    tuple
                ),
            ),
            max_size=20,
        ),
        st.integers(0, 2**64 - 1),
    )
    def test_both_kernels_agree(self, rows: list[Row], seed: int) -> None:
        assert COMPILED is not None
        found = rows_of(rows)
        arguments = (found.count, found.keys, found.values, found.headers, seed)
        assert PLAIN.row_sum(*arguments) == COMPILED.row_sum(*arguments)
