"""Records as Arrow record batches: from a consumer as they come, or a whole range of a topic at once.

    table = to_arrow("orders", bootstrap_servers="localhost:9092", since=yesterday)
    table.to_pandas()                  # or polars.from_arrow(table), or duckdb.sql("… from table")

The columns are those of Spark's Kafka source.  No object is made per record: fetched bytes become columns in
the compiled kernel.  pyarrow is needed, and imported on first use.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from barnabas.base.types import TopicPartition
from barnabas.client.consumer_core import ConsumerCore
from barnabas.client.errors import RequestTimedOut
from barnabas.client.fetched import PAYLOAD_BYTES_MAX, Fetched
from barnabas.client.poll_side import PollSide, as_timestamp
from barnabas.records.columns import ColumnReader, arrow, schema_of
from barnabas.records.errors import RecordError

__all__ = ["COLUMNS", "ArrowPolls", "to_arrow"]

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
_BATCH_BYTES_MAX: Final = 64 << 20
_POLL_S: Final = 0.1


class ArrowPolls:
    """The Arrow way of polling: whole fetches become record batches."""

    def __init__(self, core: ConsumerCore) -> None:
        self._core = core
        self._check_crc = core.settings.boolean("check.crcs")
        arrow()

    def take(self, columns: Collection[str] | None, max_rows: int) -> list[Any]:
        """What is queued, up to about `max_rows` rows.  Raises KafkaError as `poll` does."""
        taken: list[Any] = []
        rows = 0
        while rows < max_rows:
            fetched = self._core.queue.take_fetched()
            if fetched is None:
                break
            for batch in self._read(fetched, tuple(columns or COLUMNS), max_rows):
                taken.append(batch)
                rows += batch.num_rows
        self._core.queue.taken_records += rows
        return taken

    def _read(self, fetched: Fetched, columns: Sequence[str], max_rows: int) -> Iterator[Any]:
        state = fetched.state
        topic, partition = state.topic_partition
        reader = ColumnReader(
            columns,
            start_offset=state.position,
            topic=topic,
            partition=partition,
            rows_max=max_rows,
            bytes_max=_BATCH_BYTES_MAX,
            payload_bytes_max=PAYLOAD_BYTES_MAX,
            check_crc=self._check_crc,
        )
        try:
            yield from reader.feed(fetched.records, fetched.aborted)
        except RecordError as error:
            if (rest := reader.flush()) is None:
                state.session += 1
                self._core.read_again(state)
                raise PollSide.unreadable(error) from error
            # What was read before it is handed out; the fetch that follows meets the bad batch again.
            state.position = reader.next_offset
            state.session += 1
            self._core.read_again(state)
            yield rest
            return
        if (rest := reader.flush()) is not None:
            yield rest
        state.position = max(state.position, fetched.next_offset)
        state.position_epoch = fetched.leader_epoch


def to_arrow(
    topic: str,
    *,
    since: datetime | float | None = None,
    until: datetime | float | None = None,
    columns: Sequence[str] | None = None,
    settings: Mapping[str, object] | None = None,
    timeout: float = 60.0,
    **more: object,
) -> Any:
    """All records of a topic from `since` to before `until` (times with a zone, or ms) as one Arrow table.

    Without `since` from the first record, without `until` up to what was there at the call.  Times are those
    at which records were found by: the first one not before a time marks the place, as for `seek_to_time`.
    `settings` and keywords are those of a consumer; no group is joined and nothing is committed.
    Raises KafkaError; RequestTimedOut when nothing came for `timeout` seconds before the end was reached.
    """
    from barnabas.client.consumer import Consumer

    names = tuple(columns or COLUMNS)
    pa, schema = arrow(), schema_of(names)
    given = {**(settings or {}), **more, "enable.auto.commit": False}
    with Consumer(given) as consumer:
        partitions = [TopicPartition(topic, number) for number in range(len(consumer.partitions_for(topic)))]
        latest = consumer.end_offsets(*partitions)
        ends = _bounds(consumer, partitions, until, latest)
        if since is None:
            starts = consumer.beginning_offsets(*partitions)
        else:
            starts = _bounds(consumer, partitions, since, latest)
        unread = {tp for tp in partitions if starts[tp] < ends[tp]}
        consumer.assign(sorted(unread))
        for tp in unread:
            consumer.seek(tp, starts[tp])
        batches = list(_read_until(consumer, unread, ends, _with_place(names), timeout))
    return pa.Table.from_batches([batch.select(names) for batch in batches], schema=schema)


def _read_until(
    consumer: Any,
    unread: set[TopicPartition],
    ends: Mapping[TopicPartition, int],
    columns: Sequence[str],
    timeout: float,
) -> Iterator[Any]:
    """Batches up to the end of each partition; the position tells, as an end may have no record before it."""
    deadline = time.monotonic() + timeout
    while unread:
        found = consumer.poll_batches(_POLL_S, columns=columns)
        done = {tp for tp in unread if consumer.position(tp) >= ends[tp]}
        if found or done:
            deadline = time.monotonic() + timeout
        elif time.monotonic() > deadline:
            raise RequestTimedOut(
                f"{len(unread)} partitions did not reach their end, {min(unread)} among them"
            )
        for batch in found:
            if (cut := _before(batch, ends)) is not None:
                yield cut
        if done:
            unread -= done
            consumer.assign(sorted(unread))


def _bounds(
    consumer: Any,
    partitions: list[TopicPartition],
    when: datetime | float | None,
    default: dict[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """The offset of a time in each partition; `default` where there is no such record, or no time."""
    if when is None:
        return default
    found = consumer.offsets_for_times(dict.fromkeys(partitions, as_timestamp(when)))
    return {tp: default[tp] if found[tp] is None else found[tp].offset for tp in partitions}


def _with_place(names: Sequence[str]) -> tuple[str, ...]:
    """The columns wanted, and those needed to know where a batch belongs."""
    return tuple(dict.fromkeys((*names, "topic", "partition", "offset")))


def _before(batch: Any, ends: Mapping[TopicPartition, int]) -> Any | None:
    """The rows of a batch below the end of its partition."""
    tp = TopicPartition(batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py())
    offsets = batch.column("offset")
    end = ends[tp]
    if offsets[-1].as_py() < end:
        return batch
    low, high = 0, batch.num_rows
    while low < high:
        middle = (low + high) // 2
        if offsets[middle].as_py() < end:
            low = middle + 1
        else:
            high = middle
    return batch.slice(0, low) if low else None
