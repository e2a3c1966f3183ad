"""The consumer for asyncio: the names and methods of the synchronous one, on the caller's event loop.

    async with Consumer(bootstrap_servers="localhost:9092", group_id="billing") as consumer:
        await consumer.subscribe("orders")
        async for record in consumer:
            await bill(record.key, record.value)

One task at a time may use a consumer; `wakeup` may be called from any other on the same loop.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from barnabas.base.types import TopicPartition
from barnabas.client.config import CONSUMER, parse
from barnabas.client.consumer import topics_or_pattern
from barnabas.client.consumer_core import ConsumerCore
from barnabas.client.errors import ClientClosed, KafkaError
from barnabas.client.metadata import PartitionInfo
from barnabas.client.offsets import EARLIEST, LATEST, GroupIdentity, OffsetAndTimestamp
from barnabas.client.poll_side import PollSide, as_offsets, as_partitions, as_timestamp
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.records.record import Record

if TYPE_CHECKING:
    from barnabas.client.arrow import ArrowPolls
    from barnabas.client.committer import Offsets
    from barnabas.client.work import Order, Retry, RunReport

__all__ = ["Consumer"]


class Consumer:
    """Reads records of topics, alone or as a member of a group.

    Settings are Kafka's (see docs/consumer.md).  Connect with `async with`, or with `start`.
    """

    def __init__(self, settings: Mapping[str, object] | None = None, /, **more: object) -> None:
        self._settings = parse(CONSUMER, settings, **more)
        self._limit = self._settings.integer("max.poll.records")
        self._timeout_ms = self._settings.integer("default.api.timeout.ms")
        self._is_woken = False
        self.was_woken = False
        """Whether the last poll ended because of `wakeup`."""
        self._is_closed = False
        self._made: tuple[ConsumerCore, PollSide, asyncio.Event] | None = None
        self._arrow: ArrowPolls | None = None

    async def start(self) -> None:
        """Connects.  Raises NoBrokersAvailable."""
        if self._is_closed:
            raise ClientClosed
        assert self._made is None, "started once"
        signal = asyncio.Event()
        core = ConsumerCore(self._settings, post=asyncio.get_running_loop().call_soon, signal=signal.set)
        try:
            await core.start()
            self._made = core, PollSide(core, self._settings), signal
        except BaseException:
            await core.close(0)
            raise

    @property
    def _core(self) -> ConsumerCore:
        return self._parts()[0]

    @property
    def _side(self) -> PollSide:
        return self._parts()[1]

    def _parts(self) -> tuple[ConsumerCore, PollSide, asyncio.Event]:
        if self._made is None:
            raise ClientClosed("the consumer is not started: use `async with`, or await start()")
        return self._made

    # --- what is read

    async def subscribe(
        self, topics: str | re.Pattern[str] | Iterable[str], *, listener: object = None
    ) -> None:
        """Reads these topics as a member of the group: a name, names, or a pattern for whole names.

        The methods of `listener` (see RebalanceListener) may be coroutines.
        """
        names, pattern = topics_or_pattern(topics)
        await self._core.subscribe(names, pattern, () if listener is None else (listener,))

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads exactly these partitions, outside of any group; those that stay keep their positions."""
        await self._core.assign(as_partitions(tuple(partitions)))

    async def unsubscribe(self) -> None:
        """Gives everything up and leaves the group; the listener hears on_revoked."""
        await self._give_up()
        self._side.drop_unseen()
        await self._core.unsubscribe()

    def assignment(self) -> set[TopicPartition]:
        return set(self._core.subscription.partitions)

    def subscription(self) -> frozenset[str]:
        """The topics subscribed to; of a pattern, those that match so far."""
        return self._core.subscription.topics

    # --- records

    async def poll(self, timeout: float | None = 0.0, max_records: int | None = None) -> list[Record]:  # noqa: ASYNC109  # a poll that finds nothing in time is no error
        """Up to `max_records` records (max.poll.records), waiting up to `timeout` seconds for the first.

        Without a timeout (None) it waits for as long as it takes.  The list is empty when nothing came in
        time, and after `wakeup`.  Listeners are called in here; errors that need the user are raised here.
        """
        side, limit = self._side, max_records or self._limit
        return await self._poll(timeout, lambda: side.take_unseen(limit) or side.take(limit))

    async def poll_batches(
        self,
        timeout: float | None = 0.0,  # noqa: ASYNC109  # as for poll
        *,
        columns: Collection[str] | None = None,
        max_rows: int = 50_000,
    ) -> list[Any]:
        """What has come, as Arrow record batches without an object per record; needs pyarrow."""
        if self._arrow is None:
            from barnabas.client.arrow import ArrowPolls

            self._arrow = ArrowPolls(self._core)
        polls = self._arrow
        return await self._poll(timeout, lambda: polls.take(columns, max_rows))

    async def _poll(self, timeout: float | None, take: Callable[[], list[Any]]) -> list[Any]:  # noqa: ASYNC109  # as for poll
        core, side, signal = self._parts()
        if self._is_closed:
            raise ClientClosed
        side.begin()
        try:
            if core.errands or core.faults:
                await self._attend()
            found = take()
            if found or timeout == 0 or self._is_woken:
                # Others on the loop, the fetcher among them, get their turn also when there is always more.
                await asyncio.sleep(0)
                return found
            loop = asyncio.get_running_loop()
            deadline = None if timeout is None else loop.time() + timeout
            while True:
                signal.clear()
                if core.errands or core.faults:
                    await self._attend()
                found = take()
                left = None if deadline is None else deadline - loop.time()
                if found or self._is_woken or (left is not None and left <= 0):
                    return found
                try:
                    async with asyncio.timeout(left):
                        await signal.wait()
                except TimeoutError:
                    pass
        finally:
            self.was_woken, self._is_woken = self._is_woken, False
            side.end()

    async def _attend(self) -> None:
        """Runs what has to happen inside poll; what a listener raises is raised when all is done."""
        core = self._core
        failure: BaseException | None = None
        while core.errands:
            errand = core.errands.popleft()
            try:
                result = errand.work()
                if isinstance(result, Awaitable):
                    result = await result
            except asyncio.CancelledError:
                errand.done(None, None)  # the user gave up on it; the group must not wait for ever
                raise
            except Exception as error:
                failure = failure or error
                errand.done(None, None)
            else:
                errand.done(result, None)
        if failure is not None:
            raise failure
        core.raise_fault()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        """The next record, whenever it comes; `wakeup` and `close` end the iteration."""
        side = self._side
        record = side.next_unseen()
        while record is None:
            if self._is_closed:
                raise StopAsyncIteration
            records = await self.poll(None)
            if not records:
                raise StopAsyncIteration
            side.iterate(records)
            record = side.next_unseen()
        return record

    def wakeup(self) -> None:
        """Makes the poll under way, or else the next one, return at once."""
        self._is_woken = True
        self._parts()[2].set()

    # --- positions

    async def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """The next poll goes on from this offset; one with an epoch is checked with the leader first."""
        tp = TopicPartition(*partition)
        self._side.drop_unseen([tp])
        await self._core.seek(tp, offset)

    async def rewind(self) -> None:
        """Goes back to the offsets committed last, or to where reading began: after a failed transaction."""
        self._side.drop_unseen()
        await self._core.rewind(self._timeout_ms)

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """To the first record there is; of all assigned partitions when none is named."""
        await self._seek_to(EARLIEST, partitions)

    async def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Behind the last record there is."""
        await self._seek_to(LATEST, partitions)

    async def seek_to_time(self, when: datetime | float, *partitions: TopicPartition) -> None:
        """To the first record not before `when` (a datetime with a zone, or ms), or to the end."""
        await self._seek_to(as_timestamp(when), partitions)

    async def _seek_to(self, timestamp: int, partitions: tuple[TopicPartition, ...]) -> None:
        wanted = as_partitions(partitions)
        self._side.drop_unseen(wanted or None)
        await self._core.seek_to_time(wanted, timestamp)

    async def position(self, partition: TopicPartition) -> int:
        """The next offset to be handed out, waiting for it to be known."""
        tp = TopicPartition(*partition)
        if (unread := self._side.unseen_position(tp)) is not None:
            return unread
        return await self._core.position(tp, self._timeout_ms)

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Behind all records seen so far, as `commit` commits them: to be kept with one's results."""
        return self._core.consumed()

    async def pause(self, *partitions: TopicPartition) -> None:
        """Hands out nothing of these (of all assigned, when none is named) until `resume`."""
        await self._core.pause(as_partitions(partitions), True)

    async def resume(self, *partitions: TopicPartition) -> None:
        await self._core.pause(as_partitions(partitions), False)

    def paused(self) -> set[TopicPartition]:
        return {tp for tp, state in self._core.subscription.partitions.items() if state.is_paused}

    async def beginning_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        """Where the logs start; of the assigned partitions when none is named."""
        return await self._offsets_at(EARLIEST, partitions)

    async def end_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        """Where the readable part of the logs ends."""
        return await self._offsets_at(LATEST, partitions)

    async def _offsets_at(
        self, timestamp: int, partitions: tuple[TopicPartition, ...]
    ) -> dict[TopicPartition, int]:
        wanted = dict.fromkeys(as_partitions(partitions) or self.assignment(), timestamp)
        found = await self._core.offsets_at(wanted, self._timeout_ms)
        return {tp: at.offset for tp, at in found.items()}

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, datetime | float]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition not before a time, or None where there is none."""
        wanted = {TopicPartition(*tp): as_timestamp(when) for tp, when in times.items()}
        found = await self._core.offsets_at(wanted, self._timeout_ms)
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

    async def commit(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None) -> None:
        """Commits these offsets, or those behind all records seen so far, and waits until it is done.

        Raises CommitFailed when the group went on without this member, RebalanceInProgress, KafkaError.
        """
        wanted = self._core.consumed() if offsets is None else as_offsets(offsets)
        await self._core.committer.commit(wanted)
        self._side.committed(wanted)

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        callback: "Callable[[Offsets, KafkaError | None], object] | None" = None,
    ) -> None:
        """The same without waiting; `callback(offsets, error)` is called in a later poll, or in close."""
        wanted = self._core.consumed() if offsets is None else as_offsets(offsets)
        self._core.commit_soon(wanted, callback)

    async def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group committed, of the assigned partitions by default; without a commit one is absent."""
        wanted = as_partitions(partitions) or sorted(self.assignment())
        return await self._core.committed(wanted, self._timeout_ms)

    # --- the rest

    async def run(
        self,
        handler: Callable[[Record], Awaitable[object]],
        *,
        workers: int = 4,
        order: "Order | Literal['key', 'partition', 'none']" = "key",
        retry: "Retry | None" = None,
        on_error: "Literal['stop', 'skip'] | Callable[[Record, BaseException], object]" = "stop",
        until: Callable[[], bool] | None = None,
    ) -> "RunReport":
        """Awaits `handler` for every record, `workers` at a time, until `wakeup`, an error or `until()`.

        See `work` for what is promised about order, commits and retries.
        """
        from barnabas.client.aio_worker_pool import run

        return await run(
            self, handler, workers=workers, order=order, retry=retry, on_error=on_error, until=until
        )

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of a topic and their leaders.  Raises UnknownTopic."""
        found = await self._core.cluster.topic(topic, timeout_ms=self._timeout_ms, create=False)
        return list(found.partitions)

    def metrics(self) -> dict[str, float]:
        """Counters and times under Kafka's names."""
        return self._side.metrics()

    async def close(self, timeout: float = 30.0) -> None:  # noqa: ASYNC109  # closing late is no error
        """Commits if commits are automatic, leaves the group and ends.  May be called again."""
        if self._is_closed or self._made is None:
            self._is_closed = True
            return
        core, _, signal = self._made
        try:
            await self._give_up()
        finally:
            self._is_closed = True
            signal.set()
            await core.close(int(timeout * 1000))
            while core.errands:
                result = core.errands.popleft().work()
                if isinstance(result, Awaitable):
                    await result

    @contextmanager
    def _manual_commits(self, pool: object) -> Iterator[None]:
        """Commits are the pool's while it runs, and it hears first of partitions that go."""
        core = self._core
        listeners, auto_commits = core.listeners, core.auto_commits
        core.listeners, core.auto_commits = (*listeners, pool), False
        try:
            yield
        finally:
            core.listeners, core.auto_commits = listeners, auto_commits

    async def _give_up(self) -> None:
        core = self._core
        owned = sorted(core.subscription.partitions)
        if not owned:
            return
        if core.auto_commits:
            try:
                await core.commit_last(core.consumed())
            except ClientClosed:
                raise
            except KafkaError as error:
                core.log_lost_commit(error)
        if core.subscription.is_by_group:
            for told in core.told("on_revoked"):
                result = told(owned)
                if isinstance(result, Awaitable):
                    await result

    async def __aenter__(self) -> Self:
        if self._made is None:
            await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        count = len(self._made[0].subscription.partitions) if self._made else 0
        return f"Consumer(group={self._settings.optional_string('group.id')!r}, {count} partitions)"
