"""Names of files and folders in a data folder; all of them are Apache Kafka's.

A partition is the folder `<topic>-<n>`.  A segment is a set of files that share the 20-digit base
offset: `.log`, `.index`, `.timeindex`, `.txnindex`; `.snapshot` carries the producer state *at* its
offset.  A second suffix marks what is on its way: `.cleaned` being written by compaction, `.swap` complete
and about to replace its originals, `.deleted` about to go.  Folders on their way: `-delete`, `-stray`,
`-future`.
"""

import re
from typing import Final

from barnabas.base.types import TopicPartition

__all__ = [
    "CLEANED",
    "CLEANER_OFFSETS",
    "CLEAN_SHUTDOWN",
    "DELETED",
    "FOLDER_DELETE",
    "FOLDER_FUTURE",
    "FOLDER_STRAY",
    "HIGH_WATERMARKS",
    "INDEX",
    "LEADER_EPOCHS",
    "LOCK",
    "LOG",
    "LOG_START_OFFSETS",
    "META_PROPERTIES",
    "PARTITION_METADATA",
    "RECOVERY_POINTS",
    "SNAPSHOT",
    "SWAP",
    "TIME_INDEX",
    "TXN_INDEX",
    "marked_folder_name",
    "offset_name",
    "parse_file_name",
    "parse_folder_name",
]

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"

CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
DELETED: Final = ".deleted"

FOLDER_DELETE: Final = "-delete"
FOLDER_FUTURE: Final = "-future"
FOLDER_STRAY: Final = "-stray"

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_START_OFFSETS: Final = "log-start-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
META_PROPERTIES: Final = "meta.properties"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
LOCK: Final = ".lock"

_FILE = re.compile(
    r"(?P<offset>\d{20})(?P<kind>\.log|\.index|\.timeindex|\.txnindex|\.snapshot)"
    r"(?P<mark>\.cleaned|\.swap|\.deleted|)"
)
_FOLDER = re.compile(r"(?P<topic>[^/]+)-(?P<partition>\d+)")
_MARKED_FOLDER = re.compile(r"(?P<stem>[^/]+)\.(?P<unique>[0-9a-f]{32})(?P<mark>-delete|-future|-stray)")
_NAME_BYTES_MAX = 255  # of a file name on Linux


def offset_name(offset: int) -> str:
    """The stem that a segment's or snapshot's files share."""
    return f"{offset:020d}"


def parse_file_name(name: str) -> tuple[int, str, str] | None:
    """(offset, kind, mark) of a segment or snapshot file, such as (42, ".log", ".swap"); else None."""
    if (match := _FILE.fullmatch(name)) is None:
        return None
    return int(match["offset"]), match["kind"], match["mark"]


def parse_folder_name(name: str) -> tuple[TopicPartition, str] | None:
    """The partition that a folder holds and its mark ("" for a live one), or None when it is none of ours."""
    mark, stem = "", name
    if (marked := _MARKED_FOLDER.fullmatch(name)) is not None:
        mark, stem = marked["mark"], marked["stem"]
    if (match := _FOLDER.fullmatch(stem)) is None:
        return None
    return TopicPartition(match["topic"], int(match["partition"])), mark


def marked_folder_name(partition: TopicPartition, unique: str, mark: str) -> str:
    """A name for the folder of a partition on its way out or in; `unique` is 32 hex digits.

    A topic name may be as long as a file name can be, so it is cut to make room for the rest.
    """
    tail = f"-{partition.partition}.{unique}{mark}"
    return partition.topic[: _NAME_BYTES_MAX - len(tail)] + tail
