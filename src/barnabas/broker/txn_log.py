"""`__transaction_state` as the transaction coordinator sees it: records appended, partitions read back.

What a coordinator writes is acknowledged by the same rule as a produce with acks=all: every in-sync replica
has it, and it is on disk if flush.messages wants that.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from barnabas.base.buffers import FileSlice
from barnabas.base.clock import Clock
from barnabas.base.errors import BarnabasError
from barnabas.broker.delayed import Purgatory
from barnabas.broker.error_codes import code_of
from barnabas.broker.flushing import Flusher
from barnabas.broker.offload import Offload
from barnabas.broker.partitions import PartitionTable
from barnabas.coordinator.ports import KeyValue
from barnabas.coordinator.txn_loading import TransactionLoad
from barnabas.log.partition_log import PartitionLog
from barnabas.log.producers import Origin
from barnabas.metadata.names import TRANSACTION_STATE_TOPIC
from barnabas.protocol.codes import ErrorCode
from barnabas.records.batch import iter_batches
from barnabas.records.builder import build_batch
from barnabas.replication.partition import Partition

__all__ = ["CoordinatorAppends", "TransactionTopicLog", "replay_transactions"]

_log = logging.getLogger(__name__)

REPLICATION_TIMEOUT_MS = 30_000
DECOMPRESSED_BYTES_MAX = 64 * 2**20
Done = Callable[[ErrorCode], None]


class CoordinatorAppends:
    """Appends batches of the broker's own and says when they are acknowledged."""

    __slots__ = ("_clock", "_flusher", "_purgatory", "_tasks")

    def __init__(self, purgatory: Purgatory, clock: Clock, flusher: Flusher) -> None:
        self._purgatory = purgatory
        self._clock = clock
        self._flusher = flusher
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def now_ms(self) -> int:
        return self._clock.now_ms()

    def append(self, partition: Partition, batch: bytearray, done: Done) -> None:
        """Calls `done` once: at once where the leader is the only replica, later otherwise."""
        try:
            result = partition.append(
                memoryview(batch), acks_all=True, now_ms=self.now_ms, origin=Origin.COORDINATOR
            )
        except BarnabasError as error:
            _log.warning("%s: %s", partition.topic_partition, error)
            done(code_of(error))
            return
        if result.flush_due:
            task = asyncio.get_running_loop().create_task(
                self._flush_then_wait(partition, result.last_offset, done)
            )
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            if result.rolled:
                self._flusher.flush_soon(partition.log)
            self._wait(partition, result.last_offset, done)

    async def drain(self) -> None:
        """Waits for the appends that are on their way to the disk."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _flush_then_wait(self, partition: Partition, last_offset: int, done: Done) -> None:
        try:
            await self._flusher.flush(partition.log)
        except BarnabasError as error:
            _log.error("%s: %s", partition.topic_partition, error)
            done(code_of(error))
            return
        self._wait(partition, last_offset, done)

    def _wait(self, partition: Partition, last_offset: int, done: Done) -> None:
        def attempt(expired: bool) -> bool:
            try:
                replicated = partition.committed(last_offset)
            except BarnabasError as error:
                done(code_of(error))
                return True
            if replicated or expired:
                done(ErrorCode.NONE if replicated else ErrorCode.REQUEST_TIMED_OUT)
            return replicated or expired

        if not attempt(False):
            self._purgatory.park([partition.topic_partition], REPLICATION_TIMEOUT_MS, attempt)


class TransactionTopicLog:
    """Appends for the coordinator; implements its `TransactionLog` port."""

    __slots__ = ("_appends", "_partitions")

    def __init__(self, partitions: PartitionTable, appends: CoordinatorAppends) -> None:
        self._partitions = partitions
        self._appends = appends

    def append(self, partition: int, records: Sequence[KeyValue], done: Done) -> None:
        led = self._partitions.get(TRANSACTION_STATE_TOPIC, partition)
        if led is None:
            done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        now_ms = self._appends.now_ms
        batch = build_batch([(now_ms, record.key, record.value, ()) for record in records])
        self._appends.append(led, batch, done)


async def replay_transactions(
    log: PartitionLog, load: TransactionLoad, *, end_offset: int, chunk_bytes: int, offload: Offload
) -> None:
    """Feeds the log up to `end_offset` to `load`; files are read and records decoded on a thread."""
    offset = log.log_start_offset
    while offset < end_offset:
        read = log.read(offset, max_bytes=chunk_bytes, upper_bound=end_offset)
        if read.slice is None:
            return
        await offload.run(partial(_replay_chunk, read.slice, load))
        offset = read.next_offset


def _replay_chunk(piece: FileSlice, load: TransactionLoad) -> None:
    for batch in iter_batches(memoryview(piece.read())):
        if not batch.is_control:
            for record in batch.records(limit=DECOMPRESSED_BYTES_MAX):
                load.record(record.key, record.value)
