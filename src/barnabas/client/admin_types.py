"""What admin calls take and give: frozen values that print well.

Kafka's words where Kafka has them.  Times are milliseconds since 1970 unless the name says otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum, StrEnum

from barnabas.base.types import TopicPartition, Uuid
from barnabas.client.metadata import BrokerInfo
from barnabas.client.subscription import OffsetAndMetadata

__all__ = [
    "Append",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSource",
    "ConfigSynonym",
    "CreatedTopic",
    "GroupDescription",
    "GroupLag",
    "GroupListing",
    "ListedOffset",
    "LogDir",
    "LogDirReplica",
    "MemberDescription",
    "NewTopic",
    "OffsetAndMetadata",
    "OffsetChange",
    "OffsetReset",
    "OffsetSpec",
    "PartitionLag",
    "ProducerInfo",
    "ResetWay",
    "ResourceType",
    "Subtract",
    "TopicListing",
]


# --- topics


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to make; -1 means the cluster's default.  `assignment` names the replicas of each partition."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignment: Sequence[Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic that was made; brokers before 2.4 tell only the name (-1 elsewhere)."""

    name: str
    id: Uuid
    partitions: int
    replication_factor: int

    def __str__(self) -> str:
        return f"{self.name}: {self.partitions} partitions, replication factor {self.replication_factor}"


@dataclass(frozen=True, slots=True)
class TopicListing:
    name: str
    id: Uuid
    partitions: int
    is_internal: bool

    def __str__(self) -> str:
        return f"{self.name} ({self.partitions} partitions{', internal' if self.is_internal else ''})"


# --- configs


class ResourceType(IntEnum):
    """What settings belong to; the numbers are those of the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """One thing that has settings.  The broker named "" stands for the default of all brokers."""

    type: ResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> "ConfigResource":
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def broker(cls, node: int | None = None) -> "ConfigResource":
        return cls(ResourceType.BROKER, "" if node is None else str(node))

    def __str__(self) -> str:
        return f"{self.type.name.lower()} {self.name or '(default of all)'}"


class ConfigSource(IntEnum):
    """Where a value comes from; the strongest first on the wire's scale of numbers."""

    UNKNOWN = 0
    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting of a resource; the value of a sensitive one is None."""

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[ConfigSynonym, ...] = ()
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether nobody set it, neither for this resource nor in a file."""
        return self.source is ConfigSource.DEFAULT

    def __str__(self) -> str:
        shown = "[hidden]" if self.is_sensitive else self.value
        return f"{self.name}={shown} ({self.source.name.lower().replace('_', ' ')})"


@dataclass(frozen=True, slots=True)
class Append:
    """Adds items to a setting that is a list."""

    value: str


@dataclass(frozen=True, slots=True)
class Subtract:
    """Takes items out of a setting that is a list."""

    value: str


# --- groups


@dataclass(frozen=True, slots=True)
class GroupListing:
    id: str
    protocol_type: str
    state: str
    """Empty when the broker is older than 2.6."""
    type: str = "classic"

    def __str__(self) -> str:
        return f"{self.id} ({self.state or 'state unknown'}, {self.type})"


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """One member of a group.  `assignment` is empty while the group rebalances."""

    id: str
    client_id: str
    host: str
    instance_id: str | None = None
    subscription: tuple[str, ...] = ()
    assignment: tuple[TopicPartition, ...] = ()
    target: tuple[TopicPartition, ...] | None = None
    """Where a group of the newer protocol is heading; None in classic groups."""

    def __str__(self) -> str:
        shown = ", ".join(str(partition) for partition in self.assignment) or "nothing"
        return f"{self.client_id or self.id} on {self.host}: {shown}"


@dataclass(frozen=True, slots=True)
class GroupDescription:
    id: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: BrokerInfo
    members: tuple[MemberDescription, ...] = ()
    type: str = "classic"

    def owner_of(self, partition: TopicPartition) -> MemberDescription | None:
        return next((member for member in self.members if partition in member.assignment), None)

    def __str__(self) -> str:
        head = f"{self.id}: {self.state}, {len(self.members)} members, {self.coordinator} coordinates"
        return "\n  ".join([head, *(str(member) for member in self.members)])


# --- offsets


class OffsetSpec(IntEnum):
    """An offset by its role; the numbers are the timestamps that mean it in ListOffsets."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """An offset that was looked up; -1 when no record is at or after the time asked for."""

    offset: int
    timestamp: int = -1
    leader_epoch: int = -1

    def __str__(self) -> str:
        return f"{self.offset}{f' at {_time_text(self.timestamp)}' if self.timestamp >= 0 else ''}"


def _time_text(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


class ResetWay(StrEnum):
    """How a reset chooses; the words are those of Kafka's command."""

    EARLIEST = "earliest"
    LATEST = "latest"
    CURRENT = "current"
    TO_OFFSET = "to-offset"
    SHIFT_BY = "shift-by"
    TO_DATETIME = "to-datetime"
    BY_DURATION = "by-duration"


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """One of the seven ways to choose where a group goes on reading; made by the methods below."""

    way: ResetWay
    amount: int = 0
    """An offset, a number of records, or milliseconds, as the way says."""

    @classmethod
    def earliest(cls) -> "OffsetReset":
        """To the first record there is."""
        return cls(ResetWay.EARLIEST)

    @classmethod
    def latest(cls) -> "OffsetReset":
        """Past the last record: only new ones will be read."""
        return cls(ResetWay.LATEST)

    @classmethod
    def current(cls) -> "OffsetReset":
        """Where the group is; to the end where it has never been."""
        return cls(ResetWay.CURRENT)

    @classmethod
    def to_offset(cls, offset: int) -> "OffsetReset":
        return cls(ResetWay.TO_OFFSET, offset)

    @classmethod
    def shift_by(cls, records: int) -> "OffsetReset":
        """Forward from where the group is, or back if negative."""
        return cls(ResetWay.SHIFT_BY, records)

    @classmethod
    def to_datetime(cls, moment: datetime) -> "OffsetReset":
        """To the first record at or after a moment; a moment without a zone is local time."""
        return cls(ResetWay.TO_DATETIME, round(moment.timestamp() * 1000))

    @classmethod
    def by_duration(cls, ago: timedelta) -> "OffsetReset":
        """To the first record of the last so many seconds, minutes, days."""
        return cls(ResetWay.BY_DURATION, round(ago.total_seconds() * 1000))

    def __str__(self) -> str:
        match self.way:
            case ResetWay.TO_OFFSET | ResetWay.SHIFT_BY:
                return f"{self.way.value} {self.amount}"
            case ResetWay.TO_DATETIME:
                return f"{self.way.value} {_time_text(self.amount)}"
            case ResetWay.BY_DURATION:
                return f"{self.way.value} {timedelta(milliseconds=self.amount)}"
            case _:
                return self.way.value


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """Where a group stands in a partition, and where a reset puts it."""

    partition: TopicPartition
    before: int | None
    after: int
    start: int
    end: int
    note: str = ""
    """Why `after` is not what was asked for, when it lies outside the log."""

    @property
    def moves_by(self) -> int | None:
        return None if self.before is None else self.after - self.before

    def __str__(self) -> str:
        before = "none" if self.before is None else self.before
        return f"{self.partition}: {before} -> {self.after}{f' ({self.note})' if self.note else ''}"


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far a group is behind in one partition."""

    partition: TopicPartition
    committed: int | None
    start: int
    end: int
    oldest_timestamp: int | None
    """Time of the oldest record that was not read yet; None when there is none or it was not asked for."""
    seconds: float | None
    """Age of that record; 0 when nothing is unread, None when not known."""
    member: MemberDescription | None = None

    @property
    def messages(self) -> int:
        """Offsets from the committed one to the end; all there are, if nothing was committed."""
        return max(
            0, self.end - max(self.start, self.committed if self.committed is not None else self.start)
        )

    def __str__(self) -> str:
        age = "" if self.seconds is None else f", {self.seconds:.1f} s"
        committed = "none" if self.committed is None else self.committed
        return f"{self.partition}: {self.messages} behind{age} (committed {committed}, end {self.end})"


@dataclass(frozen=True, slots=True)
class GroupLag:
    """How far a group is behind in all it has committed or is assigned."""

    group: GroupDescription
    partitions: tuple[PartitionLag, ...]

    @property
    def messages(self) -> int:
        return sum(partition.messages for partition in self.partitions)

    @property
    def seconds(self) -> float | None:
        """The worst of the partitions; None when not known for any."""
        return max((p.seconds for p in self.partitions if p.seconds is not None), default=None)

    def __str__(self) -> str:
        age = "" if self.seconds is None else f", {self.seconds:.1f} s"
        head = f"{self.group.id}: {self.messages} messages behind{age}"
        return "\n  ".join([head, *(str(partition) for partition in self.partitions)])


# --- cluster


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    id: str | None
    controller: BrokerInfo | None
    brokers: tuple[BrokerInfo, ...]

    def __str__(self) -> str:
        head = f"cluster {self.id}, {len(self.brokers)} brokers"
        lines = (f"{b}{' (controller)' if b == self.controller else ''}" for b in self.brokers)
        return "\n  ".join([head, *lines])


@dataclass(frozen=True, slots=True)
class LogDirReplica:
    partition: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """A data folder of a broker; brokers before 3.3 do not tell the sizes of the disk (None)."""

    path: str
    replicas: tuple[LogDirReplica, ...]
    total_bytes: int | None = None
    usable_bytes: int | None = None

    @property
    def size_bytes(self) -> int:
        return sum(replica.size_bytes for replica in self.replicas)

    def __str__(self) -> str:
        return f"{self.path}: {len(self.replicas)} replicas, {self.size_bytes} bytes"


@dataclass(frozen=True, slots=True)
class ProducerInfo:
    """An idempotent producer that wrote to a partition; start offset -1: no transaction is open there."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int
