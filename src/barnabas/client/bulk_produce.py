"""A producer of whole batches: bytes of format v2 that are built already, here or by another producer.

    with BulkProducer(settings, transactional_id="copy/0") as producer:
        producer.begin()
        producer.send("events", 3, batch)
        producer.send_offsets("copy", {TopicPartition("source", 3): (next_offset, "note")})
        producer.commit()

K1  a batch keeps its records and its compression; who sends it (id, epoch, sequence, transaction) is stamped
    when it is sent, and the checksum made anew
K2  batches of a partition are written once and in the order of `send`, up to five of them under way at once
    (`sequences`, `sender`); one that is too large for the broker goes in parts
K3  with a transactional id, opening takes the id over: whoever had it is fenced, what was open is aborted

Blocking; one thread at a time.  Sending itself is the producer's: same settings, same core.
"""

import logging
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.accumulator import ProducerTopic
from barnabas.client.cluster import Cluster
from barnabas.client.config import PRODUCER, parse
from barnabas.client.errors import ClientClosed, KafkaError, UnknownTopic
from barnabas.client.offsets import GroupIdentity, committed_offsets
from barnabas.client.producer_batch import Compression, Identity, ProducerBatch
from barnabas.client.producer_core import ProducerCore
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.client.thread import ClientThread
from barnabas.client.transactions import Transactions
from barnabas.protocol.api import ApiKey
from barnabas.records.batch import HEADER_BYTES, MAGIC, RecordBatch, stamp_producer
from barnabas.records.errors import CorruptBatch, InvalidRecord

if TYPE_CHECKING:
    from barnabas.client._hot_plain import Home

__all__ = ["BulkProducer", "ReadyBatch"]

_log: Final = logging.getLogger("barnabas.client.producer")
_TRANSACTION_APIS: Final = (
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
)


class ReadyBatch(ProducerBatch):
    """A batch that came as bytes; `data` is changed in place until it is sent for the first time."""

    __slots__ = ("_is_stamped",)

    def __init__(
        self,
        topic: str,
        partition: int,
        home: "Home",
        data: bytearray,
        record_count: int,
        *,
        number: tuple[int, ...],
        reserved: int,
        now_ms: int,
    ) -> None:
        super().__init__(
            topic, partition, home, number=number, size_limit=HEADER_BYTES, reserved=reserved, now_ms=now_ms
        )
        self.count = record_count
        self._sealed = data
        self._is_stamped = False

    def set_sequence(self, identity: Identity, sequence: int) -> None:
        if (identity, sequence) == (self.identity, self.sequence):
            return
        if self._is_stamped and self._sealed is not None:
            self._sealed = self._sealed[:]  # Q2: the old bytes may still be on their way
        self.identity, self.sequence = identity, sequence
        self._is_stamped = False

    def seal(self, compression: Compression, *, is_transactional: bool = False) -> bytearray:
        """The bytes to send; the compression is the one they came with."""
        assert self._sealed is not None, "a batch that is done is not sent"
        if not self._is_stamped:
            stamp_producer(
                self._sealed,
                0,
                producer_id=self.identity.producer_id,
                producer_epoch=self.identity.epoch,
                base_sequence=self.sequence,
                transactional=is_transactional,
            )
            self._is_stamped = True
        return self._sealed


class BulkProducer:
    """Sends batches, in transactions if it has a transactional id.

    `settings` are those of the producer.  Raises ConfigFault for wrong ones, NoBrokersAvailable, and what the
    coordinator says against the transactional id.
    """

    def __init__(self, settings: Mapping[str, object], *, transactional_id: str | None = None) -> None:
        if transactional_id is not None:
            settings = {**settings, "transactional.id": transactional_id}
        self._core = ProducerCore(parse(PRODUCER, settings))
        self._timeout_ms = self._core.settings.integer("max.block.ms")
        self._failed_seen = 0
        self._thread = ClientThread("barnabas-client-bulk-producer")
        try:
            self._thread.call(self._core.start())
            if self._core.transactions is not None:
                self._thread.call(self._core.transactions.init())
        except BaseException:
            self.close()
            raise

    @property
    def transactional_id(self) -> str | None:
        transactions = self._core.transactions
        return None if transactions is None else transactions.transactional_id

    # --- batches

    def send(self, topic: str, partition: int, batch: bytearray | bytes | memoryview) -> ReadyBatch:
        """Hands over one batch; a bytearray is the producer's from then on, anything else is copied.

        After `flush`, `base_offset` of what is returned says where the broker put it; -1 if it went in parts.

        Waits while buffer.memory is full of unacknowledged batches.  Raises what an earlier batch failed
        with: TransactionAborted or ProducerFenced in a transaction, else DeliveryFailed; UnknownTopic;
        CorruptBatch and InvalidRecord for bytes that are no single batch that a producer may send.
        """
        core = self._core
        if core.is_closed:
            raise ClientClosed("the producer was closed")
        if core.transactions is not None:
            core.transactions.check_may_send()
        elif core.metrics.errors != self._failed_seen:
            self.flush()
        data = batch if isinstance(batch, bytearray) else bytearray(batch)
        count = _checked_count(data)
        lane = self._topic(topic, partition).lane(partition)
        reserved = min(len(data), core.pool.total)
        if not core.pool.take(reserved):
            self._wait_for_room(reserved)
        number = lane.next_number()
        now_ms = core.cluster.clock.monotonic_ms() if core.cluster is not None else 0
        ready = ReadyBatch(
            topic, partition, core.accumulator, data, count, number=number, reserved=reserved, now_ms=now_ms
        )
        core.accumulator.requeue(ready)
        core.wake()
        return ready

    def _wait_for_room(self, size: int) -> None:
        core = self._core
        deadline = time.monotonic() + core.limits.delivery_timeout_ms / 1000
        if not core.pool.take_within(size, deadline - time.monotonic(), hasten=core.wake):
            raise core.buffer_full(size)

    def _topic(self, name: str, partition: int) -> ProducerTopic:
        topic = self._core.accumulator.topic(name)
        if topic is None or partition >= len(topic.lanes):
            topic = self._thread.call(self._core.learn(name, partition=partition))
        if not 0 <= partition < len(topic.lanes):
            raise UnknownTopic(
                f"{name} has no partition {partition}, only 0 to {len(topic.lanes) - 1}", retriable=False
            )
        return topic

    def flush(self) -> None:
        """Returns when every batch is acknowledged.  Raises as `send` for those that are not."""
        core = self._core
        if core.transactions is not None:
            assert core.sender is not None, "started"
            self._thread.call(core.sender.flush())
            core.transactions.check_may_send()
            return
        self._failed_seen = core.metrics.errors
        self._thread.call(core.flush())

    def partitions_for(self, topic: str) -> int:
        """How many partitions a topic has.  Raises UnknownTopic after max.block.ms."""
        return len(self._thread.call(self._core.partitions_for(topic)))

    # --- transactions

    def take_over(self) -> None:
        """Takes the transactional id over once more, as opening does (K3); only between transactions.

        For a producer that was kept while others with the same id may have run.
        """
        self._thread.call(self._transactions.take_over())

    def begin(self) -> None:
        """From here on batches are part of a transaction.  Raises ProducerFenced."""
        self._thread.call(self._transactions.begin())

    def send_offsets(self, group: str, offsets: Mapping[TopicPartition, tuple[int, str]]) -> None:
        """Makes offsets of a group, each with a note, part of the transaction; no member is asked for."""
        marks = {tp: OffsetAndMetadata(offset, note) for tp, (offset, note) in offsets.items()}
        self._thread.call(self._transactions.send_offsets(marks, GroupIdentity(group)))

    def commit(self) -> None:
        """Makes all of it visible at once.

        Raises TransactionAborted and ProducerFenced when it is not committed.  After a retriable error the
        outcome is open: another call finds out, and so does whoever takes the transactional id over.
        """
        self._thread.call(self._transactions.commit())

    def abort(self) -> None:
        """Gives the transaction up: nobody who reads what is committed sees any of it."""
        self._thread.call(self._transactions.abort())

    def committed(self, group: str, topic: str, partition: int) -> tuple[int, str] | None:
        """The offset that a group committed and its note; waits for a transaction that would change it."""
        tp = TopicPartition(topic, partition)
        cluster = self._cluster
        found = self._thread.call(committed_offsets(cluster, group, [tp], timeout_ms=self._timeout_ms))
        at = found.get(tp)
        return None if at is None else (at.offset, at.metadata)

    def offers_transactions(self) -> bool:
        """Whether the broker has every request that transactions take."""
        return self._thread.call(_offers_transactions(self._cluster))

    # --- end

    def close(self) -> None:
        """Aborts a transaction that is open, else sends what is left; logs failures.  May be called again."""
        if self._thread.is_stopped:
            return
        self._core.refuse_new()
        try:
            lost = self._thread.call(self._core.close(self._timeout_ms / 1000))
            if lost is not None:
                _log.warning("%s", lost)
        except KafkaError as error:
            _log.warning("the producer did not close well: %s", error)
        finally:
            self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and self._core.transactions is None:
                self.flush()
        finally:
            self.close()

    @property
    def _transactions(self) -> Transactions:
        if self._core.transactions is None:
            raise Misuse("the producer has no transactional id")
        return self._core.transactions

    @property
    def _cluster(self) -> Cluster:
        assert self._core.cluster is not None, "started"
        return self._core.cluster


async def _offers_transactions(cluster: Cluster) -> bool:
    node = await cluster.any_node()
    return all(cluster.version_of(node, api) is not None for api in _TRANSACTION_APIS)


def _checked_count(data: bytearray) -> int:
    """How many records a batch has.  Raises CorruptBatch, InvalidRecord; does not look at the payload."""
    with memoryview(data) as view:
        batch = RecordBatch(view)
        if batch.magic != MAGIC or batch.size_bytes != len(data):
            raise CorruptBatch(
                f"{len(data)} bytes are not one batch: they name the magic {batch.magic} "
                f"and {batch.size_bytes} bytes"
            )
        if batch.is_control:
            raise InvalidRecord("a control batch belongs to the cluster that wrote it")
        if batch.record_count < 1 or batch.record_count != batch.last_offset_delta + 1:
            raise InvalidRecord(
                f"a batch from which records were compacted away ({batch.record_count} of "
                f"{batch.last_offset_delta + 1} are left) must be built anew"
            )
        return batch.record_count
