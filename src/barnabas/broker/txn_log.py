"""`__transaction_state` as the transaction coordinator sees it: records appended, partitions read back."""

from collections.abc import Sequence
from functools import partial

from barnabas.base.buffers import FileSlice
from barnabas.broker.coordinator_appends import CoordinatorAppends, Done
from barnabas.broker.offload import Offload
from barnabas.broker.partitions import PartitionTable
from barnabas.broker.replay import replay
from barnabas.coordinator.ports import KeyValue
from barnabas.coordinator.txn_loading import TransactionLoad
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.names import TRANSACTION_STATE_TOPIC
from barnabas.protocol.codes import ErrorCode
from barnabas.records.batch import iter_batches
from barnabas.records.builder import build_batch

__all__ = ["TransactionTopicLog", "replay_transactions"]

DECOMPRESSED_BYTES_MAX = 64 * 2**20


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
    feed = partial(_replay_chunk, load)
    await replay(log, feed, end_offset=end_offset, chunk_bytes=chunk_bytes, offload=offload)


def _replay_chunk(load: TransactionLoad, piece: FileSlice) -> None:
    for batch in iter_batches(memoryview(piece.read())):
        if not batch.is_control:
            for record in batch.records(limit=DECOMPRESSED_BYTES_MAX):
                load.record(record.key, record.value)
