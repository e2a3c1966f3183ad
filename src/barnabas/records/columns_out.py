"""Arrow columns to record batches, without a Python object per record.

Columns are found by name: `value`, `key`, `headers`, `timestamp`; those that are missing are null, and a
null timestamp is the caller's.  Others are left alone.  Keys and values may be any binary or text type,
sliced, chunked, dictionary-encoded; headers a list or map of (key, value); timestamps int64 ms or any
Arrow timestamp.  Rows keep their order, and batch boundaries do not depend on how the input was chunked.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from barnabas.base.errors import Misuse
from barnabas.records._columns_plain import BinaryColumn, HeaderColumn, TimeColumn
from barnabas.records.batch import (
    ATTRIBUTE_TRANSACTIONAL,
    HEADER_BYTES,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
)
from barnabas.records.builder import assemble_batch
from barnabas.records.codecs import Codec
from barnabas.records.columns import arrow
from barnabas.records.kernel import PayloadBuilder

__all__ = ["BATCH_BYTES_MAX", "KernelRows", "number_column", "write_columns"]

BATCH_BYTES_MAX: Final = 1_000_000  # below the broker's default message.max.bytes


class KernelRows:
    """The columns of one Arrow record batch as the kernel takes them."""

    def __init__(self, batch: Any) -> None:
        names = batch.schema.names
        for name in ("key", "value", "headers", "timestamp"):
            if names.count(name) > 1:
                raise Misuse(f"there are {names.count(name)} columns called {name}")

        def column(name: str) -> Any:
            return batch.column(names.index(name)) if name in names else None

        self.count: Final[int] = batch.num_rows
        self.timestamps: Final = _time_column(column("timestamp"))
        self.keys: Final = _binary_column("key", column("key"))
        self.values: Final = _binary_column("value", column("value"))
        self.headers: Final = _header_column(column("headers"))


def write_columns(
    data: Any,
    *,
    timestamp: int,
    size_limit: int = BATCH_BYTES_MAX,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
) -> Iterator[bytearray]:
    """The rows of `data`, a table, a record batch or several, as record batches of at most `size_limit`.

    A row that alone passes the limit makes a batch of its own.  Sequences follow each other from batch to
    batch.  Raises Misuse for columns of other types, and for rows the format cannot hold.
    """
    if size_limit < HEADER_BYTES:
        raise Misuse(f"a batch of at most {size_limit} bytes cannot be built")
    payload = PayloadBuilder(size_limit - HEADER_BYTES)

    def build(sequence: int) -> bytearray:
        facts = {
            "record_count": payload.count,
            "last_offset_delta": payload.last_offset_delta,
            "base_timestamp": payload.base_timestamp,
            "max_timestamp": payload.max_timestamp,
        }
        return assemble_batch(
            payload.take(),
            **facts,
            attributes=ATTRIBUTE_TRANSACTIONAL if transactional else 0,
            codec=codec,
            level=level,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
        )

    sequence = base_sequence
    for rows in map(KernelRows, _record_batches(data)):
        start = 0
        while start < rows.count:
            start += payload.append_columns(
                start, rows.count, timestamp, rows.timestamps, rows.keys, rows.values, rows.headers
            )
            if start < rows.count:
                count = payload.count
                yield build(sequence)
                sequence = sequence if sequence < 0 else (sequence + count) & 0x7FFFFFFF
    if payload.count:
        yield build(sequence)


def _record_batches(data: Any) -> Iterable[Any]:
    pa = arrow()
    if isinstance(data, pa.RecordBatch):
        return [data]
    if isinstance(data, pa.Table):
        batches: list[Any] = data.to_batches()
        return batches
    return (one for many in data for one in _record_batches(many))


def _binary_column(name: str, array: Any) -> BinaryColumn | None:
    if array is None:
        return None
    types = arrow().types
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if types.is_null(kind):
        return None
    if types.is_fixed_size_binary(kind) or types.is_binary_view(kind):
        array = array.cast(arrow().binary())
    elif types.is_string_view(kind):
        array = array.cast(arrow().string())
    kind = array.type
    wide = types.is_large_binary(kind) or types.is_large_string(kind)
    if not (wide or types.is_binary(kind) or types.is_string(kind)):
        raise Misuse(f"column {name} is of type {kind}; it must be binary or text")
    validity, offsets, data = array.buffers()
    return BinaryColumn(validity, offsets, data, len(array), array.null_count, array.offset, wide)


def _header_column(array: Any) -> HeaderColumn | None:
    if array is None or arrow().types.is_null(array.type):
        return None
    types, kind = arrow().types, array.type
    wide = types.is_large_list(kind)
    if types.is_map(kind):
        # A map has the layout of a list of (key, item) structs; the plain list type shows that child.
        entries = arrow().struct([arrow().field("key", kind.key_type, nullable=False), kind.item_field])
        array = array.cast(arrow().list_(arrow().field("entries", entries, nullable=False)))
    elif not (wide or types.is_list(kind)):
        raise Misuse(f"column headers is of type {kind}; it must be a list of (key, value) structs")
    pairs = array.values
    if not types.is_struct(pairs.type) or pairs.type.num_fields != 2:
        raise Misuse(f"column headers is of type {kind}; it must be a list of (key, value) structs")
    keys, values = (
        _binary_column(f"headers.{field.name}", child)
        for field, child in zip(pairs.type, pairs.flatten(), strict=True)
    )
    return HeaderColumn(
        array.buffers()[0],
        array.buffers()[1],
        len(array),
        array.null_count,
        keys or _nulls(len(pairs)),
        values or _nulls(len(pairs)),
        array.offset,
        wide,
    )


def _nulls(rows: int) -> BinaryColumn:
    return BinaryColumn(bytes((rows + 7) // 8), bytes(4 * rows + 4), None, rows, rows)


def number_column(array: Any) -> TimeColumn:
    """Whole numbers of any width, as the kernel takes them."""
    array = array.cast(arrow().int64())
    validity, data = array.buffers()
    return TimeColumn(validity, data, len(array), array.offset)


def _time_column(array: Any) -> TimeColumn | None:
    if array is None or arrow().types.is_null(array.type):
        return None
    pa = arrow()
    if pa.types.is_timestamp(array.type):
        # Whole milliseconds are all the format has; the rest is cut, as the clock of a client does.
        array = array.cast(pa.timestamp("ms", tz=array.type.tz), safe=False).cast(pa.int64())
    elif array.type != pa.int64():
        raise Misuse(f"column timestamp is of type {array.type}; it must be a timestamp or int64 ms")
    validity, data = array.buffers()
    return TimeColumn(validity, data, len(array), array.offset)
