"""Batches that the coordinators of this broker append, and when they are acknowledged.

The rule is that of a produce with acks=all: every in-sync replica has the batch, and it is on disk if
flush.messages wants that.

A1  `done` is called exactly once for each append
A2  the calls for one partition come in the order of its appends, whoever made them: a refused or timed out
    batch is told of only after those before it
A3  a `done` that fails is a bug of ours; the others are called all the same

Groups, transactions and their markers write to the same partitions, so they share one instance.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from barnabas.base.clock import Clock
from barnabas.base.errors import BarnabasError
from barnabas.base.types import TopicPartition
from barnabas.broker.delayed import Purgatory
from barnabas.broker.error_codes import code_of
from barnabas.broker.flushing import Flusher
from barnabas.log.producers import Origin
from barnabas.protocol.codes import ErrorCode
from barnabas.replication.partition import Partition

__all__ = ["CoordinatorAppends", "Done"]

_log = logging.getLogger(__name__)

REPLICATION_TIMEOUT_MS = 30_000
Done = Callable[[ErrorCode], None]


class _Append:
    """One append whose `done` was not called yet."""

    __slots__ = ("done", "in_line", "last_offset", "outcome", "partition", "timeout_ms")

    def __init__(self, partition: Partition, last_offset: int, timeout_ms: int, done: Done) -> None:
        self.partition = partition
        self.last_offset = last_offset
        self.timeout_ms = timeout_ms
        self.done = done
        self.in_line = False
        self.outcome: ErrorCode | None = None  # None: not known yet


class _Line:
    """The appends of one partition, oldest first, that are not told of yet."""

    __slots__ = ("is_telling", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[_Append] = deque()
        self.is_telling = False


class CoordinatorAppends:
    """Appends batches of the broker's own and says when they are acknowledged.  On the event loop."""

    __slots__ = ("_clock", "_flusher", "_lines", "_purgatory", "_tasks")

    def __init__(self, purgatory: Purgatory, clock: Clock, flusher: Flusher) -> None:
        self._purgatory = purgatory
        self._clock = clock
        self._flusher = flusher
        self._lines: dict[TopicPartition, _Line] = {}  # only where something waits
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def now_ms(self) -> int:
        return self._clock.now_ms()

    def append(
        self, partition: Partition, batch: bytearray, done: Done, *, timeout_ms: int = REPLICATION_TIMEOUT_MS
    ) -> None:
        """Calls `done` before it returns if nothing has to be waited for, later otherwise.

        `timeout_ms` is for the replicas; a flush takes as long as it takes.
        """
        try:
            result = partition.append(
                memoryview(batch), acks_all=True, now_ms=self.now_ms, origin=Origin.COORDINATOR
            )
        except BarnabasError as error:
            _log.warning("%s: %s", partition.topic_partition, error)
            self._settle(_Append(partition, -1, timeout_ms, done), code_of(error))
            return
        append = _Append(partition, result.last_offset, timeout_ms, done)
        if result.flush_due:
            self._line_up(append)
            task = asyncio.get_running_loop().create_task(self._flush_then_wait(append))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            if result.rolled:
                self._flusher.flush_soon(partition.log)
            self._wait(append)

    async def drain(self) -> None:
        """Waits for the appends that are on their way to the disk."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    # Waiting

    async def _flush_then_wait(self, append: _Append) -> None:
        try:
            await self._flusher.flush(append.partition.log)
        except BarnabasError as error:
            _log.error("%s: %s", append.partition.topic_partition, error)
            self._settle(append, code_of(error))
        except Exception:  # A1: whoever lines up behind it would wait for ever
            _log.exception("%s: the flush failed", append.partition.topic_partition)
            self._settle(append, ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            self._wait(append)

    def _wait(self, append: _Append) -> None:
        def attempt(expired: bool) -> bool:
            try:
                replicated = append.partition.committed(append.last_offset)
            except BarnabasError as error:
                outcome = code_of(error)
            else:
                if not (replicated or expired):
                    return False
                outcome = ErrorCode.NONE if replicated else ErrorCode.REQUEST_TIMED_OUT
            self._settle(append, outcome)
            return True

        if not attempt(False):
            self._line_up(append)
            self._purgatory.park([append.partition.topic_partition], append.timeout_ms, attempt)

    # Telling in order

    def _line_up(self, append: _Append) -> None:
        line = self._lines.setdefault(append.partition.topic_partition, _Line())
        if not append.in_line:
            append.in_line = True
            line.waiting.append(append)

    def _settle(self, append: _Append, outcome: ErrorCode) -> None:
        line = self._lines.get(append.partition.topic_partition)
        if line is None:
            append.done(outcome)
            return
        append.outcome = outcome
        self._line_up(append)
        self._tell(append.partition.topic_partition, line)

    def _tell(self, where: TopicPartition, line: _Line) -> None:
        if line.is_telling:
            return  # a `done` appended again; its turn comes below
        line.is_telling = True
        while line.waiting and (outcome := line.waiting[0].outcome) is not None:
            told = line.waiting.popleft()
            try:
                told.done(outcome)
            except Exception:
                _log.exception("%s: what waited for offset %d failed", where, told.last_offset)
        line.is_telling = False
        if not line.waiting:
            del self._lines[where]
