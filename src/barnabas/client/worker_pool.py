"""One thread polls, many work: `Consumer.run`.  What is promised is in `work`.

The caller's thread polls, hands records to the lanes of the workers, collects what they finished and commits.
When the workers are behind, all partitions are paused and poll goes on, so that the group does not lose a
member that is only busy.  When partitions go, what is under way of them is waited for and committed first.

Each worker has a queue of its own, so that the order within a lane needs no lock; with order="none" all share
one.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

from barnabas.base.types import TopicPartition
from barnabas.client.backoff import Backoff
from barnabas.client.errors import KafkaError
from barnabas.client.work import Item, Order, Retry, RunReport, Work
from barnabas.records.record import Record

if TYPE_CHECKING:
    from barnabas.client.consumer import Consumer

__all__ = ["OnError", "run"]

_log: Final = logging.getLogger("barnabas.client.run")

OnError = str | Callable[[Record, BaseException], object]

_POLL_S: Final = 0.05
_COMMIT_EVERY_S: Final = 1.0
_BACKLOG_PER_WORKER: Final = 1000
_RELEASE_WAIT_S: Final = 30.0


def run(
    consumer: "Consumer",
    handler: Callable[[Record], object],
    *,
    workers: int,
    order: Order | str,
    retry: Retry | None,
    on_error: OnError,
    until: Callable[[], bool] | None,
) -> RunReport:
    """Handles records until `wakeup`, `until()`, or an error that nobody takes over, which is raised."""
    work = Work(workers, order)
    pool = _Pool(consumer, handler, work, workers, retry or Retry(attempts=1), on_error)
    with consumer._manual_commits(pool):
        return pool.run(until)


class _Pool:
    def __init__(
        self,
        consumer: "Consumer",
        handler: Callable[[Record], object],
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
        self._queues: list[SimpleQueue[list[Item] | None]] = [SimpleQueue() for _ in range(workers)]
        if work.is_unordered:
            self._queues = self._queues[:1] * workers
        self._finished: deque[tuple[Item, bool]] = deque()
        self._something_finished = threading.Event()
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._report_lock = threading.Lock()
        self._backlog_max = workers * _BACKLOG_PER_WORKER
        self._is_paused = False
        self._commit_at = time.monotonic() + _COMMIT_EVERY_S
        self.report = RunReport()

    # --- the caller's thread

    def run(self, until: Callable[[], bool] | None) -> RunReport:
        threads = [
            threading.Thread(target=self._serve, args=(queue,), name=f"barnabas-worker-{number}", daemon=True)
            for number, queue in enumerate(self._queues)
        ]
        for thread in threads:
            thread.start()
        try:
            self._loop(until)
        finally:
            self._stopping.set()
            for queue in self._queues:
                queue.put(None)
            for thread in threads:
                thread.join()
            self._collect()
            self._commit_last()
            self._go_back()
        if self._failure is not None:
            raise self._failure
        return self.report

    def _loop(self, until: Callable[[], bool] | None) -> None:
        consumer = self._consumer
        while self._failure is None and not (until is not None and until()):
            records = consumer.poll(_POLL_S)
            if consumer.was_woken:
                return
            for lane, items in self._work.admit(records):
                self._queues[lane].put(items)
            self._collect()
            self._balance()
            if time.monotonic() >= self._commit_at:
                self._commit_soon()

    def _balance(self) -> None:
        """Pauses while the workers are far behind; partitions that come meanwhile are paused as well."""
        backlog = self._work.outstanding
        if backlog >= self._backlog_max and self._consumer.assignment() != self._consumer.paused():
            self._is_paused = True
            self._consumer.pause()
        elif self._is_paused and backlog < self._backlog_max // 2:
            self._is_paused = False
            self._consumer.resume()

    def _collect(self) -> None:
        self._something_finished.clear()
        while self._finished:
            item, handled = self._finished.popleft()
            if handled:
                self._work.finish(item)
            else:
                self._work.drop(item)

    def _commit_soon(self) -> None:
        self._commit_at = time.monotonic() + _COMMIT_EVERY_S
        if offsets := self._work.uncommitted():
            self._consumer.commit_async(offsets)
            self._work.committed(offsets)

    def _commit_last(self) -> None:
        if offsets := self._work.uncommitted():
            try:
                self._consumer.commit(offsets)
            except KafkaError as error:
                _log.warning("the last offsets of the run were not committed: %s", error)

    def _go_back(self) -> None:
        """Records that were taken and not finished are the next ones that a poll hands out."""
        if self._is_paused:
            self._consumer.resume()
        for tp, mark in self._work.unfinished().items():
            if tp in self._consumer.assignment():
                self._consumer.seek(tp, mark.offset)

    # --- rebalances, in the caller's thread inside poll

    def on_revoked(self, partitions: list[TopicPartition]) -> None:
        """Lets what is under way end, commits it, and voids the rest."""
        owned = self._work.unfinished_of(partitions)
        deadline = time.monotonic() + _RELEASE_WAIT_S
        while owned and self._failure is None and (left := deadline - time.monotonic()) > 0:
            self._something_finished.wait(left)
            self._collect()
            owned = self._work.unfinished_of(partitions)
        if offsets := self._work.uncommitted(partitions):
            try:
                self._consumer.commit(offsets)
            except KafkaError as error:
                _log.warning("offsets of partitions that went were not committed: %s", error)
        self._work.give_up(partitions)

    def on_lost(self, partitions: list[TopicPartition]) -> None:
        self._work.give_up(partitions)

    # --- the workers

    def _serve(self, queue: "SimpleQueue[list[Item] | None]") -> None:
        while (items := queue.get()) is not None:
            for item in items:
                handled = not item.is_void and not self._stopping.is_set() and self._handle(item.record)
                self._finished.append((item, handled))
                self._something_finished.set()

    def _handle(self, record: Record) -> bool:
        """True when the record is done; false when the run ends because of it or before it."""
        backoff = Backoff(self._retry.first_ms, self._retry.most_ms)
        for attempt in range(1, self._retry.attempts + 1):
            try:
                self._handler(record)
            except Exception as error:
                if attempt == self._retry.attempts:
                    return self._give_up(record, error)
                self._count(retried=1)
                _log.debug("%s-%d at %d: %s", record.topic, record.partition, record.offset, error)
                if self._stopping.wait(backoff.next_ms() / 1000):
                    return False
            else:
                self._count(processed=1)
                return True
        raise AssertionError("the last attempt returns")

    def _give_up(self, record: Record, error: Exception) -> bool:
        """Every attempt failed: what `on_error` says."""
        if self._on_error == "stop":
            self._fail(error)
            return False
        if callable(self._on_error):
            try:
                self._on_error(record, error)
            except Exception as failure:
                self._fail(failure)
                return False
        else:
            place = (record.topic, record.partition, record.offset)
            _log.warning("skipped the record of %s-%d at %d: %s", *place, error)
        self._count(skipped=1)
        return True

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._stopping.set()
        self._something_finished.set()

    def _count(self, *, processed: int = 0, retried: int = 0, skipped: int = 0) -> None:
        with self._report_lock:
            self.report.processed += processed
            self.report.retried += retried
            self.report.skipped += skipped
