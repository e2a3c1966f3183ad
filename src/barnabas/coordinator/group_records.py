"""Records of `__consumer_offsets`: groups and offsets to bytes and back, in Kafka's own formats.

Written versions are those Kafka writes: offset key 1, offset value 3 (1 if it carries its own expiry),
group key 2, group value 3.  Every older version and the flexible ones are read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from barnabas.base.errors import StorageFault
from barnabas.base.types import TopicPartition
from barnabas.coordinator.member import Member
from barnabas.coordinator.offsets import NO_TIMESTAMP, CommittedOffset
from barnabas.coordinator.ports import KeyValue
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.storage.consumer_protocol import ConsumerProtocolSubscription
from barnabas.protocol.storage.offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.protocol.storage.stored import stored_version

if TYPE_CHECKING:
    from barnabas.coordinator.group import Group

__all__ = [
    "CorruptGroupRecord",
    "GroupKey",
    "OffsetKey",
    "StoredGroup",
    "can_be_stored",
    "decode_group",
    "decode_key",
    "decode_offset",
    "group_record",
    "group_tombstone",
    "offset_record",
    "offset_tombstone",
    "subscribed_topics",
]

_OFFSET_KEY: Final = 1
_OFFSET_VALUE: Final = 3
_OFFSET_VALUE_WITH_EXPIRY: Final = 1
_GROUP_KEY: Final = 2
_GROUP_VALUE: Final = 3
_TEXT_BYTES_MAX: Final = 2**15 - 1
_MEMBER_ID_ROOM: Final = 64  # a member id is a client's or instance's id, a dash and a suffix


class CorruptGroupRecord(StorageFault):
    """A record of `__consumer_offsets` that is not what its version says."""


@dataclass(frozen=True, slots=True)
class OffsetKey:
    """Key of a committed offset."""

    group_id: str
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class GroupKey:
    """Key of a group's metadata."""

    group_id: str


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """A group as its record tells it: Stable with members, Empty without."""

    protocol_type: str | None
    protocol_name: str | None
    generation_id: int
    leader_id: str | None
    state_since_ms: int | None
    members: list[Member]


def can_be_stored(text: str) -> bool:
    """Whether the records have room for an id that starts with this text."""
    limit = _TEXT_BYTES_MAX - _MEMBER_ID_ROOM
    return len(text) * 4 <= limit or len(text.encode("utf-8", "surrogatepass")) <= limit


# To bytes


@lru_cache(maxsize=32_768)
def offset_key(group_id: str, partition: TopicPartition) -> bytes:
    """The key of an offset; consumers commit the same partitions over and over, so keys are kept."""
    return OffsetCommitKey(
        group=group_id, topic=partition.topic, partition=partition.partition
    ).encode_versioned(_OFFSET_KEY)


def offset_record(group_id: str, partition: TopicPartition, committed: CommittedOffset) -> KeyValue:
    version = _OFFSET_VALUE if committed.expire_ms == NO_TIMESTAMP else _OFFSET_VALUE_WITH_EXPIRY
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_ms,
        expire_timestamp=committed.expire_ms,
    )
    return KeyValue(offset_key(group_id, partition), value.encode_versioned(version))


def offset_tombstone(group_id: str, partition: TopicPartition) -> KeyValue:
    return KeyValue(offset_key(group_id, partition), None)


def group_record(group: "Group", assignments: Mapping[str, bytes]) -> KeyValue:
    """The group with `assignments`, which must name every member."""
    protocol_name = group.protocol_name
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=protocol_name,
        leader=group.roster.leader_id,
        current_state_timestamp=NO_TIMESTAMP if group.state_since_ms is None else group.state_since_ms,
    )
    for member in group.roster:
        assert protocol_name is not None, f"G4: {group}"
        value.members.append(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.protocols[protocol_name],
                assignment=assignments[member.member_id],
            )
        )
    return KeyValue(_group_key(group.group_id), value.encode_versioned(_GROUP_VALUE))


def group_tombstone(group_id: str) -> KeyValue:
    return KeyValue(_group_key(group_id), None)


def _group_key(group_id: str) -> bytes:
    return GroupMetadataKey(group=group_id).encode_versioned(_GROUP_KEY)


# From bytes


def decode_key(key: bytes | memoryview) -> OffsetKey | GroupKey | None:
    """What the record is about; None for kinds that classic groups do not use (KIP-848 and later)."""
    try:
        kind = stored_version(key)
        if OffsetCommitKey.VERSIONS.has(kind):
            offset = OffsetCommitKey.decode_versioned(key)
            return OffsetKey(offset.group, TopicPartition(offset.topic, offset.partition))
        if GroupMetadataKey.VERSIONS.has(kind):
            return GroupKey(GroupMetadataKey.decode_versioned(key).group)
    except ProtocolError as error:
        raise CorruptGroupRecord(f"a key of __consumer_offsets cannot be read: {error}") from error
    return None


def decode_offset(value: bytes | memoryview, sequence: int) -> CommittedOffset:
    try:
        stored = OffsetCommitValue.decode_versioned(value)
    except ProtocolError as error:
        raise CorruptGroupRecord(f"a committed offset cannot be read: {error}") from error
    return CommittedOffset(
        stored.offset,
        stored.leader_epoch,
        stored.metadata,
        stored.commit_timestamp,
        stored.expire_timestamp,
        sequence,
    )


def decode_group(value: bytes | memoryview) -> StoredGroup:
    try:
        stored = GroupMetadataValue.decode_versioned(value)
    except ProtocolError as error:
        raise CorruptGroupRecord(f"a group's metadata cannot be read: {error}") from error
    if stored.members and stored.protocol is None:
        raise CorruptGroupRecord("a group has members but no protocol")
    since_ms = stored.current_state_timestamp
    return StoredGroup(
        protocol_type=stored.protocol_type or None,
        protocol_name=stored.protocol,
        generation_id=stored.generation,
        leader_id=stored.leader,
        state_since_ms=None if since_ms == NO_TIMESTAMP else since_ms,
        members=[_decode_member(member, stored.protocol or "") for member in stored.members],
    )


def _decode_member(stored: MemberMetadata, protocol_name: str) -> Member:
    assert isinstance(stored.subscription, bytes | memoryview), type(stored.subscription)
    assert isinstance(stored.assignment, bytes | memoryview), type(stored.assignment)
    # Version 0 did not store the rebalance timeout; then the session timeout served for both.
    rebalance_timeout_ms = (
        stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout
    )
    return Member(
        stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        session_timeout_ms=stored.session_timeout,
        rebalance_timeout_ms=rebalance_timeout_ms,
        protocols={protocol_name: bytes(stored.subscription)},
        assignment=bytes(stored.assignment),
    )


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """All topics that consumers' metadata names; None if one of them is not such metadata."""
    topics: set[str] = set()
    for subscription in subscriptions:
        try:
            stored_version(subscription)
            # Every version starts with the fields of version 0, and the topics are all we need.
            topics.update(ConsumerProtocolSubscription.decode(0, memoryview(subscription)[2:]).topics)
        except ProtocolError:
            return None
    return frozenset(topics)
