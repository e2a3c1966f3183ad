"""What goes into the coordinator and what comes out, free of wire versions.

The handler of each API fills the arguments from its message and the message from the result.
What differs by version is said beside the field.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.base.types import TopicPartition
from barnabas.protocol.codes import ErrorCode

__all__ = [
    "NO_GENERATION",
    "UNKNOWN_MEMBER_ID",
    "FetchedOffset",
    "FetchedOffsets",
    "GroupDescription",
    "GroupListing",
    "JoinCall",
    "JoinReply",
    "JoinResult",
    "JoinedMember",
    "LeaveResult",
    "LeavingMember",
    "ListResult",
    "MemberDescription",
    "OffsetToCommit",
    "OffsetsReply",
    "OffsetsResult",
    "Protocols",
    "SyncCall",
    "SyncReply",
    "SyncResult",
]

NO_GENERATION = -1
UNKNOWN_MEMBER_ID = ""
"""The member id of a client that has none yet."""

Protocols = Sequence[tuple[str, bytes | memoryview]]
"""Names of the protocols a member supports, best first, with its metadata for each."""


@dataclass(frozen=True, slots=True)
class JoinCall:
    """JoinGroup.  Metadata may be views of the request's buffer: what is kept is copied."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int  # v0 has none: the session timeout
    protocol_type: str
    protocols: Protocols
    member_id_required: bool = True  # v4+
    can_skip_assignment: bool = True  # v9+
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """A member as the leader sees it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinResult:
    """The answer to JoinGroup.  A protocol name of None is "" before v7."""

    error: ErrorCode
    member_id: str
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = ""
    skip_assignment: bool = False
    members: Sequence[JoinedMember] = ()


@dataclass(frozen=True, slots=True)
class SyncCall:
    """SyncGroup.  Protocol type and name are None before v5; assignments come from the leader only."""

    generation_id: int
    member_id: str
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Sequence[tuple[str, bytes | memoryview]] = ()


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The answer to SyncGroup."""

    error: ErrorCode
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol_name: str | None = None


@dataclass(frozen=True, slots=True)
class LeavingMember:
    """One member to take out: by member id, or by instance id alone (v3+)."""

    member_id: str
    instance_id: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LeaveResult:
    """The answer to LeaveGroup: one code per leaving member in the order given, none if `error` is set.

    Before v3 the only member's code is the answer's code.
    """

    error: ErrorCode
    members: Sequence[ErrorCode] = ()


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member in DescribeGroups; metadata and assignment are empty unless the group is Stable."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group in DescribeGroups.  GROUP_ID_NOT_FOUND comes with state Dead and is NONE before v6."""

    error: ErrorCode
    group_id: str
    state: str = ""
    protocol_type: str = ""
    protocol_name: str = ""
    members: Sequence[MemberDescription] = ()


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group in ListGroups."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str


@dataclass(frozen=True, slots=True)
class ListResult:
    """The answer to ListGroups; groups of loaded partitions are listed even if others still load."""

    error: ErrorCode
    groups: Sequence[GroupListing] = ()


class OffsetToCommit(NamedTuple):
    """One partition of OffsetCommit or TxnOffsetCommit."""

    partition: TopicPartition
    offset: int
    leader_epoch: int = -1
    metadata: str | None = ""
    timestamp_ms: int | None = None  # v1 only: the client's commit time


@dataclass(frozen=True, slots=True)
class OffsetsResult:
    """One code per partition in the order given; `error` (OffsetDelete only) leaves none."""

    error: ErrorCode
    partitions: Sequence[ErrorCode] = ()


class FetchedOffset(NamedTuple):
    """One partition of OffsetFetch; no commit is offset -1 without an error."""

    partition: TopicPartition
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class FetchedOffsets:
    """One group of OffsetFetch."""

    error: ErrorCode
    partitions: Sequence[FetchedOffset] = ()


JoinReply = Callable[[JoinResult], None]
SyncReply = Callable[[SyncResult], None]
OffsetsReply = Callable[[OffsetsResult], None]
