"""The record kernel in plain Python: the twin that runs where the compiled one is not built.

`kernel.Kernel` says what each function promises.  The two twins agree on every result and every error
text; what they share (value types, the checks that are not hot) lives here and the compiled one imports it.

P1  Positions are indexes into one bytes object, checked before each read; no read relies on IndexError.
P2  Timestamps and offsets wrap at 64 bits, as the Java that defined the format does.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, NoReturn, final

from barnabas.base.errors import Misuse
from barnabas.records import faults
from barnabas.records.errors import TooLarge
from barnabas.records.faults import RECORD_BYTES_MIN, malformed

__all__ = ["Checked", "Header", "PayloadBuilder", "Record", "check", "decode", "encode", "header_tuples"]

Data = bytes | bytearray | memoryview
Header = tuple[str, bytes | None]

INT32_MAX: Final = 2**31 - 1
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

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


class Walked(NamedTuple):
    """One record as positions in its payload; sizes of -1 are null."""

    position: int  # where its length begins
    attributes: int
    timestamp_delta: int
    offset_delta: int
    key: int
    key_size: int
    value: int
    value_size: int
    headers: int
    header_count: int
    end: int


def _wrap(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def _varint(data: bytes, position: int, end: int, width: int, field: int, index: int) -> tuple[int, int]:
    """The zig-zag varint of at most `width` bytes (5 or 10) at `position`, and the position behind it."""
    value = shift = 0
    bits = 32 if width == 5 else 64
    for at in range(position, min(position + width, end)):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> bits:
                break
            return (value >> 1) ^ -(value & 1), at + 1
        shift += 7
    kind = faults.NOT_VARINT if end - position >= width else faults.CUT
    raise malformed(kind, field, index, 0, 0)


def _sized(data: bytes, position: int, end: int, smallest: int, field: int, index: int) -> tuple[int, int]:
    size, position = _varint(data, position, end, 5, field, index)
    if size < smallest or size > end - position:
        raise malformed(faults.SIZE, field, index, size, end - position)
    return size, position


def _read_record(data: bytes, start: int, index: int, count: int) -> Walked:
    if start == len(data):
        raise malformed(faults.ENDED, 0, index, count, 0)
    size, position = _varint(data, start, len(data), 5, faults.LENGTH_FIELD, index)
    if size < RECORD_BYTES_MIN - 1 or size > len(data) - position:
        raise malformed(faults.LENGTH, faults.LENGTH_FIELD, index, size, len(data) - position)
    end = position + size
    attributes = data[position]
    timestamp_delta, position = _varint(data, position + 1, end, 10, faults.TIMESTAMP_DELTA, index)
    offset_delta, position = _varint(data, position, end, 5, faults.OFFSET_DELTA, index)
    key_size, key = _sized(data, position, end, -1, faults.KEY_LENGTH, index)
    value_size, value = _sized(data, key + max(key_size, 0), end, -1, faults.VALUE_LENGTH, index)
    header_count, headers = _sized(data, value + max(value_size, 0), end, 0, faults.HEADER_COUNT, index)
    position = headers
    for _ in range(header_count):
        size, position = _sized(data, position, end, 0, faults.HEADER_KEY_LENGTH, index)
        size, position = _sized(data, position + size, end, -1, faults.HEADER_VALUE_LENGTH, index)
        position += max(size, 0)
    if position != end:
        raise malformed(faults.LEFTOVER, 0, index, end - position, 0)
    return Walked(
        start, attributes, timestamp_delta, offset_delta,
        key, key_size, value, value_size, headers, header_count, end,
    )  # fmt: skip


def _walk(data: bytes, count: int) -> Iterator[Walked]:
    """Every record of a payload; the last step proves that nothing follows them."""
    if count < 0 or count > len(data) // RECORD_BYTES_MIN:
        raise malformed(faults.COUNT, 0, 0, count, len(data))
    position = 0
    for index in range(count):
        walked = _read_record(data, position, index, count)
        position = walked.end
        yield walked
    if position != len(data):
        raise malformed(faults.TRAILING, 0, count, len(data) - position, 0)


def _piece(data: bytes, position: int, size: int) -> bytes | None:
    return None if size < 0 else data[position : position + size]


def _headers(data: bytes, walked: Walked) -> tuple[Header, ...]:
    pairs: list[Header] = []
    position = walked.headers
    for _ in range(walked.header_count):
        size, position = _varint(data, position, walked.end, 5, faults.HEADER_KEY_LENGTH, 0)
        key = data[position : position + size].decode(errors="replace")
        size, position = _varint(data, position + size, walked.end, 5, faults.HEADER_VALUE_LENGTH, 0)
        pairs.append((key, _piece(data, position, size)))
        position += max(size, 0)
    return tuple(pairs)


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
    for walked in _walk(data, count):
        offset = _wrap(base_offset + walked.offset_delta)
        if offset < start_offset:
            continue
        record = Record(
            offset,
            _wrap(base_timestamp + walked.timestamp_delta) if log_append_time is None else log_append_time,
            _piece(data, walked.key, walked.key_size),
            _piece(data, walked.value, walked.value_size),
            _headers(data, walked) if walked.header_count else (),
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
    for index, walked in enumerate(_walk(bytes(payload), count)):
        delta = walked.offset_delta
        if delta != expected and consecutive:
            raise malformed(faults.DELTA, 0, index, delta, expected)
        if delta < expected:
            raise malformed(faults.FALLING, 0, index, delta, expected)
        expected = delta + 1
        timestamp = _wrap(base_timestamp + walked.timestamp_delta)
        if index == 0 or timestamp > max_timestamp:
            max_timestamp, max_timestamp_delta = timestamp, delta
        if index == 0 or timestamp < min_timestamp:
            min_timestamp = timestamp
        null_keys += walked.key_size < 0
        attributes |= walked.attributes
    return Checked(max_timestamp, max_timestamp_delta, min_timestamp, null_keys, attributes)


def _put_varint(out: bytearray, number: int) -> None:
    value = number << 1 if number >= 0 else (-number << 1) - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _put_sized(out: bytearray, data: Data | None) -> None:
    if data is None:
        out.append(1)
    else:
        _put_varint(out, len(data))
        out += data


def _sound_bytes(value: Data | None) -> Data | None:
    return value if value is None or type(value) is bytes else memoryview(value).cast("B")


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
        body = bytearray(1)
        _put_varint(body, _wrap(timestamp - self.base_timestamp) if self.count else 0)
        _put_varint(body, offset_delta)
        _put_sized(body, _sound_bytes(key))
        _put_sized(body, _sound_bytes(value))
        _put_varint(body, len(pairs))
        for name, data in pairs:
            _put_sized(body, name.encode())
            _put_sized(body, data)
        if len(body) > INT32_MAX:
            raise TooLarge(f"a record of {len(body)} bytes passes the format's {INT32_MAX}")
        return self._append(timestamp, offset_delta, body)

    def _append(self, timestamp: int, offset_delta: int, body: bytearray) -> bool:
        before = len(self._buffer)
        _put_varint(self._buffer, len(body))
        if self.count and self.size + len(body) > self.size_limit:
            del self._buffer[before:]
            return False
        self._buffer += body
        if self.count == 0:
            self.base_timestamp = timestamp
        if self.count == 0 or timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_delta = timestamp, offset_delta
        self.count += 1
        self._next_delta = offset_delta + 1
        return True

    def take(self) -> bytearray:
        """The reserve and the payload; the builder is empty again."""
        taken = self._buffer
        self._clear()
        return taken


def encode(records: Iterable[tuple[int, Data | None, Data | None, Iterable[Header]]]) -> bytearray:
    builder = PayloadBuilder(INT32_MAX)
    for timestamp, key, value, headers in records:
        if not builder.append(timestamp, key, value, headers):
            raise TooLarge(f"the records pass the format's {INT32_MAX} bytes for a batch")
    return builder.take()
