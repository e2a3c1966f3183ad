"""Message sets, the formats before batches: magic 0 and 1, read and written.

A set is entries in a row, big-endian (WIRE.md section 4):

    offset i64 · size i32, of what follows it · crc u32 · magic i8 · attributes i8
    timestamp i64, magic 1 only · key length i32 · key · value length i32 · value

L1  The CRC is zlib's CRC-32, from the magic byte to the end of the entry.
L2  A compressed set is one entry, the wrapper, whose value is a compressed set and whose offset is that of
    the last message in it.  Inside, magic 0 has absolute offsets; magic 1 counts from 0, so the base is the
    wrapper's offset less the last inner one.  A wrapper at 0 is a producer's that knows no offsets.
L3  With LogAppendTime the wrapper's timestamp stands for all messages in it.
L4  A wrapper holds no wrapper, and only messages of its own magic.
L5  A set may end in a cut entry, for a broker cuts at its byte limit; the one in a wrapper may not, for it
    was whole when it was compressed.

Records have timestamp -1 in magic 0 and no headers in either.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from barnabas.base.errors import Misuse
from barnabas.records.batch import NO_TIMESTAMP
from barnabas.records.codecs import CODEC_BY_ID, Codec, compress, decompress
from barnabas.records.errors import CorruptBatch, InvalidRecord, TooLarge, UnsupportedCodec
from barnabas.records.lz4_header import with_kafka_checksum, with_right_checksum
from barnabas.records.record import Record

__all__ = ["MessageSet", "magic_of", "read_message_set", "write_message_set"]

Data = bytes | bytearray | memoryview

_MAGIC_AT: Final = 16  # in every format, batches too
_PREFIX: Final = Struct(">qi")  # offset, size
_ENTRY: Final = Struct(">qiIbb")  # offset, size, crc, magic, attributes
_CRC: Final = Struct(">I")
_CRC_AT: Final = 12
_CRC_COVERS_FROM: Final = 16
_TIMESTAMP: Final = Struct(">q")
_LENGTH: Final = Struct(">i")
_SIZE_MIN: Final = (14, 22)  # by magic: what the size field counts at least
_CODEC_MASK: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08
_SIZE_MAX: Final = 2**31 - 1


class MessageSet(NamedTuple):
    """What a set holds, wrappers opened."""

    records: list[Record]
    codec: Codec  # of the last wrapper, NONE without one
    size_bytes: int  # without the cut entry at its end


class _Entry(NamedTuple):
    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: memoryview | None
    value: memoryview | None


def magic_of(buffer: Data) -> int | None:
    """The format of what starts `buffer`: 0, 1 or 2 when it is sound; None when it is too short to tell."""
    if len(buffer) <= _MAGIC_AT:
        return None
    magic = buffer[_MAGIC_AT]
    return magic - 256 if magic > 127 else magic


def read_message_set(buffer: memoryview, *, limit: int) -> MessageSet:
    """All messages of the set; the wrappers together may grow to `limit` bytes when decompressed.

    Raises CorruptBatch, InvalidRecord, UnsupportedCodec, TooLarge.
    """
    records: list[Record] = []
    codec = Codec.NONE
    position = 0
    for entry, end in _entries(buffer, may_be_cut=True):
        position = end
        wrapped_in = CODEC_BY_ID[entry.attributes & _CODEC_MASK]
        if wrapped_in is Codec.NONE:
            records.append(_record(entry, entry.offset, entry.timestamp, entry.attributes))
            continue
        codec = wrapped_in
        inner = _unwrap(entry, codec, limit)
        limit -= len(inner)
        records += _inner_records(entry, inner)
    return MessageSet(records, codec, position)


def _entries(buffer: memoryview, *, may_be_cut: bool) -> Iterator[tuple[_Entry, int]]:
    """Each entry, its checksum proven, and the position behind it."""
    position, end = 0, len(buffer)
    while position < end:
        left = end - position
        magic = magic_of(buffer[position:])
        if magic not in (None, 0, 1):
            raise CorruptBatch(f"magic {magic} is not a message's")
        if left >= _PREFIX.size:
            offset, size = _PREFIX.unpack_from(buffer, position)
            if size < _SIZE_MIN[magic or 0]:
                raise CorruptBatch(f"message at offset {offset}: a size of {size} bytes is too small")
            if left >= _PREFIX.size + size:
                position += _PREFIX.size + size
                yield _entry(buffer[position - _PREFIX.size - size : position]), position
                continue
        if not may_be_cut:
            raise CorruptBatch(f"a compressed message set ends in {left} bytes of a cut message")
        return


def _entry(message: memoryview) -> _Entry:
    offset, _, stored_crc, magic, attributes = _ENTRY.unpack_from(message)
    crc = crc32(message[_CRC_COVERS_FROM:])
    if crc != stored_crc:
        raise CorruptBatch(
            f"message at offset {offset}: the stored CRC is {stored_crc:#010x}, the bytes have {crc:#010x}"
        )
    position = _ENTRY.size
    timestamp = NO_TIMESTAMP
    if magic == 1:
        (timestamp,) = _TIMESTAMP.unpack_from(message, position)
        position += _TIMESTAMP.size
    key, position = _sized(message, position, offset, "key")
    value, position = _sized(message, position, offset, "value")
    if position != len(message):
        raise CorruptBatch(
            f"message at offset {offset}: {len(message) - position} bytes are left over behind its value"
        )
    return _Entry(offset, magic, attributes, timestamp, key, value)


def _sized(message: memoryview, position: int, offset: int, field: str) -> tuple[memoryview | None, int]:
    left = len(message) - position - _LENGTH.size
    if left < 0:
        raise CorruptBatch(f"message at offset {offset}: the bytes end inside its {field} length")
    (length,) = _LENGTH.unpack_from(message, position)
    position += _LENGTH.size
    if length < 0:
        return None, position  # -1 on the wire; Kafka takes any negative length for null
    if length > left:
        raise CorruptBatch(f"message at offset {offset}: its {field} length is {length}, {left} bytes follow")
    return message[position : position + length], position + length


def _unwrap(wrapper: _Entry, codec: Codec, limit: int) -> memoryview:
    if codec is Codec.ZSTD:
        raise UnsupportedCodec("zstd does not exist in message sets")
    if wrapper.value is None:
        raise InvalidRecord(
            f"message at offset {wrapper.offset}: a {codec.name.lower()} wrapper without value"
        )
    packed: Data = wrapper.value
    if codec is Codec.LZ4 and wrapper.magic == 0:
        packed = with_right_checksum(packed)
    return memoryview(decompress(codec, packed, limit))


def _inner_records(wrapper: _Entry, inner: memoryview) -> list[Record]:
    messages = [entry for entry, _ in _entries(inner, may_be_cut=False)]
    if not messages:
        raise InvalidRecord(f"message at offset {wrapper.offset}: a compressed set without messages")
    for message in messages:
        if message.magic != wrapper.magic:
            raise InvalidRecord(
                f"message at offset {wrapper.offset}: magic {message.magic} inside magic {wrapper.magic}"
            )
        if message.attributes & _CODEC_MASK:
            raise InvalidRecord(f"message at offset {wrapper.offset}: a compressed message inside another")
    base = 0
    if wrapper.magic == 1 and wrapper.offset != 0:
        base = wrapper.offset - messages[-1].offset
        if base < 0:
            raise InvalidRecord(
                f"message at offset {wrapper.offset}: its last inner offset is {messages[-1].offset}"
            )
    append_time = wrapper.attributes & _LOG_APPEND_TIME if wrapper.magic == 1 else 0
    return [
        _record(
            message,
            base + message.offset,
            wrapper.timestamp if append_time else message.timestamp,
            wrapper.attributes,
        )
        for message in messages
    ]


def _record(entry: _Entry, offset: int, timestamp: int, attributes: int) -> Record:
    return Record(
        offset,
        timestamp,
        None if entry.key is None else bytes(entry.key),
        None if entry.value is None else bytes(entry.value),
        timestamp_type=attributes >> 3 & 1 if entry.magic == 1 else 0,
    )


def write_message_set(
    records: Iterable[Record],
    *,
    magic: int,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    log_append_time: int | None = None,
) -> bytearray:
    """The records, offsets kept, as a set of that magic; with a codec, as one wrapper.

    Headers are left out: the formats have none.  `log_append_time` is the time of all records, and is noted
    as such.  Raises UnsupportedCodec for zstd, TooLarge when a size passes the format.
    """
    if magic not in (0, 1):
        raise Misuse(f"magic {magic} is not a message's")
    if codec is Codec.ZSTD:
        raise UnsupportedCodec("zstd does not exist in message sets")
    attributes = 0 if log_append_time is None or magic == 0 else _LOG_APPEND_TIME
    kept = list(records)
    relative_to = kept[0].offset if kept and magic == 1 and codec is not Codec.NONE else 0
    plain = bytearray()
    for record in kept:
        timestamp = record.timestamp if log_append_time is None else log_append_time
        offset = record.offset - relative_to
        _put_message(plain, offset, magic, attributes, timestamp, record.key, record.value)
    if codec is Codec.NONE or not kept:
        return plain
    packed = compress(codec, plain, level)
    if codec is Codec.LZ4 and magic == 0:
        packed = with_kafka_checksum(packed)
    timestamp = max(record.timestamp for record in kept) if log_append_time is None else log_append_time
    wrapper = bytearray()
    _put_message(wrapper, kept[-1].offset, magic, attributes | codec, timestamp, None, packed)
    return wrapper


def _put_message(
    out: bytearray,
    offset: int,
    magic: int,
    attributes: int,
    timestamp: int,
    key: Data | None,
    value: Data | None,
) -> None:
    size = _SIZE_MIN[magic] + len(key or b"") + len(value or b"")
    if size > _SIZE_MAX:
        raise TooLarge(f"a message of {size} bytes passes the format's {_SIZE_MAX}")
    start = len(out)
    out += _ENTRY.pack(offset, size, 0, magic, attributes)
    if magic == 1:
        out += _TIMESTAMP.pack(timestamp)
    for field in (key, value):
        out += _LENGTH.pack(-1 if field is None else len(field))
        if field is not None:
            out += field
    with memoryview(out) as view:
        crc = crc32(view[start + _CRC_COVERS_FROM :])
    _CRC.pack_into(out, start + _CRC_AT, crc)
