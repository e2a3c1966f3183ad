"""The messages of a classic consumer group, from and to what a member thinks in.

Subscriptions are written as version 3, assignments as version 1: every reader takes a version that is newer
than its own, and assignments have gained no field since.  What others wrote is read leniently: bytes that
make no sense count as no topics, for one broken member must not stop the group.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.base.types import TopicPartition
from barnabas.client.assignors import Assignor, GroupSubscription, grouped, ungrouped
from barnabas.client.offsets import GroupIdentity
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.protocol.storage.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

__all__ = ["PROTOCOL_TYPE", "join_request", "members_of", "read_assignment", "sync_request"]

_log: Final = logging.getLogger("barnabas.client.group")

PROTOCOL_TYPE: Final = "consumer"
_SUBSCRIPTION_VERSION: Final = 3
_ASSIGNMENT_VERSION: Final = 1


def join_request(
    identity: GroupIdentity,
    topics: Iterable[str],
    owned: Iterable[TopicPartition],
    assignors: Iterable[Assignor],
    *,
    session_ms: int,
    rebalance_ms: int,
    rack: str | None,
) -> JoinGroupRequest:
    """The member's wish to join, with one subscription per assignor."""
    wanted, held = sorted(topics), list(owned)
    protocols = [
        JoinGroupRequestProtocol(
            name=assignor.name,
            metadata=ConsumerProtocolSubscription(
                topics=wanted,
                user_data=assignor.user_data(held, identity.generation),
                owned_partitions=grouped(held),
                generation_id=identity.generation,
                rack_id=rack,
            ).encode_versioned(_SUBSCRIPTION_VERSION),
        )
        for assignor in assignors
    ]
    return JoinGroupRequest(
        group_id=identity.group_id,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=protocols,
    )


def members_of(joined: JoinGroupResponse) -> list[GroupSubscription]:
    """What all members told, for the assignor."""
    members = []
    for member in joined.members:
        try:
            told = ConsumerProtocolSubscription.decode_versioned(member.metadata)
        except ProtocolError as error:
            _log.warning("member %s sent a subscription that cannot be read: %s", member.member_id, error)
            told = ConsumerProtocolSubscription()
        members.append(
            GroupSubscription(
                member.member_id,
                frozenset(told.topics),
                frozenset(ungrouped(told.owned_partitions)),
                told.generation_id,
                member.group_instance_id,
                told.rack_id,
                b"" if told.user_data is None else bytes(told.user_data),
            )
        )
    return members


def sync_request(
    identity: GroupIdentity, protocol: str | None, assignments: Mapping[str, Iterable[TopicPartition]]
) -> SyncGroupRequest:
    """The leader's assignment for everyone; nothing from the others."""
    return SyncGroupRequest(
        group_id=identity.group_id,
        generation_id=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=protocol,
        assignments=[
            SyncGroupRequestAssignment(
                member_id=member_id,
                assignment=ConsumerProtocolAssignment(
                    assigned_partitions=grouped(partitions)
                ).encode_versioned(_ASSIGNMENT_VERSION),
            )
            for member_id, partitions in assignments.items()
        ],
    )


def read_assignment(assignment: bytes | memoryview) -> list[TopicPartition]:
    """The partitions of an assignment; none when the leader had nothing for this member."""
    if not len(assignment):
        return []
    return ungrouped(ConsumerProtocolAssignment.decode_versioned(assignment).assigned_partitions)
