"""Members of consumer groups, driven call by call."""

import itertools

from barnabas.base.types import ZERO_UUID, Uuid
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from barnabas.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tests.broker._wire import WireClient, until

SESSION_MS = 10_000
FIRST_MEMBER_ID_VERSION = 4
_numbers = itertools.count(1)


def new_group() -> str:
    return f"g{next(_numbers)}"


def find_coordinator(client: WireClient) -> None:
    """Makes the broker the coordinator of all groups, as a client's first look-up does."""
    assert client.call(FindCoordinatorRequest(key="any"), 0, FindCoordinatorResponse).error_code == 0


def until_loaded(client: WireClient, group: str) -> None:
    """Waits until the coordinator has read the group back after a start."""
    asked = OffsetFetchRequest(group_id=group, topics=None)
    until(
        lambda: (
            client.call(asked, 7, OffsetFetchResponse).error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        )
    )


def join_request(
    group: str,
    member_id: str = "",
    *,
    instance: str | None = None,
    session_ms: int = SESSION_MS,
    protocol_type: str = "consumer",
    protocols: tuple[str, ...] = ("range",),
    metadata: bytes = b"subscription",
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=SESSION_MS,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in protocols],
    )


class Member:
    """One member on its own connection; joins and syncs at the versions it was made with."""

    def __init__(
        self, client: WireClient, group: str, *, instance: str | None = None, join: int = 5, sync: int = 3
    ) -> None:
        self.client = client
        self.group = group
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        self._join_version = join
        self._sync_version = sync

    def begin_join(self) -> None:
        """Sends the join, after the one that only gives an id where versions want that."""
        if self._join_version >= FIRST_MEMBER_ID_VERSION and not self.member_id and self.instance is None:
            first = self.client.call(self._join(), self._join_version, JoinGroupResponse)
            assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
            self.member_id = first.member_id
        self.client.send(self._join(), self._join_version)

    def end_join(self) -> JoinGroupResponse:
        joined = self.client.receive(JoinGroupResponse)
        if not joined.error_code:
            self.member_id, self.generation = joined.member_id, joined.generation_id
        return joined

    def join(self) -> JoinGroupResponse:
        self.begin_join()
        return self.end_join()

    def _join(self) -> JoinGroupRequest:
        instance = self.instance if self._join_version >= 5 else None
        return join_request(self.group, self.member_id, instance=instance)

    def begin_sync(self, **assignments: bytes) -> None:
        self.client.send(
            SyncGroupRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.instance if self._sync_version >= 3 else None,
                protocol_type="consumer",
                protocol_name="range",
                assignments=[
                    SyncGroupRequestAssignment(member_id=member, assignment=data)
                    for member, data in assignments.items()
                ],
            ),
            self._sync_version,
        )

    def end_sync(self) -> SyncGroupResponse:
        return self.client.receive(SyncGroupResponse)

    def sync(self, **assignments: bytes) -> SyncGroupResponse:
        self.begin_sync(**assignments)
        return self.end_sync()

    def start(self) -> "Member":
        """Joins alone and assigns itself everything."""
        assert self.join().error_code == 0
        assert self.sync(**{self.member_id: b"all"}).error_code == 0
        return self

    def heartbeat(self, version: int = 3, *, generation: int | None = None) -> int:
        request = HeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            generation_id=self.generation if generation is None else generation,
            group_instance_id=self.instance if version >= 3 else None,
        )
        return self.client.call(request, version, HeartbeatResponse).error_code


def join_both(leader: Member, newcomer: Member) -> None:
    """Takes a second member into the group that `leader` has started."""
    newcomer.begin_join()
    until(lambda: leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS)
    assert leader.join().error_code == 0
    assert newcomer.end_join().error_code == 0


def commit(
    client: WireClient,
    group: str,
    topic: str,
    offset: int,
    *,
    version: int = 7,
    partition: int = 0,
    member: Member | None = None,
    metadata: str | None = "",
    topic_id: Uuid = ZERO_UUID,
    leader_epoch: int = -1,
    retention_ms: int = -1,
) -> int:
    part = OffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=offset,
        committed_metadata=metadata,
        committed_leader_epoch=leader_epoch,
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=member.generation if member else -1,
        member_id=member.member_id if member else "",
        retention_time_ms=retention_ms,
        topics=[OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[part])],
    )
    (answer,) = client.call(request, version, OffsetCommitResponse).topics
    assert answer.name == (topic if version < 10 else "")
    assert answer.topic_id == (topic_id if version >= 10 else ZERO_UUID)
    (found,) = answer.partitions
    assert found.partition_index == partition
    return found.error_code


def committed(
    client: WireClient,
    group: str,
    topic: str,
    *,
    version: int = 7,
    partition: int = 0,
    topic_id: Uuid = ZERO_UUID,
) -> tuple[int, int, str | None, int]:
    """(offset, leader epoch, metadata, error) that OffsetFetch gives for one partition."""
    if version < 8:
        request = OffsetFetchRequest(
            group_id=group, topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[partition])]
        )
        response = client.call(request, version, OffsetFetchResponse)
        assert response.error_code == 0
        (old,) = response.topics
        assert old.name == topic
        (part,) = old.partitions
        return part.committed_offset, part.committed_leader_epoch, part.metadata, part.error_code
    wanted = OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=[partition])
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[wanted])])
    (answer,) = client.call(request, version, OffsetFetchResponse).groups
    assert (answer.group_id, answer.error_code) == (group, 0)
    (new,) = answer.topics
    assert new.name == (topic if version < 10 else "")
    assert new.topic_id == (topic_id if version >= 10 else ZERO_UUID)
    (found,) = new.partitions
    return found.committed_offset, found.committed_leader_epoch, found.metadata, found.error_code
