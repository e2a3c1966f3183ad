"""The record kernel in plain Python: the twin that runs where the compiled one is not built.

`kernel.Kernel` says what each function promises.  The two twins agree on every result and every error
text; what they share (value types, the checks that are not hot) lives here and the compiled one imports it.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, NoReturn, final

from barnabas.base.errors import Misuse
from barnabas.records import faults
from barnabas.records._columns_plain import (
    BinaryColumn,
    ColumnBuilder,
    HeaderColumn,
    TimeColumn,
    held_binary,
    held_headers,
    held_times,
    numbers_of,
    read_binary,
    read_header_pairs,
    read_time,
)
from barnabas.records._compact_plain import OffsetMap
from barnabas.records._place_plain import place, row_sum
from barnabas.records._walk_plain import (
    INT32_MAX,
    INT64_MAX,
    INT64_MIN,
    Data,
    Header,
    check_count,
    piece,
    read_headers,
    walk,
    wrap,
)
from barnabas.records.errors import TooLarge
from barnabas.records.faults import malformed

__all__ = [
    "Checked",
    "ColumnBuilder",
    "OffsetMap",
    "PayloadBuilder",
    "Record",
    "check",
    "decode",
    "encode",
    "filter",
    "header_tuples",
    "keys",
    "place",
    "row_sum",
]

_set = object.__setattr__


@final
class Record:
    """One record as a reader sees it.  It never changes and can be hashed and pickled.

    `timestamp` is in ms and `timestamp_type` says whose it is: 0 the producer's, 1 the broker's.
    A record that was not read from a topic has topic None and partition -1; leader_epoch -1 is unknown.
    """

    __slots__ = (
        "headers",
        "key",
        "leader_epoch",
        "offset",
        "partition",
        "timestamp",
        "timestamp_type",
        "topic",
        "value",
    )

    offset: Final[int]  # type: ignore[misc]  # set by __init__ through object.__setattr__
    timestamp: Final[int]  # type: ignore[misc]  # likewise
    key: Final[bytes | None]  # type: ignore[misc]  # likewise
    value: Final[bytes | None]  # type: ignore[misc]  # likewise
    headers: Final[tuple[Header, ...]]  # type: ignore[misc]  # likewise
    topic: Final[str | None]  # type: ignore[misc]  # likewise
    partition: Final[int]  # type: ignore[misc]  # likewise
    timestamp_type: Final[int]  # type: ignore[misc]  # likewise
    leader_epoch: Final[int]  # type: ignore[misc]  # likewise

    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[Header] = (),
        topic: str | None = None,
        partition: int = -1,
        timestamp_type: int = 0,
        leader_epoch: int = -1,
    ) -> None:
        _set(self, "offset", offset)
        _set(self, "timestamp", timestamp)
        _set(self, "key", key)
        _set(self, "value", value)
        _set(self, "headers", header_tuples(headers) if headers else ())
        _set(self, "topic", topic)
        _set(self, "partition", partition)
        _set(self, "timestamp_type", timestamp_type)
        _set(self, "leader_epoch", leader_epoch)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"attribute {name!r} of a Record is not writable")

    def __reduce__(self) -> tuple[type["Record"], tuple[Any, ...]]:
        return Record, self._fields()

    def _fields(self) -> tuple[Any, ...]:
        return (
            self.offset,
            self.timestamp,
            self.key,
            self.value,
            self.headers,
            self.topic,
            self.partition,
            self.timestamp_type,
            self.leader_epoch,
        )

    def __eq__(self, other: object) -> bool:
        if type(other) is not Record:
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        place = "" if self.topic is None else f", topic={self.topic!r}, partition={self.partition}"
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, "
            f"value={self.value!r}, headers={self.headers!r}{place})"
        )


def header_tuples(headers: Iterable[Header]) -> tuple[Header, ...]:
    """Headers in the one form that records hold and builders write.

    Raises TypeError for anything but (text, bytes or None) pairs, Misuse for text without a UTF-8 form.
    """
    pairs: list[Header] = []
    for pair in headers:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(f"a header is a (key, value) pair, not {pair!r}")
        key, value = pair
        if not isinstance(key, str):
            raise TypeError(f"a header key is text, not {type(key).__name__}")
        if value is not None and not isinstance(value, bytes | bytearray | memoryview):
            raise TypeError(f"a header value is bytes or None, not {type(value).__name__}")
        try:
            key.encode()
        except UnicodeEncodeError:
            raise Misuse(f"header key {key!r} cannot be written as UTF-8") from None
        pairs.append((str(key), None if value is None else bytes(value)))
    return tuple(pairs)


class Checked(NamedTuple):
    """What a walk over all records of a batch found; the first three are -1 for no records at all."""

    max_timestamp: int
    max_timestamp_delta: int  # offset delta of the first record that has max_timestamp
    min_timestamp: int
    null_keys: int
    attributes: int  # those of all records, or-ed; Kafka uses none of the bits


def decode(
    payload: Data,
    count: int,
    base_offset: int,
    base_timestamp: int,
    log_append_time: int | None = None,
    *,
    start_offset: int = INT64_MIN,
    topic: str | None = None,
    partition: int = -1,
    leader_epoch: int = -1,
) -> list[Record]:
    data = bytes(payload)
    appended = log_append_time is not None
    records = []
    for walked in walk(data, count):
        offset = wrap(base_offset + walked.offset_delta)
        if offset < start_offset:
            continue
        record = Record(
            offset,
            wrap(base_timestamp + walked.timestamp_delta) if log_append_time is None else log_append_time,
            piece(data, walked.key, walked.key_size),
            piece(data, walked.value, walked.value_size),
            read_headers(data, walked) if walked.header_count else (),
            topic,
            partition,
            int(appended),
            leader_epoch,
        )
        records.append(record)
    return records


def check(payload: Data, count: int, base_timestamp: int = 0, *, consecutive: bool = True) -> Checked:
    max_timestamp = max_timestamp_delta = min_timestamp = -1
    null_keys = attributes = expected = 0
    for index, walked in enumerate(walk(bytes(payload), count)):
        delta = walked.offset_delta
        if delta != expected and consecutive:
            raise malformed(faults.DELTA, 0, index, delta, expected)
        if delta < expected:
            raise malformed(faults.FALLING, 0, index, delta, expected)
        expected = delta + 1
        timestamp = wrap(base_timestamp + walked.timestamp_delta)
        if index == 0 or timestamp > max_timestamp:
            max_timestamp, max_timestamp_delta = timestamp, delta
        if index == 0 or timestamp < min_timestamp:
            min_timestamp = timestamp
        null_keys += walked.key_size < 0
        attributes |= walked.attributes
    return Checked(max_timestamp, max_timestamp_delta, min_timestamp, null_keys, attributes)


def keys(payload: Data, count: int, base_offset: int) -> list[tuple[int, bytes | None, bool, int, int]]:
    data = bytes(payload)
    return [
        (
            wrap(base_offset + walked.offset_delta),
            piece(data, walked.key, walked.key_size),
            walked.value_size < 0,
            walked.position,
            walked.end - walked.position,
        )
        for walked in walk(data, count)
    ]


def filter(payload: Data, count: int, keep: Data, timestamp_shift: int = 0) -> tuple[bytearray, int]:
    data, mask = bytes(payload), bytes(keep)
    check_count(data, count)
    if len(mask) != count:
        raise Misuse(f"a mask of {len(mask)} bytes for {count} records")
    output, kept = bytearray(), 0
    for index, walked in enumerate(walk(data, count)):
        if not mask[index]:
            continue
        kept += 1
        if not timestamp_shift:
            output += data[walked.position : walked.end]
            continue
        body = bytearray((walked.attributes,))
        _put_varint(body, wrap(walked.timestamp_delta + timestamp_shift))
        body += data[walked.behind_timestamp : walked.end]
        _put_varint(output, len(body))
        output += body
    return output, kept


def _put_varint(out: bytearray, number: int) -> None:
    value = number << 1 if number >= 0 else (-number << 1) - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _varint(number: int) -> bytes:
    out = bytearray()
    _put_varint(out, number)
    return bytes(out)


def _sized(data: Data | None) -> tuple[Data, ...]:
    if data is None:
        return (b"\x01",)
    view = data if type(data) is bytes else memoryview(data).cast("B")
    return _varint(len(view)), view


@final
class PayloadBuilder:
    """Builds the payload of one batch at a time, at most `size_limit` bytes of records.

    `take` hands out `reserve` zero bytes and then the payload, so that a batch header can be written in
    front without moving the records.  The first record is always taken, however large.
    The base timestamp is that of the first record; before it, timestamps and deltas are -1.
    """

    def __init__(self, size_limit: int, *, reserve: int = 0) -> None:
        if size_limit < 0 or reserve < 0:
            raise Misuse(f"size_limit {size_limit} and reserve {reserve} must not be negative")
        self.size_limit: Final = size_limit
        self.reserve: Final = reserve
        self._clear()

    def _clear(self) -> None:
        self._buffer = bytearray(self.reserve)
        self.count = 0
        self.base_timestamp = -1
        self.max_timestamp = -1
        self.max_timestamp_delta = -1
        self._next_delta = 0

    @property
    def size(self) -> int:
        """Bytes of the records so far, without the reserve."""
        return len(self._buffer) - self.reserve

    @property
    def last_offset_delta(self) -> int:
        return self._next_delta - 1

    def __len__(self) -> int:
        return self.count

    def append(
        self,
        timestamp: int,
        key: Data | None,
        value: Data | None,
        headers: Iterable[Header] = (),
        offset_delta: int = -1,
    ) -> bool:
        """Add a record; False, and nothing changed, when it would pass the limit.

        `offset_delta` -1 is the one behind the last; a larger one leaves a gap.
        Raises TypeError, or Misuse for what the format cannot say.
        """
        if not INT64_MIN <= timestamp <= INT64_MAX:
            raise OverflowError(f"timestamp {timestamp} passes 64 bits")
        if offset_delta < 0:
            offset_delta = self._next_delta
        elif offset_delta < self._next_delta:
            raise Misuse(f"offset delta {offset_delta} after {self._next_delta - 1}")
        if offset_delta > INT32_MAX:
            raise Misuse(f"offset delta {offset_delta} passes 32 bits")
        pairs = header_tuples(headers) if headers else ()
        timestamp_delta = wrap(timestamp - self.base_timestamp) if self.count else 0
        parts: list[Data] = [b"\0", _varint(timestamp_delta), _varint(offset_delta)]
        parts += _sized(key)
        parts += _sized(value)
        parts.append(_varint(len(pairs)))
        for name, data in pairs:
            parts += _sized(name.encode())
            parts += _sized(data)
        return self._append(timestamp, offset_delta, parts)

    def _append(self, timestamp: int, offset_delta: int, parts: list[Data]) -> bool:
        record = _record(parts)
        if self.count and self.size + len(record) > self.size_limit:
            return False
        self._put(timestamp, offset_delta, record)
        return True

    def _put(self, timestamp: int, offset_delta: int, record: bytes) -> None:
        self._buffer += record
        if self.count == 0:
            self.base_timestamp = timestamp
        if self.count == 0 or timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_delta = timestamp, offset_delta
        self.count += 1
        self._next_delta = offset_delta + 1

    def append_payload(self, payload: Data, count: int, base_timestamp: int) -> bool:
        """Add all records of another payload; False, and nothing changed, when they do not fit.

        Keys, values, headers and times stay as they are, and offsets follow each other.  The first payload is
        always taken, however large.  Raises MalformedRecord with nothing changed.
        """
        if not INT64_MIN <= base_timestamp <= INT64_MAX:
            raise OverflowError(f"timestamp {base_timestamp} passes 64 bits")
        data = bytes(payload)
        base, place, size = self.base_timestamp, self._next_delta, self.size
        moved: list[tuple[int, bytes]] = []
        for walked in walk(data, count):
            timestamp = wrap(base_timestamp + walked.timestamp_delta)
            if place == 0:
                base = timestamp
            delta = wrap(timestamp - base)
            rest = data[walked.behind_offset : walked.end]
            moved.append(
                (timestamp, _record([bytes((walked.attributes,)), _varint(delta), _varint(place), rest]))
            )
            size += len(moved[-1][1])
            place += 1
        if self.count and (size > self.size_limit or place > INT32_MAX):
            return False
        for timestamp, record in moved:
            self._put(timestamp, self._next_delta, record)
        return True

    def append_columns(
        self,
        start: int,
        stop: int,
        timestamp: int,
        timestamps: TimeColumn | None = None,
        keys: BinaryColumn | None = None,
        values: BinaryColumn | None = None,
        headers: HeaderColumn | None = None,
        order: Data | None = None,
    ) -> int:
        """Add rows `start` to `stop` of Arrow columns, as many as fit; how many that were.

        A column that is None is null in every row; a null timestamp is `timestamp`.  With an `order` of all
        rows, as `place` gives it, they are the rows that it has from `start` to `stop`.
        Raises Misuse, with nothing changed, for offsets outside the data and for null header keys.
        """
        if not 0 <= start <= stop:
            raise Misuse(f"rows {start} to {stop} are no range")
        numbers = None if order is None else numbers_of(order, stop)
        count = stop if numbers is None else len(numbers)
        times = held_times(timestamps, count)
        held_keys, held_values = held_binary(keys, count), held_binary(values, count)
        pairs = held_headers(headers, count)
        size, state = len(self._buffer), self.__dict__.copy()
        try:
            for at in range(start, stop):
                row = at if numbers is None else numbers[at]
                if not 0 <= row < count:
                    raise Misuse(f"row {row} is in the order, of {count} rows")
                if self._next_delta > INT32_MAX or not self.append(
                    read_time(times, row, timestamp),
                    read_binary(held_keys, row),
                    read_binary(held_values, row),
                    read_header_pairs(pairs, row),
                ):
                    return at - start
        except Exception:
            self.__dict__.update(state)
            del self._buffer[size:]
            raise
        return stop - start

    def take(self) -> bytearray:
        """The reserve and the payload; the builder is empty again."""
        taken = self._buffer
        self._clear()
        return taken


def _record(parts: list[Data]) -> bytes:
    """The parts of one record with their length in front."""
    body = sum(map(len, parts))
    if body > INT32_MAX:
        raise TooLarge(f"a record of {body} bytes passes the format's {INT32_MAX}")
    return b"".join([_varint(body), *parts])


def encode(records: Iterable[tuple[int, Data | None, Data | None, Iterable[Header]]]) -> bytearray:
    builder = PayloadBuilder(INT32_MAX)
    for timestamp, key, value, headers in records:
        if not builder.append(timestamp, key, value, headers):
            raise TooLarge(f"the records pass the format's {INT32_MAX} bytes for a batch")
    return builder.take()
