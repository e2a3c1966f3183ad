"""Fetched bytes to Arrow columns, without a Python object per record.

The columns and their types are those of Spark's Kafka source (SPARK schema below); `columns_out` goes back.

A1  A reader goes forward only: `next_offset` is where the next fetch must start, and it never falls.
A2  Control batches never become rows.  Neither do records of aborted transactions when the reader is told
    of them, by the rule of Kafka's consumer: a producer's records are dropped from the first offset of its
    aborted transaction to its abort marker.
A3  A cut last batch ends a feed; its records come with the next fetch.
A4  No Arrow batch passes 2 GiB in any buffer, whatever the limits say.

pyarrow is imported on first use: it belongs to an extra.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final

from barnabas.base.errors import Misuse
from barnabas.records import _columns_plain as buffers
from barnabas.records._walk_plain import INT64_MAX, INT64_MIN
from barnabas.records.batch import RecordBatch, iter_batches
from barnabas.records.builder import read_end_txn_marker
from barnabas.records.codecs import decompress
from barnabas.records.kernel import ColumnBuilder

__all__ = ["COLUMNS", "AbortedFilter", "ColumnReader", "arrow", "read_columns", "schema_of"]

# Name to kernel bit; 0 for those that are the same in every row.
COLUMNS: Final = {
    "key": buffers.KEY,
    "value": buffers.VALUE,
    "topic": 0,
    "partition": 0,
    "offset": buffers.OFFSET,
    "timestamp": buffers.TIMESTAMP,
    "timestampType": buffers.TIMESTAMP_TYPE,
    "headers": buffers.HEADERS,
}
DEFAULT_COLUMNS: Final = ("key", "value", "offset", "timestamp", "timestampType", "headers")

ROWS_MAX: Final = 50_000
BYTES_MAX: Final = 4 << 20
PAYLOAD_BYTES_MAX: Final = 512 << 20
_MS_MAX_AS_US: Final = INT64_MAX // 1000

Data = bytes | bytearray | memoryview


@cache
def arrow() -> Any:
    """The pyarrow module.  Raises Misuse, with the way out, when it is not installed."""
    try:
        import pyarrow
    except ImportError as error:
        raise Misuse("Arrow columns need pyarrow: pip install 'barnabas[spark]'") from error
    return pyarrow


@cache
def _types() -> dict[str, Any]:
    pa = arrow()
    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    return {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestampType": pa.int32(),
        "headers": pa.list_(pa.field("element", header)),
    }


def schema_of(columns: Sequence[str] = DEFAULT_COLUMNS) -> Any:
    """The Arrow schema of these columns, in this order.  Raises Misuse for a name that does not exist."""
    unknown = [name for name in columns if name not in COLUMNS]
    if unknown:
        raise Misuse(f"no column is called {', '.join(unknown)}; there are {', '.join(COLUMNS)}")
    pa, types = arrow(), _types()
    return pa.schema([pa.field(name, types[name]) for name in columns])


class ColumnReader:
    """Turns the record sets of one partition, fetch after fetch, into Arrow record batches.

    `feed` yields each batch of `rows_max` rows or about `bytes_max` bytes as it fills and keeps what is
    left for the next fetch; `flush` hands that out.  Rows have start_offset <= offset < end_offset, and
    `done` says that no later fetch can bring more.  `topic` and `partition` fill those columns.
    """

    def __init__(
        self,
        columns: Sequence[str] = DEFAULT_COLUMNS,
        *,
        start_offset: int = 0,
        end_offset: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
        rows_max: int = ROWS_MAX,
        bytes_max: int = BYTES_MAX,
        payload_bytes_max: int = PAYLOAD_BYTES_MAX,
        check_crc: bool = True,
    ) -> None:
        self.schema: Final = schema_of(columns)
        self.next_offset = start_offset
        self._columns = tuple(columns)
        self._end_offset = INT64_MAX if end_offset is None else end_offset
        self._constants = {"topic": topic, "partition": partition}
        self._payload_bytes_max = payload_bytes_max
        self._check_crc = check_crc
        self._rows_max = rows_max
        wanted = sum({COLUMNS[name] for name in columns})
        self._builder = ColumnBuilder(wanted, rows_max=rows_max, bytes_max=bytes_max)

    @property
    def done(self) -> bool:
        return self.next_offset >= self._end_offset

    @property
    def rows(self) -> int:
        """Rows gathered and not handed out yet."""
        return self._builder.rows

    def feed(self, records: Data, aborted: Iterable[tuple[int, int]] | None = None) -> Iterator[Any]:
        """Read the batches of one fetch; `aborted` has its (producer id, first offset) pairs.

        None of them means that everything is wanted (read_uncommitted).  Work is done as it is iterated;
        go through all of it before the next call.
        Raises RecordError; rows of the batches before the bad one are kept, and next_offset names it.
        """
        filtered = None if aborted is None else AbortedFilter(aborted)
        for batch in iter_batches(memoryview(records)):
            if self.done:
                return
            if self._check_crc:
                batch.check()
            # Asked of every batch, also of those that were read before: their markers end transactions.
            dropped = filtered is not None and filtered.drops(batch)
            if batch.next_offset <= self.next_offset:
                continue
            if not (dropped or batch.is_control or batch.record_count == 0):
                yield from self._read(batch)
            self.next_offset = max(self.next_offset, min(batch.next_offset, self._end_offset))

    def _read(self, batch: RecordBatch) -> Iterator[Any]:
        payload = decompress(batch.codec, batch.payload, self._payload_bytes_max)
        index = position = 0
        while True:
            index, position = self._builder.append(
                payload,
                batch.record_count,
                batch.base_offset,
                batch.base_timestamp,
                batch.log_append_time,
                start_offset=self.next_offset,
                end_offset=self._end_offset,
                index=index,
                position=position,
            )
            if index == batch.record_count:
                break
            yield self._take()
        if self._builder.rows >= self._rows_max:
            yield self._take()

    def flush(self) -> Any | None:
        """The rows that did not fill a batch, or None when there are none."""
        return self._take() if self._builder.rows else None

    def _take(self) -> Any:
        pa = arrow()
        taken = self._builder.take()
        arrays = [self._array(name, taken) for name in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _array(self, name: str, taken: buffers.Columns) -> Any:
        pa, rows, wanted = arrow(), taken.rows, _types()[name]
        match name:
            case "key" | "value":
                return _binary_array(wanted, taken.key if name == "key" else taken.value)
            case "offset":
                return pa.Array.from_buffers(wanted, rows, [None, pa.py_buffer(taken.offset)])
            case "timestamp":
                return _timestamp_array(rows, taken.timestamp)
            case "timestampType":
                return pa.Array.from_buffers(wanted, rows, [None, pa.py_buffer(taken.timestamp_type)])
            case "headers":
                return _header_array(wanted, taken.headers)
            case _:
                return pa.repeat(pa.scalar(self._constants[name], wanted), rows)


class AbortedFilter:
    """Which batches of one fetch belong to aborted transactions (A2)."""

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        self._begins = sorted(((first, producer) for producer, first in aborted), reverse=True)
        self._open: set[int] = set()

    def drops(self, batch: RecordBatch) -> bool:
        if not batch.has_producer_id:
            return False
        while self._begins and self._begins[-1][0] <= batch.last_offset:
            self._open.add(self._begins.pop()[1])
        if batch.is_control:
            # Compaction may leave a control batch empty; it then ends nothing.
            marker = read_end_txn_marker(batch) if batch.record_count else None
            if marker is not None and not marker.committed:
                self._open.discard(batch.producer_id)
            return True
        return batch.is_transactional and batch.producer_id in self._open


def read_columns(
    records: Data,
    columns: Sequence[str] = DEFAULT_COLUMNS,
    *,
    aborted: Iterable[tuple[int, int]] | None = None,
    start_offset: int = INT64_MIN,
    end_offset: int | None = None,
    topic: str | None = None,
    partition: int | None = None,
    rows_max: int = ROWS_MAX,
    bytes_max: int = BYTES_MAX,
) -> Iterator[Any]:
    """The Arrow record batches of one fetch, the last one as full as it got; see ColumnReader."""
    reader = ColumnReader(
        columns,
        start_offset=start_offset,
        end_offset=end_offset,
        topic=topic,
        partition=partition,
        rows_max=rows_max,
        bytes_max=bytes_max,
    )
    yield from reader.feed(records, aborted)
    if (rest := reader.flush()) is not None:
        yield rest


def _buffer(data: Any) -> Any:
    return None if data is None else arrow().py_buffer(data)


def _binary_array(wanted: Any, column: buffers.BinaryColumn | None) -> Any:
    assert column is not None, "the column was wanted"
    parts = [_buffer(column.validity), _buffer(column.offsets), _buffer(column.data)]
    return arrow().Array.from_buffers(wanted, column.rows, parts, null_count=column.nulls)


def _header_array(wanted: Any, column: buffers.HeaderColumn | None) -> Any:
    assert column is not None, "the column was wanted"
    pa = arrow()
    pair = wanted.value_type
    keys = _binary_array(pair.field("key").type, column.keys)
    values = _binary_array(pair.field("value").type, column.values)
    pairs = pa.Array.from_buffers(pair, column.keys.rows, [None], children=[keys, values])
    parts = [_buffer(column.validity), _buffer(column.offsets)]
    return pa.Array.from_buffers(wanted, column.rows, parts, null_count=column.nulls, children=[pairs])


def _timestamp_array(rows: int, milliseconds: Any) -> Any:
    """Microseconds, as Spark wants them.  Times that pass 64 bits then stop at the end of the range."""
    pa = arrow()
    parts = [None, pa.py_buffer(milliseconds)]
    try:
        plain = pa.Array.from_buffers(pa.timestamp("ms", tz="UTC"), rows, parts)
        return plain.cast(_types()["timestamp"])
    except pa.ArrowInvalid:
        # A producer that wrote nanoseconds where milliseconds belong must not stop its readers.
        import pyarrow.compute as pc

        numbers = pa.Array.from_buffers(pa.int64(), rows, parts)
        clipped = pc.max_element_wise(pc.min_element_wise(numbers, _MS_MAX_AS_US), -_MS_MAX_AS_US)
        return clipped.cast(pa.timestamp("ms", tz="UTC")).cast(_types()["timestamp"])
