"""What both faces of the consumer do where the user polls: take records, know what was seen, commit in time.

N1  a commit without offsets never passes a record that an iteration has not yielded yet
N2  an automatic commit happens at the start of a poll, when the records of the one before are through

Used by one thread or task at a time, the one that polls; nothing here waits.
"""

import logging
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Final, cast

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.committer import Offsets
from barnabas.client.config import ClientSettings
from barnabas.client.consumer_core import ConsumerCore
from barnabas.client.deserializers import TypedRecord, deserializer_of
from barnabas.client.errors import KafkaError
from barnabas.client.fetched import Fetched
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.protocol.codes import ErrorCode
from barnabas.records.errors import RecordError
from barnabas.records.record import Record

__all__ = ["PollSide", "as_offsets", "as_partitions", "as_timestamp"]

_log: Final = logging.getLogger("barnabas.client.consumer")


class PollSide:
    """The state of the polling side of one consumer."""

    def __init__(self, core: ConsumerCore, settings: ClientSettings) -> None:
        self._core = core
        self._clock = core.cluster.clock
        self._read_key = deserializer_of(settings, "key")
        self._read_value = deserializer_of(settings, "value")
        self._is_typed = self._read_key is not None or self._read_value is not None
        self._interceptors = [one for one in settings.instances("interceptor.classes") if one]
        self._commit_every_ms = settings.integer("auto.commit.interval.ms")
        self._commit_at_ms = self._clock.monotonic_ms() + self._commit_every_ms
        self._unseen: list[Record] = []
        self._unseen_at = 0
        core.unread = self._unread

    def begin(self) -> None:
        """A poll begins: the records of the one before are through."""
        now = self._clock.monotonic_ms()
        self._core.begin_poll(now)
        if now >= self._commit_at_ms and self._core.auto_commits:
            self._commit_at_ms = now + self._commit_every_ms
            self._core.commit_changed_soon(self._core.consumed())

    def end(self) -> None:
        self._core.end_poll(self._clock.monotonic_ms())

    def take(self, limit: int) -> list[Record]:
        """Up to `limit` records.  Raises KafkaError for one that cannot be read; seek past it to go on."""
        try:
            records = self._core.queue.take(limit)
        except RecordError as error:
            raise self.unreadable(error) from error
        if records and self._is_typed:
            typed = [TypedRecord(record, self._read_key, self._read_value) for record in records]
            records = cast(list[Record], typed)  # the same fields, with the user's types in two of them
        if records and self._interceptors:
            records = self._intercept(records)
        return records

    def take_fetched(self) -> Fetched | None:
        return self._core.queue.take_fetched()

    @staticmethod
    def unreadable(error: RecordError) -> KafkaError:
        return KafkaError(
            f"fetched bytes cannot be read: {error}; seek behind them to go on",
            code=ErrorCode.CORRUPT_MESSAGE,
            retriable=False,
        )

    # --- iteration

    def next_unseen(self) -> Record | None:
        """The next record of the list being iterated."""
        at = self._unseen_at
        if at >= len(self._unseen):
            return None
        self._unseen_at = at + 1
        return self._unseen[at]

    def iterate(self, records: list[Record]) -> None:
        self._unseen, self._unseen_at = records, 0

    def _unread(self) -> Iterator[tuple[TopicPartition, int]]:
        for record in self._unseen[self._unseen_at :]:
            yield TopicPartition(record.topic or "", record.partition), record.offset

    def unseen_position(self, tp: TopicPartition) -> int | None:
        """The offset of the first record of a partition that an iteration has not yielded yet."""
        return next((offset for where, offset in self._unread() if where == tp), None)

    def take_unseen(self, limit: int) -> list[Record]:
        """What an iteration that was left had not yielded; a poll hands that out first."""
        taken = self._unseen[self._unseen_at : self._unseen_at + limit]
        self._unseen_at += len(taken)
        return taken

    def drop_unseen(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """After a seek: records from before are not yielded; None stands for all partitions."""
        left = self._unseen[self._unseen_at :] if partitions else []
        gone = set(partitions or ())
        self.iterate([r for r in left if TopicPartition(r.topic or "", r.partition) not in gone])

    # --- interceptors

    def _intercept(self, records: list[Record]) -> list[Record]:
        for interceptor in self._interceptors:
            on_consume = getattr(interceptor, "on_consume", None)
            if on_consume is None:
                continue
            try:
                records = on_consume(records)
            except Exception:
                _log.warning("the interceptor %r failed", interceptor, exc_info=True)
        return records

    def committed(self, offsets: Offsets) -> None:
        """Tells interceptors of a commit."""
        for interceptor in self._interceptors:
            on_commit = getattr(interceptor, "on_commit", None)
            if on_commit is None:
                continue
            try:
                on_commit(offsets)
            except Exception:
                _log.warning("the interceptor %r failed", interceptor, exc_info=True)

    # --- numbers

    def metrics(self) -> dict[str, float]:
        """Counters and times under Kafka's names; times in ms."""
        core, fetches = self._core, self._core.fetcher.counters
        lags = [lag for lag in core.lag().values() if lag is not None]
        commits, member = core.committer.counters, core.member
        return {
            "records-consumed-total": core.queue.taken_records,
            "bytes-consumed-total": core.queue.taken_bytes,
            "bytes-fetched-total": fetches.fetched_bytes,
            "bytes-queued": core.queue.queued_bytes,
            "fetch-total": fetches.fetches,
            "fetch-latency-avg": fetches.latency_ms_total / fetches.fetches if fetches.fetches else 0.0,
            "fetch-latency-max": fetches.latency_ms_max,
            "records-lag-max": max(lags, default=0),
            "assigned-partitions": len(core.subscription.partitions),
            "commit-total": commits.commits,
            "commit-failed-total": commits.failed,
            "rebalance-total": member.counters.rebalances if member else 0,
            "heartbeat-total": member.counters.heartbeats if member else 0,
            "heartbeat-failed-total": member.counters.failed_heartbeats if member else 0,
        }


def as_partitions(given: tuple[object, ...]) -> list[TopicPartition]:
    """Partitions given as arguments or as one list of them."""
    items: list[object] = []
    for item in given:
        is_pair = isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)
        items += [item] if is_pair or not isinstance(item, list | tuple | set | frozenset) else list(item)
    found = []
    for item in items:
        if not (isinstance(item, tuple) and len(item) == 2):
            raise Misuse(f"a partition is a TopicPartition or a (topic, number) pair, not {item!r}")
        found.append(TopicPartition(*item))
    return found


def as_offsets(
    given: Mapping[TopicPartition, int | OffsetAndMetadata],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets to commit; a number stands for an offset without a note."""
    return {
        TopicPartition(*tp): OffsetAndMetadata(at) if isinstance(at, int) else at for tp, at in given.items()
    }


def as_timestamp(when: datetime | float) -> int:
    """Milliseconds since 1970 of a time with a zone, or of a number that is already that.  Raises Misuse."""
    if not isinstance(when, datetime):
        timestamp = int(when)
    elif when.tzinfo is None:
        raise Misuse(f"{when} has no time zone, so it names no moment; add one, as datetime.UTC")
    else:
        timestamp = round(when.timestamp() * 1000)
    if timestamp < 0:
        raise Misuse(f"a time before 1970 is not one of a record: {when}")
    return timestamp
