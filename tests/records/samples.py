"""Rows and batches that several tests of records use."""

from collections.abc import Iterator
from pathlib import Path

from hypothesis import strategies as st

from barnabas.records.builder import Row, build_batch
from barnabas.records.codecs import Codec

RECORDED = Path(__file__).resolve().parent.parent / "data" / "batches"
LIMIT = 64 * 1024 * 1024
NOW = 1_700_000_000_000

ROWS: list[Row] = [
    (NOW, b"key", b"value", ()),
    (NOW + 5, None, b"no key", ()),
    (NOW - 7, b"tombstone", None, ()),
    (NOW, b"", b"", ()),
    (NOW + 70_000, None, None, ()),
    (NOW + 1, b"with headers", b"x" * 300, (("trace", b"\x00\xff"), ("null", None), ("", b""))),
    (NOW + 2, b"unicode header", b"v", (("schlüssel-鍵-🔑", b"wert"),)),
    (NOW + 3, b"k" * 127, b"v" * 128, ()),
    (NOW + 4, b"many headers", b"v", tuple((f"h{i}", b"%d" % i) for i in range(70))),
]


def small_batch(codec: Codec = Codec.NONE) -> bytearray:
    """Three records that compress, at offset 100."""
    rows: list[Row] = [(NOW + i, b"key-%d" % i, b"value " * 20, (("h", b"x"),)) for i in range(3)]
    return build_batch(rows, base_offset=100, leader_epoch=7, codec=codec)


def recorded_files() -> Iterator[Path]:
    """Batches that real clients sent to and got from Apache Kafka, one file per client, API and version."""
    return iter(sorted(RECORDED.glob("*.bin")))


def rows(*, min_size: int = 1, max_size: int = 20) -> st.SearchStrategy[list[Row]]:
    """Any records that one batch can hold."""
    data = st.none() | st.binary(max_size=60) | st.binary(max_size=10).map(lambda b: b * 50)
    header = st.tuples(st.text("aé鍵🔑", max_size=10), st.none() | st.binary(max_size=20))
    row = st.tuples(
        st.integers(0, 2**44), data, data, st.lists(header, max_size=4).map(lambda pairs: tuple(pairs))
    )
    return st.lists(row, min_size=min_size, max_size=max_size)
