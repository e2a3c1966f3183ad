"""One task polls, many work: `aio.Consumer.run`, the twin of `worker_pool`.  `work` says what is promised."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from barnabas.base.types import TopicPartition
from barnabas.client.backoff import Backoff
from barnabas.client.errors import KafkaError
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.client.work import Item, Order, Retry, RunReport, Work
from barnabas.records.record import Record

if TYPE_CHECKING:
    from barnabas.client.aio_consumer import Consumer

__all__ = ["run"]

_log: Final = logging.getLogger("barnabas.client.run")

OnError = str | Callable[[Record, BaseException], object]

_POLL_S: Final = 0.05
_COMMIT_EVERY_S: Final = 1.0
_BACKLOG_PER_WORKER: Final = 1000
_RELEASE_WAIT_S: Final = 30.0


async def run(
    consumer: "Consumer",
    handler: Callable[[Record], Awaitable[object]],
    *,
    workers: int,
    order: Order | str,
    retry: Retry | None,
    on_error: OnError,
    until: Callable[[], bool] | None,
) -> RunReport:
    """Handles records until `wakeup`, `until()`, or an error that nobody takes over, which is raised."""
    pool = _Pool(consumer, handler, Work(workers, order), workers, retry or Retry(attempts=1), on_error)
    with consumer._manual_commits(pool):
        return await pool.run(until)


class _Pool:
    def __init__(
        self,
        consumer: "Consumer",
        handler: Callable[[Record], Awaitable[object]],
        work: Work,
        workers: int,
        retry: Retry,
        on_error: OnError,
    ) -> None:
        if isinstance(on_error, str) and on_error not in ("stop", "skip"):
            raise ValueError(f"on_error is stop, skip or a function, not {on_error!r}")
        self._consumer = consumer
        self._handler = handler
        self._work = work
        self._retry = retry
        self._on_error = on_error
        self._queues: list[asyncio.Queue[list[Item]]] = [asyncio.Queue() for _ in range(workers)]
        if work.is_unordered:
            self._queues = self._queues[:1] * workers
        self._finished = asyncio.Event()
        self._stopping = asyncio.Event()
        self._failure: BaseException | None = None
        self._backlog_max = workers * _BACKLOG_PER_WORKER
        self._is_paused = False
        self._commit_at = 0.0
        self.report = RunReport()

    async def run(self, until: Callable[[], bool] | None) -> RunReport:
        tasks = [asyncio.create_task(self._serve(queue)) for queue in self._queues]
        try:
            await self._loop(until)
        finally:
            self._stopping.set()
            for queue in self._queues:
                queue.put_nowait([])
            await asyncio.gather(*tasks)
            await self._commit(self._work.uncommitted())
            await self._go_back()
        if self._failure is not None:
            raise self._failure
        return self.report

    async def _loop(self, until: Callable[[], bool] | None) -> None:
        consumer, loop = self._consumer, asyncio.get_running_loop()
        self._commit_at = loop.time() + _COMMIT_EVERY_S
        while self._failure is None and not (until is not None and until()):
            records = await consumer.poll(_POLL_S)
            if consumer.was_woken:
                return
            for lane, items in self._work.admit(records):
                self._queues[lane].put_nowait(items)
            await self._balance()
            if loop.time() >= self._commit_at:
                self._commit_at = loop.time() + _COMMIT_EVERY_S
                if offsets := self._work.uncommitted():
                    consumer.commit_async(offsets)
                    self._work.committed(offsets)

    async def _balance(self) -> None:
        """Pauses while the workers are far behind; partitions that come meanwhile are paused as well."""
        backlog = self._work.outstanding
        if backlog >= self._backlog_max and self._consumer.assignment() != self._consumer.paused():
            self._is_paused = True
            await self._consumer.pause()
        elif self._is_paused and backlog < self._backlog_max // 2:
            self._is_paused = False
            await self._consumer.resume()

    async def _commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        if offsets:
            try:
                await self._consumer.commit(offsets)
            except KafkaError as error:
                _log.warning("offsets of the run were not committed: %s", error)

    async def _go_back(self) -> None:
        """Records that were taken and not finished are the next ones that a poll hands out."""
        if self._is_paused:
            await self._consumer.resume()
        for tp, mark in self._work.unfinished().items():
            if tp in self._consumer.assignment():
                await self._consumer.seek(tp, mark.offset)

    # --- rebalances, inside poll

    async def on_revoked(self, partitions: list[TopicPartition]) -> None:
        """Lets what is under way end, commits it, and voids the rest."""
        try:
            async with asyncio.timeout(_RELEASE_WAIT_S):
                while self._work.unfinished_of(partitions) and self._failure is None:
                    self._finished.clear()
                    await self._finished.wait()
        except TimeoutError:
            _log.warning("records of partitions that go were not done in time; another member gets them too")
        await self._commit(self._work.uncommitted(partitions))
        self._work.give_up(partitions)

    def on_lost(self, partitions: list[TopicPartition]) -> None:
        self._work.give_up(partitions)

    # --- the workers

    async def _serve(self, queue: "asyncio.Queue[list[Item]]") -> None:
        while items := await queue.get():
            for item in items:
                may = not item.is_void and not self._stopping.is_set()
                if may and await self._handle(item.record):
                    self._work.finish(item)
                else:
                    self._work.drop(item)
                self._finished.set()

    async def _handle(self, record: Record) -> bool:
        """True when the record is done; false when the run ends because of it or before it."""
        backoff = Backoff(self._retry.first_ms, self._retry.most_ms)
        for attempt in range(1, self._retry.attempts + 1):
            try:
                await self._handler(record)
            except Exception as error:
                if attempt == self._retry.attempts:
                    return await self._give_up(record, error)
                self.report.retried += 1
                try:
                    async with asyncio.timeout(backoff.next_ms() / 1000):
                        await self._stopping.wait()
                    return False
                except TimeoutError:
                    pass
            else:
                self.report.processed += 1
                return True
        raise AssertionError("the last attempt returns")

    async def _give_up(self, record: Record, error: Exception) -> bool:
        """Every attempt failed: what `on_error` says."""
        if self._on_error == "stop":
            self._fail(error)
            return False
        if callable(self._on_error):
            try:
                result = self._on_error(record, error)
                if isinstance(result, Awaitable):
                    await result
            except Exception as failure:
                self._fail(failure)
                return False
        else:
            place = (record.topic, record.partition, record.offset)
            _log.warning("skipped the record of %s-%d at %d: %s", *place, error)
        self.report.skipped += 1
        return True

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._stopping.set()
        self._finished.set()
