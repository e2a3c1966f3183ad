"""The consumer for threads: records in the caller's thread, everything else on a private one.

    with Consumer({"bootstrap.servers": "localhost:9092", "group.id": "billing"}) as consumer:
        consumer.subscribe("orders")
        for record in consumer:
            bill(record.key, record.value)

One thread at a time may use a consumer; only `wakeup` may be called from another.
"""

import asyncio
import re
import threading
import time
from collections.abc import Collection, Coroutine, Iterable, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.config import CONSUMER, ClientSettings, parse
from barnabas.client.consumer_core import ConsumerCore
from barnabas.client.errors import ClientClosed, KafkaError
from barnabas.client.metadata import PartitionInfo
from barnabas.client.offsets import EARLIEST, LATEST, GroupIdentity, OffsetAndTimestamp
from barnabas.client.poll_side import PollSide, as_offsets, as_partitions, as_timestamp
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.client.thread import ClientThread
from barnabas.records.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from barnabas.client.arrow import ArrowPolls
    from barnabas.client.committer import Offsets
    from barnabas.client.offset_stores.store import OffsetStore
    from barnabas.client.work import Order, Retry, RunReport

__all__ = ["Consumer", "topics_or_pattern"]

Result = TypeVar("Result")
_FORGOTTEN_MS: Final = 1000  # for leaving the group when nobody called close


class Consumer:
    """Reads records of topics, alone or as a member of a group.

    Settings are Kafka's (see docs/consumer.md), as a mapping with dots or as keywords with underscores.
    With `offset_store` offsets live there and not in the cluster.
    Raises ConfigFault for wrong settings and NoBrokersAvailable when no broker can be reached.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        /,
        *,
        offset_store: "OffsetStore | None" = None,
        **more: object,
    ) -> None:
        parsed = parse(CONSUMER, settings, **more)
        self._signal = threading.Event()
        closing = _Closing()
        self._thread = ClientThread("barnabas-client-consumer", closing=closing.close)
        self._limit = parsed.integer("max.poll.records")
        self._timeout_ms = parsed.integer("default.api.timeout.ms")
        self._store = offset_store
        self._is_woken = False
        self.was_woken = False
        """Whether the last poll ended because of `wakeup`."""
        self._is_closed = False
        self._arrow: ArrowPolls | None = None
        try:
            self._core = self._thread.call(_make(parsed, self._thread.loop, self._signal, closing))
            if offset_store is not None:
                self._core.auto_commits = False
            self._side = PollSide(self._core, parsed)
        except BaseException:
            self._thread.stop()
            raise

    # --- what is read

    def subscribe(self, topics: "str | re.Pattern[str] | Iterable[str]", *, listener: object = None) -> None:
        """Reads these topics as a member of the group: a name, names, or a pattern for whole names.

        A name that starts with ^ is a pattern too.  `listener` may have on_assigned, on_revoked and on_lost
        (see RebalanceListener); they are called inside poll.  Subscribing anew replaces what was before.
        """
        names, pattern = topics_or_pattern(topics)
        first = () if self._store is None else (_StoreListener(self),)
        self._call(self._core.subscribe(names, pattern, first if listener is None else (*first, listener)))

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads exactly these partitions, outside of any group; those that stay keep their positions."""
        wanted = as_partitions(tuple(partitions))
        self._call(self._core.assign(wanted))
        if self._store is not None:
            self._load(wanted)

    def unsubscribe(self) -> None:
        """Gives everything up and leaves the group; the listener hears on_revoked."""
        self._give_up()
        self._side.drop_unseen()
        self._call(self._core.unsubscribe())

    def assignment(self) -> set[TopicPartition]:
        return set(self._core.subscription.partitions)

    def subscription(self) -> frozenset[str]:
        """The topics subscribed to; of a pattern, those that match so far."""
        return self._core.subscription.topics

    # --- records

    def poll(self, timeout: float | None = 0.0, max_records: int | None = None) -> list[Record]:
        """Up to `max_records` records (max.poll.records), waiting up to `timeout` seconds for the first.

        Without a timeout (None) it waits for as long as it takes.  The list is empty when nothing came in
        time, and after `wakeup`.  Listeners are called in here; errors that need the user are raised here.
        """
        core, side, limit = self._core, self._side, max_records or self._limit
        if self._is_closed:
            raise ClientClosed
        side.begin()
        try:
            if core.errands or core.faults:
                self._attend()
            records = side.take_unseen(limit) or side.take(limit)
            if not records and (timeout is None or timeout > 0) and not self._is_woken:
                records = self._wait(None if timeout is None else time.monotonic() + timeout, limit)
        finally:
            self.was_woken, self._is_woken = self._is_woken, False
            side.end()
        return records

    def _wait(self, deadline: float | None, limit: int) -> list[Record]:
        """Waits for records, doing meanwhile what the loop asks for."""
        signal, core, side = self._signal, self._core, self._side
        while True:
            signal.clear()
            if core.errands or core.faults:
                self._attend()
            records = side.take(limit)
            if records or self._is_woken:
                return records
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return records
            signal.wait(left)

    def _attend(self) -> None:
        """Runs what has to happen inside poll; what a listener raises is raised when all is done."""
        failure: BaseException | None = None
        core = self._core
        while core.errands:
            errand = core.errands.popleft()
            try:
                result = errand.work()
            except BaseException as error:
                failure = failure or error
                errand.done(None, None)
            else:
                errand.done(result, None)
        if failure is not None:
            raise failure
        core.raise_fault()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Record:
        """The next record, whenever it comes; `wakeup` and `close` end the iteration."""
        record = self._side.next_unseen()
        while record is None:
            if self._is_closed:
                raise StopIteration
            records = self.poll(None)
            if not records:
                raise StopIteration
            self._side.iterate(records)
            record = self._side.next_unseen()
        return record

    def wakeup(self) -> None:
        """Makes the poll under way, or else the next one, return at once.  Any thread may call it."""
        self._is_woken = True
        self._signal.set()

    def poll_batches(
        self, timeout: float | None = 0.0, *, columns: Collection[str] | None = None, max_rows: int = 50_000
    ) -> list[Any]:
        """What has come, as Arrow record batches without an object per record; needs pyarrow.

        A batch is of one partition; those of one call may be of several.  The rules are those of `poll`; a
        consumer is polled in one of the two ways.
        """
        if self._arrow is None:
            from barnabas.client.arrow import ArrowPolls

            self._arrow = ArrowPolls(self._core)
        polls = self._arrow
        side = self._side
        side.begin()
        try:
            deadline = None if timeout is None else time.monotonic() + timeout
            while True:
                self._signal.clear()
                if self._core.errands or self._core.faults:
                    self._attend()
                batches = polls.take(columns, max_rows)
                left = None if deadline is None else deadline - time.monotonic()
                if batches or self._is_woken or (left is not None and left <= 0):
                    return batches
                self._signal.wait(left)
        finally:
            self.was_woken, self._is_woken = self._is_woken, False
            side.end()

    # --- positions

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """The next poll goes on from this offset; one with an epoch is checked with the leader first."""
        tp = TopicPartition(*partition)
        self._side.drop_unseen([tp])
        self._call(self._core.seek(tp, offset))

    def rewind(self) -> None:
        """Goes back to the offsets committed last, or to where reading began: after a failed transaction."""
        self._side.drop_unseen()
        self._call(self._core.rewind(self._timeout_ms))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """To the first record there is; of all assigned partitions when none is named."""
        self._seek_to(EARLIEST, partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Behind the last record there is."""
        self._seek_to(LATEST, partitions)

    def seek_to_time(self, when: datetime | float, *partitions: TopicPartition) -> None:
        """To the first record not before `when` (a datetime with a zone, or ms), or to the end."""
        self._seek_to(as_timestamp(when), partitions)

    def _seek_to(self, timestamp: int, partitions: tuple[TopicPartition, ...]) -> None:
        wanted = as_partitions(partitions)
        self._side.drop_unseen(wanted or None)
        self._call(self._core.seek_to_time(wanted, timestamp))

    def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """The next offset to be handed out, waiting for it to be known."""
        tp = TopicPartition(*partition)
        if (unread := self._side.unseen_position(tp)) is not None:
            return unread
        return self._call(self._core.position(tp, self._ms(timeout)))

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Behind all records seen so far, as `commit` commits them: to be kept with one's results."""
        return self._core.consumed()

    def pause(self, *partitions: TopicPartition) -> None:
        """Hands out nothing of these (of all assigned, when none is named) until `resume`."""
        self._call(self._core.pause(as_partitions(partitions), True))

    def resume(self, *partitions: TopicPartition) -> None:
        self._call(self._core.pause(as_partitions(partitions), False))

    def paused(self) -> set[TopicPartition]:
        return {tp for tp, state in self._core.subscription.partitions.items() if state.is_paused}

    def beginning_offsets(
        self, *partitions: TopicPartition, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Where the logs start; of the assigned partitions when none is named."""
        return self._offsets_at(EARLIEST, partitions, timeout)

    def end_offsets(
        self, *partitions: TopicPartition, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Where the readable part of the logs ends."""
        return self._offsets_at(LATEST, partitions, timeout)

    def _offsets_at(
        self, timestamp: int, partitions: tuple[TopicPartition, ...], timeout: float | None
    ) -> dict[TopicPartition, int]:
        wanted = dict.fromkeys(as_partitions(partitions) or self.assignment(), timestamp)
        found = self._call(self._core.offsets_at(wanted, self._ms(timeout)))
        return {tp: at.offset for tp, at in found.items()}

    def offsets_for_times(
        self, times: Mapping[TopicPartition, datetime | float], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition not before a time, or None where there is none."""
        wanted = {TopicPartition(*tp): as_timestamp(when) for tp, when in times.items()}
        found = self._call(self._core.offsets_at(wanted, self._ms(timeout)))
        return {tp: at if at.offset >= 0 else None for tp, at in found.items()}

    def lag(self) -> dict[TopicPartition, int | None]:
        """Records between the position and the end of the log at the last fetch; None before the first."""
        return self._core.lag()

    # --- commits

    def group_metadata(self) -> GroupIdentity:
        """Who this consumer is in its group, for `Producer.send_offsets_to_transaction`.

        Raises CommitFailed when it is no member at the moment, Misuse without group.id.
        """
        return self._core.committer.identity()

    @property
    def commits_by_itself(self) -> bool:
        """Whether offsets are committed without being asked to (enable.auto.commit)."""
        return self._core.auto_commits

    @property
    def reads_committed(self) -> bool:
        """Whether records of open and aborted transactions are left out (isolation.level)."""
        return self._core.reads_committed

    def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        *,
        timeout: float | None = None,
    ) -> None:
        """Commits these offsets, or those behind all records seen so far, and waits until it is done.

        Raises CommitFailed when the group went on without this member, RebalanceInProgress, KafkaError.
        """
        wanted = self._core.consumed() if offsets is None else as_offsets(offsets)
        if self._store is not None:
            self._store.save(self._group(), wanted)
        else:
            self._call(self._core.committer.commit(wanted, timeout_ms=self._ms(timeout)))
        self._side.committed(wanted)

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        callback: "Callable[[Offsets, KafkaError | None], object] | None" = None,
    ) -> None:
        """The same without waiting; `callback(offsets, error)` is called in a later poll, or in close."""
        wanted = self._core.consumed() if offsets is None else as_offsets(offsets)
        if self._store is not None:
            self._store.save(self._group(), wanted)
            return
        self._thread.post(self._core.commit_soon, wanted, callback)

    def committed(
        self, *partitions: TopicPartition, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group committed, of the assigned partitions by default; without a commit one is absent."""
        wanted = as_partitions(partitions) or sorted(self.assignment())
        if self._store is not None:
            return dict(self._store.load(self._group(), wanted))
        return self._call(self._core.committed(wanted, self._ms(timeout)))

    # --- the rest

    def run(
        self,
        handler: "Callable[[Record], object]",
        *,
        workers: int = 4,
        order: "Order | Literal['key', 'partition', 'none']" = "key",
        retry: "Retry | None" = None,
        on_error: "Literal['stop', 'skip'] | Callable[[Record, BaseException], object]" = "stop",
        until: "Callable[[], bool] | None" = None,
    ) -> "RunReport":
        """Calls `handler` for every record on `workers` threads, until `wakeup`, an error or `until()`.

        See `work` for what is promised about order, commits and retries.
        """
        from barnabas.client.worker_pool import run

        return run(self, handler, workers=workers, order=order, retry=retry, on_error=on_error, until=until)

    def partitions_for(self, topic: str, *, timeout: float | None = None) -> list[PartitionInfo]:
        """The partitions of a topic and their leaders.  Raises UnknownTopic."""
        found = self._call(self._core.cluster.topic(topic, timeout_ms=self._ms(timeout), create=False))
        return list(found.partitions)

    def metrics(self) -> dict[str, float]:
        """Counters and times under Kafka's names."""
        return self._side.metrics()

    def close(self, timeout: float | None = 30.0) -> None:
        """Commits if commits are automatic, leaves the group and ends, within `timeout` seconds.

        May be called again.
        """
        if self._is_closed or self._thread.is_stopped:
            return
        try:
            self._give_up()
        finally:
            self._is_closed = True
            self._core.is_polling = True  # closing is no idleness
            self._signal.set()
            try:
                self._thread.call(self._core.close(int((30.0 if timeout is None else timeout) * 1000)))
                self._run_callbacks()
            finally:
                self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        group = self._core.settings.optional_string("group.id")
        return f"Consumer(group={group!r}, {len(self._core.subscription.partitions)} partitions)"

    # --- inside

    @contextmanager
    def _manual_commits(self, pool: object) -> "Iterator[None]":
        """Commits are the pool's while it runs, and it hears first of partitions that go."""
        core = self._core
        listeners, auto_commits = core.listeners, core.auto_commits
        core.listeners, core.auto_commits = (*listeners, pool), False
        try:
            yield
        finally:
            core.listeners, core.auto_commits = listeners, auto_commits

    def _give_up(self) -> None:
        """Commits if commits are automatic, and tells the listener: what a rebalance does, for good."""
        owned = sorted(self._core.subscription.partitions)
        if not owned:
            return
        if self._core.auto_commits:
            try:
                self._call(self._core.commit_last(self._core.consumed()))
            except ClientClosed:
                raise
            except KafkaError as error:
                self._core.log_lost_commit(error)
        if self._core.subscription.is_by_group:
            for told in self._core.told("on_revoked"):
                told(owned)

    def _run_callbacks(self) -> None:
        while self._core.errands:
            self._core.errands.popleft().work()

    def _load(self, partitions: Iterable[TopicPartition]) -> None:
        """Goes on where the offset store says; partitions that it does not know follow the reset rule."""
        assert self._store is not None, "there is a store"
        for tp, at in self._store.load(self._group(), list(partitions)).items():
            if tp in self._core.subscription.partitions:
                self.seek(tp, at)

    def _group(self) -> str:
        group = self._core.settings.optional_string("group.id")
        if group is None:
            raise Misuse("an offset store needs group.id, under which offsets are kept")
        return group

    def _ms(self, timeout: float | None) -> int:
        return self._timeout_ms if timeout is None else int(timeout * 1000)

    def _call(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._thread.call(work)


class _Closing:
    """Ends the core of a consumer that its user forgot; knows the core only, so that it can be forgotten."""

    def __init__(self) -> None:
        self.core: ConsumerCore | None = None

    async def close(self) -> None:
        if self.core is not None:
            await self.core.close(_FORGOTTEN_MS)


async def _make(
    settings: ClientSettings, loop: asyncio.AbstractEventLoop, signal: threading.Event, closing: _Closing
) -> ConsumerCore:
    def post(callback: "Callable[..., object]", *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it all that could be asked of it
            loop.call_soon_threadsafe(callback, *arguments)

    closing.core = core = ConsumerCore(settings, post=post, signal=signal.set)
    await core.start()
    return core


class _StoreListener:
    """Takes positions from the offset store before the user's listener hears of partitions."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def on_assigned(self, partitions: list[TopicPartition]) -> None:
        self._consumer._load(partitions)


def topics_or_pattern(
    given: str | re.Pattern[str] | Iterable[str],
) -> tuple[list[str], re.Pattern[str] | None]:
    """What `subscribe` was given: names, or a pattern for whole names."""
    if isinstance(given, re.Pattern):
        return [], given
    if isinstance(given, str):
        return ([], re.compile(given)) if given.startswith("^") else ([given], None)
    return list(given), None
