"""`__consumer_offsets` as the group coordinator sees it: batches appended, partitions read back."""

from collections.abc import Callable, Sequence
from functools import partial

from barnabas.base.buffers import FileSlice
from barnabas.base.config import Settings
from barnabas.broker.coordinator_appends import CoordinatorAppends, Done
from barnabas.broker.offload import Offload
from barnabas.broker.partitions import PartitionTable
from barnabas.broker.replay import replay
from barnabas.coordinator.loading import PartitionLoad
from barnabas.coordinator.ports import KeyValue, Producer
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.names import GROUP_METADATA_TOPIC
from barnabas.protocol.codes import ErrorCode
from barnabas.records.batch import iter_batches
from barnabas.records.builder import build_batch, read_end_txn_marker
from barnabas.records.codecs import Codec

__all__ = ["OffsetsTopicLog", "replay_groups"]

DECOMPRESSED_BYTES_MAX = 64 * 2**20


class OffsetsTopicLog:
    """Appends for the coordinator; implements its `OffsetsLog` port."""

    __slots__ = ("_appends", "_partitions", "_settings")

    def __init__(
        self, partitions: PartitionTable, appends: CoordinatorAppends, settings: Callable[[], Settings]
    ) -> None:
        self._partitions = partitions
        self._appends = appends
        self._settings = settings

    def append(
        self, partition: int, records: Sequence[KeyValue], done: Done, producer: Producer | None = None
    ) -> None:
        led = self._partitions.get(GROUP_METADATA_TOPIC, partition)
        if led is None:
            done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        now_ms, settings = self._appends.now_ms, self._settings()
        batch = build_batch(
            [(now_ms, record.key, record.value, ()) for record in records],
            codec=Codec(settings.integer("offsets.topic.compression.codec")),
            producer_id=producer.producer_id if producer else -1,
            producer_epoch=producer.producer_epoch if producer else -1,
            transactional=producer is not None,
        )
        self._appends.append(led, batch, done, timeout_ms=settings.integer("offsets.commit.timeout.ms"))


async def replay_groups(
    log: PartitionLog, load: PartitionLoad, *, end_offset: int, chunk_bytes: int, offload: Offload
) -> None:
    """Feeds the log up to `end_offset` to `load`; files are read and records decoded on a thread."""
    feed = partial(_replay_chunk, load)
    await replay(log, feed, end_offset=end_offset, chunk_bytes=chunk_bytes, offload=offload)


def _replay_chunk(load: PartitionLoad, piece: FileSlice) -> None:
    for batch in iter_batches(memoryview(piece.read())):
        if batch.is_control:
            marker = read_end_txn_marker(batch)
            if marker is not None:
                load.marker(batch.producer_id, committed=marker.committed)
            continue
        producer_id = batch.producer_id if batch.is_transactional else None
        for record in batch.records(limit=DECOMPRESSED_BYTES_MAX):
            load.record(record.key, record.value, producer_id)
