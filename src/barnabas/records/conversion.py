"""Between the formats: what old producers send becomes a batch, what old consumers fetch stops being one.

Produce v0-2 carries message sets, Fetch v0-1 wants magic 0, Fetch v2-3 magic 1; the log holds batches only.
Upward nothing is lost.  Downward headers, control batches and producer ids are, and zstd cannot go at all.
Both look into every record, so they cost a decompression and a compression: they are for old clients only.
"""

from collections.abc import Iterable

from barnabas.base.errors import Misuse
from barnabas.records.batch import RecordBatch, iter_batches
from barnabas.records.builder import build_batch
from barnabas.records.codecs import Codec
from barnabas.records.errors import InvalidRecord, UnsupportedCodec
from barnabas.records.legacy import read_message_set, write_message_set

__all__ = ["down_convert", "up_convert"]


def up_convert(message_set: memoryview, *, limit: int, codec: Codec | None = None) -> bytearray:
    """The produced set as one batch, offsets counted from 0, compressed as the set was or as `codec` says.

    `limit` is what the set's wrappers may grow to.  Offsets of the set are of no account, as a producer
    does not know them.  Messages of magic 0 have no time: theirs is -1, unless the log stamps its own.
    Raises CorruptBatch, InvalidRecord, UnsupportedCodec, TooLarge.
    """
    read = read_message_set(message_set, limit=limit)
    if not read.records:
        raise InvalidRecord("the message set holds no message")
    if any(record.timestamp_type for record in read.records):
        raise InvalidRecord("clients may not set LogAppendTime")
    return build_batch(
        [(record.timestamp, record.key, record.value, ()) for record in read.records],
        codec=read.codec if codec is None else codec,
    )


def down_convert(
    batches: memoryview | Iterable[RecordBatch], to_magic: int, *, limit: int, first_offset: int = 0
) -> bytearray:
    """The batches as a message set of `to_magic` 0 or 1, offsets, times and compression kept.

    Records below `first_offset`, where the fetch starts, are left out of uncompressed batches: some
    old clients rely on it.  `limit` is what each batch may grow to when decompressed.
    The result is empty when there were only control batches: the caller must then read on, or the
    consumer, who cannot see them, would ask for the same offset for ever.
    Raises UnsupportedCodec for zstd, and as `RecordBatch.records`.
    """
    if to_magic not in (0, 1):
        raise Misuse(f"magic {to_magic} is not a message's")
    converted = bytearray()
    for batch in iter_batches(batches) if isinstance(batches, memoryview) else batches:
        if batch.is_control:
            continue
        if batch.codec is Codec.ZSTD:
            raise UnsupportedCodec("a zstd batch cannot be converted to a message set")
        start_offset = 0 if batch.is_compressed else first_offset
        converted += write_message_set(
            batch.records(limit=limit, start_offset=start_offset),
            magic=to_magic,
            codec=batch.codec,
            log_append_time=batch.log_append_time,
        )
    return converted
