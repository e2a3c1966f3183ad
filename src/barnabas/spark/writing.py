"""Rows of Arrow columns into batches of their partitions, and the producers that take them.

W1  a row goes to the partition it names, else to that of its key by Kafka's default partitioner, else to one
    partition after the other, a batch each
W2  rows of a partition keep their order, but rows without a key and partition have none
W3  `rows` and `total` say what was written, whatever order it came in
W4  a producer is lent to one task at a time; one that failed is closed, the others wait here for the next
    task of this worker process

Runs in executors: no session, no JVM.
"""

import contextlib
import logging
import os
import random
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from barnabas.base.clock import Clock, SystemClock
from barnabas.base.errors import Misuse
from barnabas.client.bulk_produce import BulkProducer
from barnabas.client.errors import KafkaError
from barnabas.records.builder import BatchBuilder
from barnabas.records.columns_out import KernelRows, number_column
from barnabas.records.kernel import place, row_sum
from barnabas.spark.memory import keep_freed_memory
from barnabas.spark.sink_options import ColumnError, SinkOptions

__all__ = ["Outlet", "RowWriter", "Tally", "lend", "write_at_least_once"]

_log: Final = logging.getLogger("barnabas.spark.sink")
HELD_BYTES_MAX: Final = 64 << 20
KEPT_MAX: Final = 16
_UNPLACED: Final = -1
_MASK: Final = 2**64 - 1


class Outlet(Protocol):
    """What takes the batches, and seals them."""

    def send(self, topic: str, partition: int, batch: bytearray) -> object: ...
    def partitions_for(self, topic: str) -> int: ...


class Tally:
    """How many rows there were, and their sum: equal for the same rows in any order."""

    def __init__(self, options: SinkOptions) -> None:
        self._topic = options.topic
        self.rows = 0
        self.total = 0

    def add(self, batch: Any) -> None:
        for topic, part in _by_topic(batch, self._topic):
            self.add_rows(topic, KernelRows(_payload(part)))

    def add_rows(self, topic: str, rows: KernelRows) -> None:
        seed = zlib.crc32(topic.encode()) + 1
        self.rows += rows.count
        self.total = self.total + row_sum(rows.count, rows.keys, rows.values, rows.headers, seed) & _MASK


class _Topic:
    """The batches of one topic that are being filled."""

    def __init__(self, name: str, partition_count: int) -> None:
        self.name: Final = name
        self.partition_count: Final = partition_count
        self.builders: dict[int, BatchBuilder] = {}
        self.turn = random.randrange(partition_count)


class RowWriter:
    """Takes rows, hands batches to a producer.  `finish` hands over those that are not full."""

    def __init__(
        self, outlet: Outlet, options: SinkOptions, *, tally: Tally | None = None, clock: Clock | None = None
    ) -> None:
        self._outlet = outlet
        self._options = options
        self._tally = tally
        self._clock = clock or SystemClock()
        self._topics: dict[str, _Topic] = {}
        self.rows = 0

    def write(self, batch: Any) -> None:
        """Takes one Arrow record batch.  Raises ColumnError for rows that cannot be written."""
        now_ms = self._clock.now_ms()
        for name, part in _by_topic(batch, self._options.topic):
            topic = self._topics.get(name)
            if topic is None:
                topic = self._topics[name] = _Topic(name, self._outlet.partitions_for(name))
            try:
                self._write_topic(topic, part, now_ms)
            except Misuse as error:
                raise ColumnError(f"topic {name}: {error}") from error
        self.rows += batch.num_rows
        if sum(each.size_bytes for topic in self._topics.values() for each in topic.builders.values()) > (
            HELD_BYTES_MAX
        ):
            self.finish()

    def finish(self) -> None:
        """Sends every batch that holds a row."""
        for topic in self._topics.values():
            for partition, builder in topic.builders.items():
                if len(builder):
                    self._outlet.send(topic.name, partition, builder.build(seal=False))

    def _write_topic(self, topic: _Topic, part: Any, now_ms: int) -> None:
        rows = KernelRows(_payload(part, with_time=self._options.takes_timestamps))
        if self._tally is not None:
            self._tally.add_rows(topic.name, rows)
        names = part.schema.names
        chosen = number_column(part.column(names.index("partition"))) if "partition" in names else None
        keys = None if self._options.ignores_keys else rows.keys
        order, groups = place(rows.count, topic.partition_count, keys, chosen)
        for group in groups:
            self._fill(topic, rows, order, group, now_ms)

    def _fill(
        self, topic: _Topic, rows: KernelRows, order: bytearray, group: tuple[int, int, int], now_ms: int
    ) -> None:
        partition, start, stop = group
        while True:
            place_now = topic.turn if partition == _UNPLACED else partition
            builder = topic.builders.get(place_now)
            if builder is None:
                builder = topic.builders[place_now] = self._builder()
            start += builder.append_columns(
                start, stop, now_ms, rows.timestamps, rows.keys, rows.values, rows.headers, order
            )
            if start == stop:
                return
            self._outlet.send(topic.name, place_now, builder.build(seal=False))
            if partition == _UNPLACED:
                topic.turn = (topic.turn + 1) % topic.partition_count

    def _builder(self) -> BatchBuilder:
        compression = self._options.compression
        return BatchBuilder(
            max(self._options.batch_bytes, 1024), codec=compression.codec, level=compression.level
        )


def _payload(batch: Any, *, with_time: bool = False) -> Any:
    """The columns that a record is made of."""
    wanted = ("key", "value", "headers", "timestamp") if with_time else ("key", "value", "headers")
    return batch.select([name for name in wanted if name in batch.schema.names])


def _by_topic(batch: Any, topic: str | None) -> Iterator[tuple[str, Any]]:
    """The rows of each topic; all of them when the option names it.  Raises ColumnError for null."""
    if topic is not None:
        yield topic, batch
        return
    import pyarrow.compute as pc

    column = batch.column(batch.schema.names.index("topic"))
    if column.null_count:
        raise ColumnError(
            "a row has null in the column topic; use the option topic to name one topic for all rows"
        )
    encoded = column.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    for number, name in enumerate(names):
        yield name, batch if len(names) == 1 else batch.filter(pc.equal(encoded.indices, number))


# --- producers

_kept: OrderedDict[tuple[int, frozenset[tuple[str, str]], str | None], BulkProducer] = OrderedDict()


@contextlib.contextmanager
def lend(client: Mapping[str, str], transactional_id: str | None = None) -> Iterator[BulkProducer]:
    """A producer for one task.  With a transactional id it has just taken that id over."""
    keep_freed_memory()
    key = os.getpid(), frozenset(client.items()), transactional_id
    producer = _kept.pop(key, None)
    if producer is not None and transactional_id is not None:
        producer = _taken_over(producer)
    if producer is None:
        producer = BulkProducer(client, transactional_id=transactional_id)
    try:
        yield producer
    except BaseException:
        producer.close()
        raise
    if key in _kept:  # two tasks of one worker had one each
        producer.close()
    else:
        _kept[key] = producer
    while len(_kept) > KEPT_MAX:
        _, oldest = _kept.popitem(last=False)
        oldest.close()


def _taken_over(producer: BulkProducer) -> BulkProducer | None:
    """The producer, if it could take its id over; it may have been kept for longer than the brokers did."""
    try:
        producer.take_over()
    except KafkaError as error:
        _log.debug("a producer that was kept is of no use any more: %s", error)
        producer.close()
        return None
    return producer


def close_kept() -> None:
    """Closes the producers that wait for a task; for tests."""
    while _kept:
        _, producer = _kept.popitem()
        producer.close()


def write_at_least_once(batches: Iterable[Any], options: SinkOptions) -> int:
    """Writes rows; the number of them when all are acknowledged.  Raises KafkaError, ColumnError."""
    with lend(options.client) as producer:
        writer = RowWriter(producer, options)
        for batch in batches:
            writer.write(batch)
        writer.finish()
        producer.flush()
        return writer.rows
