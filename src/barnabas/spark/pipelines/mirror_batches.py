"""Which bytes of a fetch are copied: committed data as it lies there, decoded only where it must be.

B1  Control batches, aborted transactions and batches that compaction emptied are left out.
B2  For a target that keeps offsets every batch stays where it is; only its producer is taken out of it.
B3  Another target numbers records itself, without gaps, and refuses append times of others.  So a batch is
    built anew when compaction has left gaps in it or when its times are those of its append: what readers of
    the source see is what readers of the target see.
B4  Records below the position were copied before: a batch across it is built anew without them.
B5  To such a target small neighbours go as one batch, their records as they are: it takes one batch in a
    request.
B6  Every batch is checked against the checksum it came with before it gets another.

Pure; changes the memory of the fetch in place.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from barnabas.client.bulk_fetch import FetchedChunk
from barnabas.records.batch import (
    ATTRIBUTE_CODEC_MASK,
    ATTRIBUTE_LOG_APPEND_TIME,
    HEADER_BYTES,
    MAGIC,
    RecordBatch,
    iter_batches,
)
from barnabas.records.builder import BatchBuilder, build_batch
from barnabas.records.codecs import Codec
from barnabas.records.columns import AbortedFilter
from barnabas.records.copied import detach_batch
from barnabas.records.kernel import Record
from barnabas.records.legacy import magic_of, read_message_set

__all__ = ["KeptRun", "Piece", "kept_run", "pieces"]

PAYLOAD_BYTES_MAX: Final = 2**31 - 1
SMALL_BYTES: Final = 128 << 10
MERGED_BYTES: Final = 512 << 10
MERGED_LEAST: Final = 2


class KeptRun(NamedTuple):
    """What of a fetch goes to a target that keeps offsets: stretches of whole batches."""

    spans: list[memoryview]
    next_offset: int
    """Where the target's log ends with them."""
    records: int
    size_bytes: int


class Piece(NamedTuple):
    """One batch for a target that numbers records itself."""

    data: bytearray
    source: int
    """Offset of its first record at the source."""
    records: int
    is_dense: bool
    """Whether its records have consecutive offsets at the source."""
    next_offset: int
    """Where the source goes on behind it; a fetch may have been asked for less."""


def kept_run(chunk: FetchedChunk, log_end: int) -> KeptRun:
    """The batches of a fetch that belong behind `log_end`.  Raises RecordError."""
    spans: list[memoryview] = []
    next_offset, records, size = log_end, 0, 0
    if (magic_of(chunk.records) or MAGIC) < MAGIC:
        for batch in _rebuilt(_legacy(chunk, log_end), Codec.NONE):
            spans.append(batch.view)
            next_offset, records, size = (
                batch.next_offset,
                records + batch.record_count,
                size + batch.size_bytes,
            )
        return KeptRun(spans, next_offset, records, size)
    data = _writable(chunk.records)
    start = end = 0  # the stretch that grows
    for batch in _committed(data, chunk.aborted):
        if batch.next_offset <= next_offset:
            continue
        if batch.base_offset < next_offset:
            found = batch.records(limit=PAYLOAD_BYTES_MAX, start_offset=next_offset)
            fresh = _rebuilt(found, batch.codec)
            spans += [each.view for each in fresh]
            records += len(found)
            size += sum(each.size_bytes for each in fresh)
        else:
            detach_batch(data, batch)
            if batch.position != end:
                if end > start:
                    spans.append(data[start:end])
                start = batch.position
            end = batch.position + batch.size_bytes
            records += batch.record_count
            size += batch.size_bytes
        next_offset = batch.next_offset
    if end > start:
        spans.append(data[start:end])
    return KeptRun(spans, next_offset, records, size)


def pieces(
    chunk: FetchedChunk, position: int, limit: int | None = None, batch_bytes_max: int | None = None
) -> Iterator[Piece]:
    """The batches of a fetch from `position` on, below `limit`, as a producer may send them.

    Batches are joined (B5) up to `batch_bytes_max` if that is less than we would join.  Raises RecordError.
    """
    merged_bytes = min(MERGED_BYTES, max(batch_bytes_max or MERGED_BYTES, HEADER_BYTES))
    for piece in _pieces(chunk, position, limit, merged_bytes):
        if limit is not None and piece.next_offset > limit:
            yield piece._replace(next_offset=limit)
            return
        yield piece


def _pieces(chunk: FetchedChunk, position: int, limit: int | None, merged_bytes: int) -> Iterator[Piece]:
    if (magic_of(chunk.records) or MAGIC) < MAGIC:
        found = _below(_legacy(chunk, position), limit)
        yield from _built(found, Codec.NONE, found[-1].offset + 1 if found else position)
        return
    stretch: list[RecordBatch] = []
    for batch in _committed(chunk.records, chunk.aborted):
        if batch.next_offset <= position:
            continue
        if limit is not None and batch.base_offset >= limit:
            break
        is_whole = batch.base_offset >= position and (limit is None or batch.next_offset <= limit)
        if is_whole and _is_small(batch) and _joins(stretch, batch, merged_bytes):
            stretch.append(batch)
            continue
        yield from _merged(stretch, merged_bytes)
        stretch = [batch] if is_whole and _is_small(batch) else []
        if stretch:
            continue
        dense = batch.record_count == batch.last_offset_delta + 1
        if dense and is_whole and not batch.attributes & ATTRIBUTE_LOG_APPEND_TIME:
            yield _whole(batch)
        else:
            found = _below(batch.records(limit=PAYLOAD_BYTES_MAX, start_offset=position), limit)
            yield from _built(found, batch.codec, batch.next_offset)
    yield from _merged(stretch, merged_bytes)


def _whole(batch: RecordBatch) -> Piece:
    return Piece(bytearray(batch.view), batch.base_offset, batch.record_count, True, batch.next_offset)


def _is_small(batch: RecordBatch) -> bool:
    """Whether a request of its own costs more than moving its records into one with its neighbours (B5)."""
    return (
        batch.size_bytes < SMALL_BYTES
        and not batch.attributes & (ATTRIBUTE_LOG_APPEND_TIME | ATTRIBUTE_CODEC_MASK)
        and batch.record_count == batch.last_offset_delta + 1
    )


def _joins(stretch: list[RecordBatch], batch: RecordBatch, merged_bytes: int) -> bool:
    if not stretch:
        return True
    first, last = stretch[0], stretch[-1]
    size = batch.position + batch.size_bytes - first.position
    return last.next_offset == batch.base_offset and size <= merged_bytes


def _merged(stretch: list[RecordBatch], merged_bytes: int) -> Iterator[Piece]:
    """Neighbours without a gap between them as few batches."""
    if len(stretch) < MERGED_LEAST:
        yield from map(_whole, stretch)
        return
    builder = BatchBuilder(merged_bytes)
    source = stretch[0].base_offset
    for batch in stretch:
        if not builder.append_payload(batch.payload, batch.record_count, batch.base_timestamp):
            yield Piece(builder.build(), source, batch.base_offset - source, True, batch.base_offset)
            source = batch.base_offset
            builder.append_payload(batch.payload, batch.record_count, batch.base_timestamp)
    end = stretch[-1].next_offset
    yield Piece(builder.build(), source, end - source, True, end)


def _committed(data: memoryview, aborted: Iterable[tuple[int, int]] | None) -> Iterator[RecordBatch]:
    dropping = AbortedFilter(aborted or ())
    for batch in iter_batches(data):
        if not dropping.drops(batch) and not batch.is_control and batch.record_count > 0:
            batch.check()  # B6
            yield batch


def _legacy(chunk: FetchedChunk, position: int) -> list[Record]:
    found = read_message_set(chunk.records, limit=PAYLOAD_BYTES_MAX).records
    return [
        Record(each.offset, each.timestamp, each.key, each.value, each.headers)
        for each in found
        if each.offset >= position
    ]


def _below(records: list[Record], limit: int | None) -> list[Record]:
    return records if limit is None else [each for each in records if each.offset < limit]


def _built(records: list[Record], codec: Codec, next_offset: int) -> Iterator[Piece]:
    if records:
        first, last = records[0].offset, records[-1].offset
        rows = [(each.timestamp, each.key, each.value, each.headers) for each in records]
        data = build_batch(rows, codec=codec)
        yield Piece(data, first, len(records), last - first + 1 == len(records), next_offset)


def _rebuilt(records: list[Record], codec: Codec) -> list[RecordBatch]:
    """Batches of the records at their own offsets: a batch for each stretch without a gap."""
    stretches: list[list[Record]] = []
    for record in records:
        if stretches and stretches[-1][-1].offset + 1 == record.offset:
            stretches[-1].append(record)
        else:
            stretches.append([record])
    return [
        RecordBatch(
            memoryview(
                build_batch(
                    [(each.timestamp, each.key, each.value, each.headers) for each in stretch],
                    codec=codec,
                    base_offset=stretch[0].offset,
                )
            )
        )
        for stretch in stretches
    ]


def _writable(data: memoryview) -> memoryview:
    return memoryview(bytearray(data)) if data.readonly else data
