"""What can go wrong with a log.

    StorageFault
    ├── DiskFault            an operation on a file failed; `path` names it, the OSError is the cause
    │   └── DiskFull         no space, quota or file size left; nothing was written
    ├── CorruptSegment       a batch that was safely on disk is damaged; `path` and `position` say where
    ├── CorruptIndex         an index contradicts itself or its segment; it can be rebuilt
    ├── CorruptSnapshot      a producer snapshot is damaged; the one before it serves
    ├── CorruptCheckpoint    a checkpoint or properties file cannot be read
    ├── FolderInUse          another process owns the data folder
    ├── FolderMismatch       the data folder belongs to another broker, cluster or topic
    └── PartitionOffline     the folder of the partition failed earlier
    PeerFault
    ├── AppendRefused        what a producer, leader or coordinator wanted to append is not taken
    │   ├── RecordTooLarge · InvalidTimestamp · UnexpectedOffset
    │   ├── OffsetsKept · PositionMismatch
    │   ├── OutOfOrderSequence · InvalidProducerEpoch · InvalidTransactionState
    │   └── CoordinatorFenced
    └── OffsetOutOfRange     a read outside [log start, log end]

Damaged or inadmissible records raise the errors of `barnabas.records`.
"""

import errno

from barnabas.base.errors import PeerFault, StorageFault

__all__ = [
    "AppendRefused",
    "CoordinatorFenced",
    "CorruptCheckpoint",
    "CorruptIndex",
    "CorruptSegment",
    "CorruptSnapshot",
    "DiskFault",
    "DiskFull",
    "FolderInUse",
    "FolderMismatch",
    "InvalidProducerEpoch",
    "InvalidTimestamp",
    "InvalidTransactionState",
    "OffsetOutOfRange",
    "OffsetsKept",
    "OutOfOrderSequence",
    "PartitionOffline",
    "PositionMismatch",
    "RecordTooLarge",
    "UnexpectedOffset",
    "disk_fault",
]


class DiskFault(StorageFault):
    """The operating system failed an operation on `path`."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(f"{path}: {text}")
        self.path = path


class DiskFull(DiskFault):
    """No space, quota or file size is left for `path`; what was there before is unharmed."""

    retriable = True


def disk_fault(path: str, error: OSError) -> DiskFault:
    """The fault for a failed system call on `path`; raise it `from error`."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return (DiskFull if full else DiskFault)(path, error.strerror or str(error))


class CorruptSegment(StorageFault):
    """The batch at byte `position` of `path` does not hold; what is before it does."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path}, position {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


class CorruptIndex(StorageFault):
    """An index file cannot be believed; rebuild it from its segment."""


class CorruptSnapshot(StorageFault):
    """A producer snapshot is cut or its checksum is wrong."""


class CorruptCheckpoint(StorageFault):
    """A small text file of the log (checkpoint, properties, metadata) is not of its form."""


class FolderInUse(StorageFault):
    """The data folder is locked; the text names the owner as far as it is known."""


class FolderMismatch(StorageFault):
    """The data folder, or a partition in it, belongs to somebody else."""


class PartitionOffline(StorageFault):
    """The data folder of this partition failed; restart the broker once the disk is mended."""

    retriable = True


class AppendRefused(PeerFault):
    """Root of the reasons not to append; raise a subclass."""


class RecordTooLarge(AppendRefused):
    """A batch is larger than max.message.bytes or segment.bytes."""


class InvalidTimestamp(AppendRefused):
    """A record's time lies outside message.timestamp.before/after.max.ms, or names the wrong type."""


class UnexpectedOffset(AppendRefused):
    """A follower got a batch that begins below its log end offset."""


class OffsetsKept(AppendRefused):
    """The topic keeps the offsets of another cluster; a producer would take offsets that are not its own."""


class PositionMismatch(AppendRefused):
    """A copied run does not follow what the log holds; the sender must look where the log ends."""


class OutOfOrderSequence(AppendRefused):
    """The producer skipped or repeated sequences; it must not go on."""


class InvalidProducerEpoch(AppendRefused):
    """A newer instance of the producer took over."""


class InvalidTransactionState(AppendRefused):
    """A batch outside a transaction came while the producer has one open here."""


class CoordinatorFenced(AppendRefused):
    """The marker comes from a transaction coordinator that has been replaced."""


class OffsetOutOfRange(PeerFault):
    """The offset is below the log start or above the log end."""

    def __init__(self, offset: int, log_start_offset: int, log_end_offset: int) -> None:
        super().__init__(f"offset {offset} is not within [{log_start_offset}, {log_end_offset}]")
        self.offset = offset
