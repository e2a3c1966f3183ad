"""Admin calls about consumer groups: list, describe with what each member reads, delete.

Groups of the newer protocol (KIP-848) are asked for by their own API where the broker has it; the answer
"not such a group" leads to the classic one.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from barnabas.base.types import TopicPartition
from barnabas.client.admin_base import AdminBase, answer_of
from barnabas.client.admin_types import GroupDescription, GroupListing, MemberDescription
from barnabas.client.errors import KafkaError, UnsupportedByBroker, error_for
from barnabas.client.results import Results
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.protocol.messages.describe_groups import (
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.protocol.schema import Readable
from barnabas.protocol.storage.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

__all__ = ["GroupCalls"]

_STATES_FROM: Final = 4
_TYPES_FROM: Final = 5
_NOT_THIS_KIND: Final = frozenset(
    {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INVALID_GROUP_ID}
)


class GroupCalls(AdminBase):
    """Calls about groups."""

    async def list_groups(
        self,
        *,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        timeout_ms: int | None = None,
    ) -> list[GroupListing]:
        """All groups by name, or those in some `states` ("Stable", "Empty" …) or of some `types`."""
        await self.start()
        wanted_states, wanted_types = list(states), list(types)

        async def attempt() -> list[GroupListing]:
            await self._cluster.refresh()
            found = await asyncio.gather(
                *(
                    self._groups_at(node, wanted_states, wanted_types)
                    for node in self._cluster.metadata.brokers
                )
            )
            by_id = {group.id: group for some in found for group in some}
            return [by_id[name] for name in sorted(by_id)]

        return await self._cluster.retry(attempt, timeout_ms=self._timeout_ms(timeout_ms))

    async def _groups_at(self, node: int, states: list[str], types: list[str]) -> list[GroupListing]:
        await self._cluster.ready(node)
        version = self._cluster.version_of(node, ApiKey.LIST_GROUPS) or 0
        if (states and version < _STATES_FROM) or (types and version < _TYPES_FROM):
            raise UnsupportedByBroker(f"broker {node} cannot list groups by state or type")
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        answer = answer_of(await self._cluster.request(node, request), ListGroupsResponse)
        if answer.error_code:
            raise error_for(answer.error_code, subject=f"groups of broker {node}")
        return [
            GroupListing(
                group.group_id, group.protocol_type, group.group_state, group.group_type.lower() or "classic"
            )
            for group in answer.groups
        ]

    async def describe_groups(
        self, groups: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, GroupDescription]:
        """State, members and what each member subscribed to and reads.  Unknown groups: UnknownGroup."""
        return await self._each_group(groups, self._describe, timeout_ms)

    async def describe_group(self, group: str, *, timeout_ms: int | None = None) -> GroupDescription:
        """One group.  Raises UnknownGroup."""
        return (await self.describe_groups([group], timeout_ms=timeout_ms))[group]

    async def delete_groups(
        self, groups: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, None]:
        """Deletes groups with their offsets.  A group that still has members: GroupNotEmpty."""

        async def delete(node: int, group: str) -> None:
            request = DeleteGroupsRequest(groups_names=[group])
            answer = answer_of(
                await self._cluster.request(node, request, purpose="coordinator"), DeleteGroupsResponse
            )
            for found in answer.results:
                if found.error_code:
                    raise error_for(found.error_code, subject=f"group {group!r}")

        return await self._each_group(groups, delete, timeout_ms)

    async def _describe(self, node: int, group: str) -> GroupDescription:
        await self._cluster.ready(node, purpose="coordinator")
        if self._cluster.version_of(node, ApiKey.CONSUMER_GROUP_DESCRIBE) is not None:
            try:
                return await self._describe_newer(node, group)
            except KafkaError as error:
                if error.code not in _NOT_THIS_KIND:
                    raise
        return await self._describe_classic(node, group)

    async def _describe_newer(self, node: int, group: str) -> GroupDescription:
        request = ConsumerGroupDescribeRequest(group_ids=[group])
        answer = answer_of(
            await self._cluster.request(node, request, purpose="coordinator"), ConsumerGroupDescribeResponse
        )
        found = answer.groups[0]
        if found.error_code:
            raise error_for(found.error_code, found.error_message, subject=f"group {group!r}")
        members = tuple(
            MemberDescription(
                member.member_id,
                member.client_id,
                member.client_host.lstrip("/"),
                member.instance_id,
                tuple(member.subscribed_topic_names),
                _partitions_of(member.assignment),
                _partitions_of(member.target_assignment),
            )
            for member in found.members
        )
        return GroupDescription(
            group,
            found.group_state,
            "consumer",
            found.assignor_name,
            self._cluster.metadata.brokers[node],
            members,
            "consumer",
        )

    async def _describe_classic(self, node: int, group: str) -> GroupDescription:
        request = DescribeGroupsRequest(groups=[group])
        answer = answer_of(
            await self._cluster.request(node, request, purpose="coordinator"), DescribeGroupsResponse
        )
        found = answer.groups[0]
        if found.error_code:
            raise error_for(found.error_code, found.error_message, subject=f"group {group!r}")
        if found.group_state == "Dead":  # how versions before 6 say that there is none
            raise error_for(ErrorCode.GROUP_ID_NOT_FOUND, subject=f"group {group!r}")
        return GroupDescription(
            group,
            found.group_state,
            found.protocol_type,
            found.protocol_data,
            self._cluster.metadata.brokers[node],
            tuple(_member(member, found.protocol_type) for member in found.members),
        )


def _partitions_of(assignment: Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def _member(member: DescribedGroupMember, protocol_type: str) -> MemberDescription:
    is_consumer = protocol_type == "consumer"
    return MemberDescription(
        member.member_id,
        member.client_id,
        member.client_host.lstrip("/"),
        member.group_instance_id,
        _subscription(_bytes(member.member_metadata)) if is_consumer else (),
        _assignment(_bytes(member.member_assignment)) if is_consumer else (),
    )


def _bytes(value: object) -> Readable:
    assert isinstance(value, bytes | bytearray | memoryview), "decoded fields are in memory"
    return value


def _subscription(data: Readable) -> tuple[str, ...]:
    """The topics a member wants; empty while it has said nothing or in a form of its own."""
    try:
        return tuple(ConsumerProtocolSubscription.decode_versioned(data).topics) if len(data) else ()
    except ProtocolError:
        return ()


def _assignment(data: Readable) -> tuple[TopicPartition, ...]:
    try:
        found = ConsumerProtocolAssignment.decode_versioned(data).assigned_partitions if len(data) else []
    except ProtocolError:
        return ()
    return tuple(
        sorted(TopicPartition(each.topic, partition) for each in found for partition in each.partitions)
    )
