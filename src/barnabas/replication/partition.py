"""One partition that this broker leads: its log, behind the rules of a leader.

P1  Nothing at or above the high watermark is read by a consumer; nothing at or above the last stable
    offset by one that reads committed data only.
P2  The leader epoch only rises, and every batch appended here carries the current one.
P3  log start <= high watermark <= log end.

Holds no clock and no socket.  `on_moved` hears of every rise of the high watermark, so that waiting
fetches and produces go on.  One caller at a time.
"""

from collections.abc import Callable, Iterable

from barnabas.base.errors import StorageFault
from barnabas.base.types import TopicPartition, Uuid
from barnabas.log.append import PreparedAppend
from barnabas.log.copied import PreparedCopy
from barnabas.log.errors import DiskFault, OffsetOutOfRange
from barnabas.log.partition_log import AppendResult, PartitionLog, ReadResult
from barnabas.log.producers import Origin
from barnabas.replication.errors import (
    FencedLeaderEpoch,
    NotEnoughReplicas,
    NotLeader,
    UnknownLeaderEpoch,
)
from barnabas.replication.leader import LeaderState

__all__ = ["NO_EPOCH", "Partition"]

NO_EPOCH = -1
TO_HIGH_WATERMARK = -1


class Partition:
    """A partition on this broker.  Not leading until `lead` is called."""

    __slots__ = (
        "_local",
        "_on_disk_fault",
        "_on_moved",
        "leader_epoch",
        "log",
        "state",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        log: PartitionLog,
        *,
        local: int,
        on_moved: Callable[[TopicPartition], None],
        on_disk_fault: Callable[[PartitionLog, StorageFault], None] | None = None,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.leader_epoch = NO_EPOCH
        self.state: LeaderState | None = None
        self._local = local
        self._on_moved = on_moved
        self._on_disk_fault = on_disk_fault

    def lead(
        self, *, epoch: int, replicas: Iterable[int], in_sync: Iterable[int], high_watermark: int
    ) -> None:
        """Becomes leader in `epoch`, which must be above every epoch this partition had."""
        assert epoch > self.leader_epoch, f"P2: epoch {epoch} after {self.leader_epoch}"
        self.leader_epoch = epoch
        self.state = LeaderState(
            local=self._local,
            replicas=replicas,
            in_sync=in_sync,
            log_end=self.log.log_end_offset,
            high_watermark=max(high_watermark, self.log.log_start_offset),
        )

    def resign(self) -> None:
        """No longer leads; whoever waits is woken to be told so."""
        self.state = None
        self._on_moved(self.topic_partition)

    @property
    def leading(self) -> LeaderState:
        """The leader's state.  Raises NotLeader."""
        if self.state is None:
            raise NotLeader(f"this broker does not lead {self.topic_partition}")
        return self.state

    @property
    def high_watermark(self) -> int:
        return self.leading.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction is decided; never above the high watermark."""
        return self.log.last_stable_offset(self.leading.high_watermark)

    def check_epoch(self, known: int) -> None:
        """Raises unless the caller knows the same leader epoch as we; -1 knows none and passes."""
        if known in (NO_EPOCH, self.leader_epoch):
            return
        if known < self.leader_epoch:
            raise FencedLeaderEpoch(
                f"{self.topic_partition} is in leader epoch {self.leader_epoch}, the caller in {known}"
            )
        raise UnknownLeaderEpoch(
            f"{self.topic_partition} is in leader epoch {self.leader_epoch}, the caller knows {known}"
        )

    def append(
        self,
        batches: memoryview | PreparedAppend | PreparedCopy,
        *,
        acks_all: bool,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
    ) -> AppendResult:
        """Appends what a client or coordinator sent, in place and in one write.

        Raises NotLeader, NotEnoughReplicas (for acks=all), or what the log refuses.
        """
        state = self.leading
        if acks_all and len(state.in_sync) < self.log.config.min_insync_replicas:
            raise NotEnoughReplicas(
                f"{self.topic_partition}: {len(state.in_sync)} replicas are in sync,"
                f" {self.log.config.min_insync_replicas} are needed"
            )
        try:
            if isinstance(batches, PreparedCopy):
                result = self.log.append_copy(batches, leader_epoch=self.leader_epoch, now_ms=now_ms)
            else:
                result = self.log.append_as_leader(
                    batches, leader_epoch=self.leader_epoch, now_ms=now_ms, origin=origin
                )
        except DiskFault as fault:
            if self._on_disk_fault is not None:
                self._on_disk_fault(self.log, fault)
            raise
        if state.log_grew(self.log.log_end_offset):
            self._on_moved(self.topic_partition)
        return result

    def committed(self, last_offset: int) -> bool:
        """Whether the in-sync replicas all have `last_offset`."""
        return self.leading.high_watermark > last_offset

    def read(self, offset: int, *, max_bytes: int, committed_only: bool, min_one_batch: bool) -> ReadResult:
        """Whole batches from the one that holds `offset`, below the bound of P1."""
        bound = self.last_stable_offset if committed_only else self.high_watermark
        return self.log.read(offset, max_bytes=max_bytes, upper_bound=bound, min_one_batch=min_one_batch)

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch` and the offset at which it ends; (-1, -1) if none is known.

        An epoch without a batch is in no log.  Before the first batch of the current one, it and those that
        ended since the last batch all lie at the log end; a reader who got there in one of them must not be
        told that its data is gone.  Raises NotLeader.
        """
        if self.state is None:
            raise NotLeader(f"this broker does not lead {self.topic_partition}")
        log = self.log
        if epoch == self.leader_epoch:
            return epoch, log.log_end_offset
        written = log.latest_epoch
        if written < epoch < self.leader_epoch:
            return (epoch if written == NO_EPOCH else written), log.log_end_offset
        return log.epoch_end_offset(epoch)

    def delete_records_before(self, offset: int) -> int:
        """Moves the log start up to `offset` (-1: the high watermark); gives the new log start.

        Raises OffsetOutOfRange above the high watermark and for other negative numbers.
        """
        bound = self.leading.high_watermark
        wanted = bound if offset == TO_HIGH_WATERMARK else offset
        if wanted < 0:
            raise OffsetOutOfRange(wanted, self.log.log_start_offset, bound)
        self.log.advance_log_start(wanted, high_watermark=bound)
        return self.log.log_start_offset
