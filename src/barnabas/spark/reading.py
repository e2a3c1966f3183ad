"""What a task of the source does: ranges of offsets become Arrow batches with exactly Spark's schema.

E1  rows of a range come in offset order; batches of several ranges may be mixed
E2  a batch has about _BATCH_BYTES or _BATCH_ROWS; what is left of small ranges is joined, as every batch
    costs Spark about a millisecond
E3  a fetcher, with its connections and what it knows of the cluster, lives as long as its worker process and
    is used by one process only: PySpark forks its workers, so the cache is keyed by process

Bytes are fetched ahead on the fetcher's thread and decoded here.
"""

import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from barnabas.client.bulk_fetch import BulkFetcher, FetchedChunk, Lost
from barnabas.client.fetched import PAYLOAD_BYTES_MAX
from barnabas.records.batch import MAGIC, stamp_log_append_time
from barnabas.records.builder import build_batch
from barnabas.records.columns import ColumnReader, arrow
from barnabas.records.legacy import magic_of, read_message_set
from barnabas.spark.errors import DataLoss
from barnabas.spark.workers import settle

if TYPE_CHECKING:
    from barnabas.spark.options import SourceOptions
    from barnabas.spark.planning import OffsetRange

__all__ = ["close_fetchers", "fetcher_for", "read_task"]

_log: Final = logging.getLogger("barnabas.spark")

_BATCH_ROWS: Final = 50_000
_BATCH_BYTES: Final = 4 << 20
_SMALL_BYTES: Final = 1 << 20
_FETCHERS_MAX: Final = 8

Key = tuple[int, tuple[tuple[str, str], ...]]

_fetchers: Final[dict[Key, BulkFetcher]] = {}
_lock = threading.Lock()


def read_task(ranges: Sequence["OffsetRange"], options: "SourceOptions") -> Iterator[Any]:
    """The records of the ranges as pyarrow.RecordBatch, decoded as they are asked for.

    Offsets that are gone raise DataLoss, or are logged as a warning when `fail_on_data_loss` is off.
    Raises KafkaError, RequestTimedOut among them when nothing comes for `poll_timeout_ms`, and RecordError.
    """
    settle()
    fetcher = fetcher_for(options.client)
    packer = _Packer()
    positions = [each.start for each in ranges]
    reader: ColumnReader | None = None
    reading = -1
    chunks = fetcher.read(
        ranges,
        isolation="read_committed" if options.isolation_level == "read_committed" else "read_uncommitted",
        timeout_ms=options.poll_timeout_ms,
    )
    with closing(chunks):
        for chunk in chunks:
            index = chunk.range_index
            if chunk.lost is not None:
                _lose(chunk, chunk.lost, options.fail_on_data_loss)
            elif len(chunk.records):
                if reader is None or index != reading:
                    yield from packer.add(None if reader is None else reader.flush())
                    reader, reading = _reader_of(ranges[index], positions[index], options, fetcher), index
                for batch in reader.feed(_batches_of(chunk), chunk.aborted):
                    yield from packer.add(batch)
            positions[index] = chunk.next_offset
        yield from packer.add(None if reader is None else reader.flush())
        yield from packer.rest()


def fetcher_for(client: Mapping[str, str]) -> BulkFetcher:
    """The fetcher of this process for these settings; made at first use, and kept."""
    key = os.getpid(), tuple(sorted(client.items()))
    with _lock:
        found = _fetchers.pop(key, None)
        if found is None or found.is_closed:
            _make_room()
            found = BulkFetcher(client)
        _fetchers[key] = found  # the last one used is the last in order
    return found


def close_fetchers() -> None:
    """Ends the fetchers of this process, for tests and for programs that go on without Spark."""
    with _lock:
        for key in _own_keys():
            _fetchers.pop(key).close()


def _make_room() -> None:
    """Closes the one that was not used for longest; those of a parent process are not ours to touch."""
    own = _own_keys()
    if len(own) >= _FETCHERS_MAX:
        _fetchers.pop(own[0]).close()


def _own_keys() -> list[Key]:
    return [key for key in _fetchers if key[0] == os.getpid()]


def _after_fork() -> None:
    """A child starts with a lock that nobody holds."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _reader_of(
    each: "OffsetRange", position: int, options: "SourceOptions", fetcher: BulkFetcher
) -> ColumnReader:
    return ColumnReader(
        options.columns,
        start_offset=position,
        end_offset=each.end,
        topic=each.topic,
        partition=each.partition,
        rows_max=_BATCH_ROWS,
        bytes_max=_BATCH_BYTES,
        payload_bytes_max=PAYLOAD_BYTES_MAX,
        check_crc=fetcher.settings.boolean("check.crcs"),
    )


def _batches_of(chunk: FetchedChunk) -> memoryview | bytearray:
    """The records as batches of today's format; logs of before Kafka 0.11 have an older one."""
    if (magic_of(chunk.records) or 0) >= MAGIC:
        return chunk.records
    found = bytearray()
    for record in read_message_set(chunk.records, limit=PAYLOAD_BYTES_MAX).records:
        row = (record.timestamp, record.key, record.value, record.headers)
        batch = build_batch([row], base_offset=record.offset)
        if record.timestamp_type:
            stamp_log_append_time(batch, 0, record.timestamp)
        found += batch
    return found


def _lose(chunk: FetchedChunk, lost: Lost, fail: bool) -> None:
    error = DataLoss(chunk.topic, chunk.partition, lost.start, lost.end, lost.why)
    if fail:
        raise error
    _log.warning(
        "offsets %d to %d of %s-%d are lost and left out: %s",
        lost.start,
        lost.end - 1,
        chunk.topic,
        chunk.partition,
        lost.why,
    )


class _Packer:
    """Joins batches that are too small to be worth sending alone (E2), keeping their order."""

    def __init__(self) -> None:
        self._held: list[Any] = []
        self._rows = 0
        self._bytes = 0

    def add(self, batch: Any | None) -> Iterator[Any]:
        if batch is None:
            return
        size = batch.nbytes
        if (
            size >= _SMALL_BYTES
            or self._bytes + size > _BATCH_BYTES
            or self._rows + batch.num_rows > _BATCH_ROWS
        ):
            yield from self.rest()
        if size >= _SMALL_BYTES:
            yield batch
        else:
            self._held.append(batch)
            self._rows += batch.num_rows
            self._bytes += size

    def rest(self) -> Iterator[Any]:
        held, self._held = self._held, []
        self._rows = self._bytes = 0
        if len(held) > 1:
            yield arrow().Table.from_batches(held).combine_chunks().to_batches()[0]
        else:
            yield from held
