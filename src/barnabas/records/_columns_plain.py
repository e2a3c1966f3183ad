"""Arrow buffers in plain Python: what a column is made of, reading its rows, gathering records in columns.

The types are those of both kernels.  Buffers are in Arrow's layout: offsets are little-endian int32 (int64
when `wide`), one more than rows; validity is a bitmap, least significant bit first, or None for no nulls.

C1  No data buffer passes INT32_MAX bytes: `bytes_max` is below it and one record cannot pass it.
C2  A payload that turns out malformed leaves the columns as they were before the call.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final, NamedTuple, final

from barnabas.base.errors import Misuse
from barnabas.records._walk_plain import (
    INT32_MAX,
    INT64_MAX,
    INT64_MIN,
    Data,
    Header,
    Walked,
    piece,
    read_headers,
    walk,
    wrap,
)
from barnabas.records.errors import TooLarge

__all__ = [
    "HEADERS",
    "KEY",
    "OFFSET",
    "TIMESTAMP",
    "TIMESTAMP_TYPE",
    "VALUE",
    "BinaryColumn",
    "ColumnBuilder",
    "Columns",
    "HeaderColumn",
    "TimeColumn",
    "held_binary",
    "held_headers",
    "held_times",
    "mended_text",
    "numbers_of",
    "read_binary",
    "read_header_pairs",
    "read_time",
]

# The columns that may be wanted, as bits.
OFFSET: Final = 1
TIMESTAMP: Final = 2
TIMESTAMP_TYPE: Final = 4
KEY: Final = 8
VALUE: Final = 16
HEADERS: Final = 32

_HEADER_COST: Final = 8  # bytes that a header counts for beside its text, so that their number is bounded
_INT64: Final = Struct("<q")
_PAIR32: Final = Struct("<ii")
_PAIR64: Final = Struct("<qq")


class BinaryColumn(NamedTuple):
    """Rows of bytes or text.  `start` is the row of the buffers that row 0 is in (a sliced array)."""

    validity: Any
    offsets: Any
    data: Any
    rows: int
    nulls: int = 0
    start: int = 0
    wide: bool = False


class HeaderColumn(NamedTuple):
    """Rows of lists of headers: offsets into the rows of `keys` and `values`."""

    validity: Any
    offsets: Any
    rows: int
    nulls: int
    keys: BinaryColumn
    values: BinaryColumn
    start: int = 0
    wide: bool = False


class TimeColumn(NamedTuple):
    """Rows of 64-bit milliseconds."""

    validity: Any
    data: Any
    rows: int
    start: int = 0


class Columns(NamedTuple):
    """Gathered rows; what was not wanted is None."""

    rows: int
    offset: Any
    timestamp: Any
    timestamp_type: Any
    key: BinaryColumn | None
    value: BinaryColumn | None
    headers: HeaderColumn | None


def _part(buffer: Any, needed: int, what: str) -> memoryview:
    if buffer is None:
        if needed:
            raise Misuse(f"the {what} of a column are missing")
        return memoryview(b"")
    view = memoryview(buffer).cast("B")
    if len(view) < needed:
        raise Misuse(f"the {what} of a column take {needed} bytes, {len(view)} are there")
    return view


def _held_validity(column: BinaryColumn | HeaderColumn | TimeColumn, stop: int) -> memoryview | None:
    if column.start < 0:
        raise Misuse(f"a column cannot start at row {column.start}")
    if column.validity is None:
        return None
    return _part(column.validity, (column.start + stop + 7) // 8, "validity bits")


def _held_offsets(column: BinaryColumn | HeaderColumn, stop: int) -> memoryview:
    return _part(column.offsets, (8 if column.wide else 4) * (column.start + stop + 1), "offsets")


def held_times(column: TimeColumn | None, stop: int) -> TimeColumn | None:
    """The column with views of its buffers, which are known to hold `stop` rows."""
    if column is None or stop == 0:
        return None
    validity = _held_validity(column, stop)
    return column._replace(
        validity=validity, data=_part(column.data, 8 * (column.start + stop), "timestamps")
    )


def numbers_of(order: Any, stop: int) -> memoryview:
    """The numbers of rows, of which there are `stop` or more."""
    view = _part(order, 4 * stop, "places")
    return view[: len(view) // 4 * 4].cast("i")


def held_binary(column: BinaryColumn | None, stop: int) -> BinaryColumn | None:
    """As `held_times`; the data is checked row by row."""
    if column is None or stop == 0:
        return None
    validity, offsets = _held_validity(column, stop), _held_offsets(column, stop)
    return column._replace(validity=validity, offsets=offsets, data=_part(column.data, 0, "data"))


def held_headers(column: HeaderColumn | None, stop: int) -> HeaderColumn | None:
    """As `held_binary`, for the offsets of the lists and all that keys and values hold."""
    if column is None or stop == 0:
        return None
    validity, offsets = _held_validity(column, stop), _held_offsets(column, stop)
    rows = min(column.keys.rows, column.values.rows)
    keys = held_binary(column.keys, rows) or column.keys
    values = held_binary(column.values, rows) or column.values
    return column._replace(validity=validity, offsets=offsets, keys=keys, values=values)


def _is_null(column: BinaryColumn | HeaderColumn | TimeColumn, row: int) -> bool:
    at = column.start + row
    return column.validity is not None and not column.validity[at >> 3] >> (at & 7) & 1


def _range(column: BinaryColumn | HeaderColumn, row: int) -> tuple[int, int]:
    width, pair = (8, _PAIR64) if column.wide else (4, _PAIR32)
    first, last = pair.unpack_from(column.offsets, width * (column.start + row))
    return first, last


def read_time(column: TimeColumn | None, row: int, otherwise: int) -> int:
    """The timestamp of a row of a held column."""
    if column is None or _is_null(column, row):
        return otherwise
    (value,) = _INT64.unpack_from(column.data, 8 * (column.start + row))
    return int(value)


def read_binary(column: BinaryColumn | None, row: int, name: int | None = None) -> bytes | None:
    """The bytes of a row of a held column; errors call the row `name`."""
    if column is None or _is_null(column, row):
        return None
    first, last = _range(column, row)
    if first < 0 or last < first or last > len(column.data):
        raise Misuse(f"row {row if name is None else name}: its offsets lie outside the data")
    return bytes(column.data[first:last])


def read_header_pairs(column: HeaderColumn | None, row: int) -> tuple[Header, ...]:
    """The headers of a row of a held column, () for null."""
    if column is None or _is_null(column, row):
        return ()
    first, last = _range(column, row)
    if first < 0 or last < first or last > min(column.keys.rows, column.values.rows):
        raise Misuse(f"row {row}: its offsets lie outside the data")
    pairs: list[Header] = []
    for at in range(first, last):
        key = read_binary(column.keys, at, row)
        if key is None:
            raise Misuse(f"row {row}: a header key is null")
        try:
            text = key.decode()
        except UnicodeDecodeError:
            raise Misuse(f"row {row}: a header key is not UTF-8") from None
        pairs.append((text, read_binary(column.values, at, row)))
    return tuple(pairs)


def mended_text(column: BinaryColumn) -> BinaryColumn:
    """The column with U+FFFD in place of what is not UTF-8: Arrow's text type allows nothing else."""
    held = held_binary(column, column.rows)
    texts = [read_binary(held, row) or b"" for row in range(column.rows)]
    return _binary_column([text.decode(errors="replace").encode() for text in texts])


def _binary_column(values: Sequence[bytes | None]) -> BinaryColumn:
    offsets, total, nulls = [0], 0, 0
    for value in values:
        nulls += value is None
        total += len(value or b"")
        offsets.append(total)
    if total > INT32_MAX:
        raise TooLarge(f"a column of {total} bytes passes Arrow's {INT32_MAX}")
    return BinaryColumn(
        _bitmap([value is not None for value in values]) if nulls else None,
        b"".join(offset.to_bytes(4, "little") for offset in offsets),
        b"".join(value or b"" for value in values),
        len(values),
        nulls,
    )


def _bitmap(bits: Sequence[bool]) -> bytes:
    number = sum(bit << at for at, bit in enumerate(bits))
    return number.to_bytes((len(bits) + 7) // 8, "little")


def _numbers(values: Sequence[int], width: int) -> bytes:
    return b"".join(value.to_bytes(width, "little", signed=True) for value in values)


@final
class ColumnBuilder:
    """Gathers the records of payloads as Arrow buffers, at most `rows_max` and about `bytes_max` of them.

    `wanted` is a sum of OFFSET, TIMESTAMP, TIMESTAMP_TYPE, KEY, VALUE and HEADERS.  A record that does not
    fit stays for the next turn, but the first record of a turn is always taken.
    One caller at a time; another one gets Misuse.
    """

    def __init__(self, wanted: int, *, rows_max: int, bytes_max: int) -> None:
        if rows_max < 1 or bytes_max < 1:
            raise Misuse(f"rows_max {rows_max} and bytes_max {bytes_max} must be positive")
        self._wanted = wanted
        self._rows_max = min(rows_max, INT32_MAX)
        self._bytes_max = min(bytes_max, INT32_MAX)
        self._rows: list[
            tuple[int, int, int, bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]
        ]
        self._rows = []
        self.size = 0

    @property
    def rows(self) -> int:
        return len(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def append(
        self,
        payload: Data,
        count: int,
        base_offset: int,
        base_timestamp: int,
        log_append_time: int | None = None,
        *,
        start_offset: int = INT64_MIN,
        end_offset: int = INT64_MAX,
        index: int = 0,
        position: int = 0,
    ) -> tuple[int, int]:
        """Add records from `index`, at byte `position`, on, those with start <= offset < end.

        Returns index and position to go on from; the index is `count` when the payload is done.
        """
        data = bytes(payload)
        if not (0 <= position <= len(data) and 0 <= index <= count):
            raise Misuse(f"record {index} at byte {position} is outside the payload")
        before = len(self._rows), self.size
        try:
            for walked in walk(data, count, index, position):
                offset = wrap(base_offset + walked.offset_delta)
                if start_offset <= offset < end_offset:
                    cost = self._cost(walked)
                    if self.rows >= self._rows_max or (self.rows and self.size + cost > self._bytes_max):
                        break
                    timestamp = wrap(base_timestamp + walked.timestamp_delta)
                    if log_append_time is not None:
                        timestamp = log_append_time
                    self._push(data, walked, offset, timestamp, int(log_append_time is not None))
                    self.size += cost
                index, position = index + 1, walked.end
        except Exception:
            del self._rows[before[0] :]
            self.size = before[1]
            raise
        return index, position

    def _cost(self, walked: Walked) -> int:
        cost = 0
        if self._wanted & KEY:
            cost += max(walked.key_size, 0)
        if self._wanted & VALUE:
            cost += max(walked.value_size, 0)
        if self._wanted & HEADERS and walked.header_count:
            cost += _HEADER_COST * walked.header_count + walked.end - walked.headers
        return cost

    def _push(self, data: bytes, walked: Walked, offset: int, timestamp: int, timestamp_type: int) -> None:
        headers = read_headers(data, walked) if self._wanted & HEADERS else ()
        self._rows.append(
            (
                offset,
                timestamp,
                timestamp_type,
                piece(data, walked.key, walked.key_size) if self._wanted & KEY else None,
                piece(data, walked.value, walked.value_size) if self._wanted & VALUE else None,
                tuple((key.encode(), value) for key, value in headers),
            )
        )

    def take(self) -> Columns:
        """The rows so far; the builder is empty again."""
        rows, wanted = self._rows, self._wanted
        self._rows, self.size = [], 0
        return Columns(
            len(rows),
            _numbers([row[0] for row in rows], 8) if wanted & OFFSET else None,
            _numbers([row[1] for row in rows], 8) if wanted & TIMESTAMP else None,
            _numbers([row[2] for row in rows], 4) if wanted & TIMESTAMP_TYPE else None,
            _binary_column([row[3] for row in rows]) if wanted & KEY else None,
            _binary_column([row[4] for row in rows]) if wanted & VALUE else None,
            _header_column([row[5] for row in rows]) if wanted & HEADERS else None,
        )


def _header_column(rows: Sequence[tuple[tuple[bytes, bytes | None], ...]]) -> HeaderColumn:
    offsets = [0]
    for headers in rows:
        offsets.append(offsets[-1] + len(headers))
    nulls = sum(not headers for headers in rows)
    return HeaderColumn(
        _bitmap([bool(headers) for headers in rows]) if nulls else None,
        _numbers(offsets, 4),
        len(rows),
        nulls,
        _binary_column([key for headers in rows for key, _ in headers]),
        _binary_column([value for headers in rows for _, value in headers]),
    )
