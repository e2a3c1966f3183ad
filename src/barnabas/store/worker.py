"""The one thread that owns a store file, and the way to it and back.

W1  calls run in the order they were submitted; their answers reach the loop in that order
W2  writes that queued up in a row share one commit, and are answered after it
W3  reads run only when nothing uncommitted is in the file, so no answer shows what a power cut may undo
W4  a write's watch events reach the loop before its own answer, and before any later read's

If a commit fails, every write of its group fails and none took place.
Thread rules: `submit`, `stop` and `_deliver` belong to the loop, the rest to the worker.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from barnabas.base.clock import Clock
from barnabas.base.errors import Closed
from barnabas.store.errors import StoreError
from barnabas.store.sqlite_tree import SqliteTree
from barnabas.store.tree import WatchCallback, WatchEvent
from barnabas.store.watches import WatchTable

__all__ = ["Work", "Worker"]

_GROUP_MAX = 256  # bounds how long the first call of a group waits for the last
_T = TypeVar("_T")


class Work(NamedTuple):
    """What the worker hands to a call that it runs."""

    tree: SqliteTree
    watches: dict[int, WatchTable]  # by session
    events: list[WatchEvent]  # the call appends what it caused


class _Call(NamedTuple):
    future: asyncio.Future[Any]
    writes: bool
    run: Callable[[Work], Any]


class _Answer(NamedTuple):
    future: asyncio.Future[Any]
    value: Any
    error: Exception | None
    told: list[tuple[WatchCallback, WatchEvent]]


class Worker:
    """Starts with `start`, ends with `stop`; the loop that made it gets the answers."""

    def __init__(self, path: str, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()  # None: stop
        self._ahead: list[_Call | None] = []  # taken from the queue but not run yet
        self._watches: dict[int, WatchTable] = {}
        self._accepting = True
        self._stopped: asyncio.Future[None] = self._loop.create_future()
        # Daemon: a process that ends without `stop` loses nothing, for acknowledged means durable.
        self._thread = threading.Thread(target=self._main, name="barnabas-store", daemon=True)

    async def start(self) -> None:
        """Opens the file on the worker; raises what SqliteTree raises."""
        self._thread.start()
        try:
            await self.submit(lambda _: None, writes=False)
        except Exception:
            self._accepting = False
            raise

    def submit(self, run: Callable[[Work], _T], *, writes: bool) -> "asyncio.Future[_T]":
        """Queues a call; its future is resolved on the loop, for a write once it is durable."""
        if not self._accepting:
            raise Closed(f"the store {self._path} is closed")
        future: asyncio.Future[_T] = self._loop.create_future()
        self._queue.put(_Call(future, writes, run))
        return future

    async def stop(self) -> None:
        """Lets what was submitted finish, then closes the file."""
        if self._accepting:
            self._accepting = False
            self._queue.put(None)
        await asyncio.shield(self._stopped)

    def _main(self) -> None:
        try:
            tree = SqliteTree(self._path, self._clock)
        except Exception as error:
            answers = [_Answer(call.future, None, error, []) for call in self._take_group()]
        else:
            while group := self._take_group():
                self._post(self._commit(tree, group) if group[0].writes else self._read(tree, group))
            tree.close()
            answers = []
        self._post([*answers, _Answer(self._stopped, None, None, [])])

    def _take_group(self) -> list[_Call]:
        """The next calls, all reads or all writes, in order; empty when told to stop."""
        first = self._ahead.pop() if self._ahead else self._queue.get()
        if first is None:
            return []
        group = [first]
        while len(group) < _GROUP_MAX:
            try:
                call = self._queue.get_nowait()
            except queue.Empty:
                break
            if call is None or call.writes != first.writes:
                self._ahead.append(call)
                break
            group.append(call)
        return group

    def _read(self, tree: SqliteTree, group: list[_Call]) -> list[_Answer]:
        answers: list[_Answer] = []
        for call in group:
            try:
                answers.append(_Answer(call.future, call.run(Work(tree, self._watches, [])), None, []))
            except Exception as error:  # whatever it is, it is the caller's to handle
                answers.append(_Answer(call.future, None, error, []))
        return answers

    def _commit(self, tree: SqliteTree, group: list[_Call]) -> list[_Answer]:
        outcomes: list[tuple[Any, StoreError | None, list[WatchEvent]]] = []
        try:
            tree.begin()
            for call in group:
                work = Work(tree, self._watches, [])
                try:
                    outcomes.append((call.run(work), None, work.events))
                except StoreError as error:
                    outcomes.append((None, error, []))
            tree.commit()
        except Exception as error:
            tree.rollback()
            return [_Answer(call.future, None, error, []) for call in group]
        return [
            _Answer(call.future, value, refusal, [told for event in events for told in self._told(event)])
            for call, (value, refusal, events) in zip(group, outcomes, strict=True)
        ]

    def _told(self, event: WatchEvent) -> list[tuple[WatchCallback, WatchEvent]]:
        return [(watch, event) for table in self._watches.values() for watch in table.take(event)]

    def _post(self, answers: list[_Answer]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._deliver, answers)
        except RuntimeError:
            # The loop was closed without `stop`: nobody is left to hear the answers.
            if not self._loop.is_closed():
                raise

    def _deliver(self, answers: list[_Answer]) -> None:
        for future, value, error, told in answers:
            for watch, event in told:
                try:
                    watch(event)
                except Exception as fault:  # one bad callback must not silence the others
                    self._loop.call_exception_handler(
                        {"message": f"a watch of {event.path} failed", "exception": fault}
                    )
            if future.done():
                continue  # the caller gave up
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)
