"""From bytes that somebody sent to bytes that a leader may write: every check that needs no log.

`prepare_append` looks at nothing but its arguments, so a large batch may be prepared on a thread while the
event loop goes on; the log then appends what is prepared.  What is checked for a client, as in Kafka:
framing, magic and CRC; the size against max.message.bytes; counts and offsets; no control batch; every
record in the (decompressed) payload well-formed, without a gap, with a key where the topic is compacted,
and with a time within the topic's bounds.  A coordinator of ours is believed beyond framing and CRC.

A1  The bytes are changed in place: LogAppendTime is stamped and a wrong max_timestamp corrected here, offsets
    and leader epoch by the log.  A recompressed batch gets new memory.
"""

from struct import Struct
from typing import Final, NamedTuple

from barnabas.base.errors import Misuse
from barnabas.log.config import LogConfig
from barnabas.log.errors import InvalidTimestamp, RecordTooLarge
from barnabas.log.producers import Origin
from barnabas.log.segment import RELATIVE_OFFSET_MAX
from barnabas.records import kernel
from barnabas.records.batch import (
    ATTRIBUTE_CODEC_MASK,
    ATTRIBUTE_LOG_APPEND_TIME,
    NO_TIMESTAMP,
    RecordBatch,
    seal_batch,
    split_batches,
    stamp_log_append_time,
)
from barnabas.records.builder import assemble_batch
from barnabas.records.codecs import CODEC_BY_ID, decompress
from barnabas.records.errors import CorruptBatch, InvalidRecord

__all__ = ["PreparedAppend", "prepare_append", "split_runs", "uncompressed_payload"]

_MAX_TIMESTAMP: Final = Struct(">q")
_MAX_TIMESTAMP_AT: Final = 35
_DECOMPRESSED_BYTES_MIN: Final = 64 * 2**20  # allow at least this much, whatever max.message.bytes is
_DECOMPRESSED_RATIO_MAX: Final = 64


class PreparedAppend(NamedTuple):
    """Checked batches, ready for offsets; `data` is exactly theirs and writable."""

    data: memoryview
    batches: list[RecordBatch]
    origin: Origin
    log_append_time: int
    """The time stamped on every record, or -1."""


def prepare_append(
    data: memoryview, config: LogConfig, *, now_ms: int, origin: Origin = Origin.CLIENT, deep: bool = True
) -> PreparedAppend:
    """Check and stamp the batches in `data`, which must be writable.

    `deep` False believes the records inside the batches; it is for bytes that were checked before.
    Raises CorruptBatch, InvalidRecord, UnsupportedCodec, TooLarge, RecordTooLarge or InvalidTimestamp; then
    nothing in `data` has changed that a CRC covers, unless it is several batches.
    """
    if data.readonly:
        raise Misuse("the batches of an append are patched in place: the memory must be writable")
    batches = split_batches(data)
    if not batches:
        raise CorruptBatch("there is no batch")
    for batch in batches:
        if batch.size_bytes > config.max_message_bytes:
            raise RecordTooLarge(
                f"a batch of {batch.size_bytes} bytes is larger than "
                f"max.message.bytes={config.max_message_bytes}"
            )
        batch.check()
        if origin is Origin.CLIENT:
            batch.check_produced()
        elif batch.record_count < 1 or batch.last_offset_delta < 0:
            raise InvalidRecord(f"{batch!r} holds no record")
    if len(batches) > 1 and any(batch.producer_id >= 0 for batch in batches):
        raise InvalidRecord("a producer with an id sends one batch at a time to a partition")
    if config.codec is not None and any(
        not batch.is_control and batch.attributes & ATTRIBUTE_CODEC_MASK != config.codec for batch in batches
    ):
        data, batches = _recompress(batches, config)
    if origin is Origin.CLIENT:
        for batch in batches:
            _check_client_batch(batch, config, now_ms, deep)
    if not config.log_append_time:
        return PreparedAppend(data, batches, origin, NO_TIMESTAMP)
    for batch in batches:
        stamp_log_append_time(data, batch.position, now_ms)
        batch.attributes |= ATTRIBUTE_LOG_APPEND_TIME
        batch.max_timestamp = now_ms
    return PreparedAppend(data, batches, origin, now_ms)


def _check_client_batch(batch: RecordBatch, config: LogConfig, now_ms: int, deep: bool) -> None:
    if batch.attributes & ATTRIBUTE_LOG_APPEND_TIME:
        raise InvalidTimestamp("a producer may not set the timestamp type LogAppendTime")
    youngest, oldest = batch.max_timestamp, batch.base_timestamp
    if deep:
        checked = kernel.check(
            uncompressed_payload(batch, config.max_message_bytes), batch.record_count, batch.base_timestamp
        )
        if checked.null_keys and config.compact:
            raise InvalidRecord(
                f"{checked.null_keys} of {batch.record_count} records have no key, and the topic is compacted"
            )
        youngest, oldest = checked.max_timestamp, checked.min_timestamp
        if youngest != batch.max_timestamp:
            _correct_max_timestamp(batch, youngest)
    if config.log_append_time:
        return
    if youngest - now_ms > config.timestamp_after_max_ms:
        raise InvalidTimestamp(
            f"timestamp {youngest} is more than {config.timestamp_after_max_ms} ms after now, {now_ms}"
        )
    if oldest != NO_TIMESTAMP and now_ms - oldest > config.timestamp_before_max_ms:
        raise InvalidTimestamp(
            f"timestamp {oldest} is more than {config.timestamp_before_max_ms} ms before now, {now_ms}"
        )


def uncompressed_payload(batch: RecordBatch, max_message_bytes: int) -> memoryview | bytes | bytearray:
    """The records area, decompressed if need be, within a bound on how much a batch may grow.

    Raises CorruptBatch, UnsupportedCodec or TooLarge.
    """
    if not batch.attributes & ATTRIBUTE_CODEC_MASK:
        return batch.payload
    limit = max(_DECOMPRESSED_BYTES_MIN, _DECOMPRESSED_RATIO_MAX * max_message_bytes)
    return decompress(CODEC_BY_ID[batch.attributes & ATTRIBUTE_CODEC_MASK], batch.payload, limit)


def _correct_max_timestamp(batch: RecordBatch, max_timestamp: int) -> None:
    """Put right a header that does not say what its records do: time look-ups rely on it."""
    _MAX_TIMESTAMP.pack_into(batch.buffer, batch.position + _MAX_TIMESTAMP_AT, max_timestamp)
    seal_batch(batch.buffer, batch.position, batch.size_bytes)
    batch.max_timestamp = max_timestamp


def _recompress(batches: list[RecordBatch], config: LogConfig) -> tuple[memoryview, list[RecordBatch]]:
    assert config.codec is not None
    data = bytearray()
    for batch in batches:
        if batch.is_control:
            data += batch.view
            continue
        data += assemble_batch(
            uncompressed_payload(batch, config.max_message_bytes),
            record_count=batch.record_count,
            last_offset_delta=batch.last_offset_delta,
            base_timestamp=batch.base_timestamp,
            max_timestamp=batch.max_timestamp,
            attributes=batch.attributes,
            codec=config.codec,
            level=config.codec_level,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
        )
    view = memoryview(data)
    return view, split_batches(view)


def split_runs(batches: list[RecordBatch], segment_bytes: int) -> list[list[RecordBatch]]:
    """The batches of a leader in groups, each of which fits into one segment by bytes and offsets."""
    runs: list[list[RecordBatch]] = [[]]
    size = 0
    for batch in batches:
        run = runs[-1]
        fits = size + batch.size_bytes <= segment_bytes
        if run and not (fits and batch.last_offset - run[0].base_offset <= RELATIVE_OFFSET_MAX):
            runs.append(run := [])
            size = 0
        run.append(batch)
        size += batch.size_bytes
    return runs
