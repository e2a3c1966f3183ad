"""One group: its state, its generation, its members and its offsets.

G1  states follow the arrows of `NEXT_STATES`
G2  the generation never falls, and rises by one when a rebalance ends
G3  an Empty or Dead group has no members; a Stable one has
G4  CompletingRebalance and Stable have a protocol that every member lists
G5  nobody waits for SyncGroup unless the state is CompletingRebalance
G6  nobody waits for JoinGroup unless the state is PreparingRebalance, or Stable while the
    replacement of a static member is being written
G7  who still owes a SyncGroup is a member, and the state is CompletingRebalance or Stable
Holds state and answers questions about it; joining, rebalancing and storing are decided elsewhere.
"""

from collections.abc import Collection
from enum import Enum

from barnabas.coordinator.calls import GroupDescription, GroupListing, JoinedMember, MemberDescription
from barnabas.coordinator.group_records import subscribed_topics
from barnabas.coordinator.member import Member
from barnabas.coordinator.offsets import GroupOffsets
from barnabas.coordinator.outbox import Outbox
from barnabas.coordinator.ports import TimerHandle
from barnabas.coordinator.roster import Roster
from barnabas.protocol.codes import ErrorCode

__all__ = ["CONSUMER", "Group", "GroupState"]

CONSUMER = "consumer"
"""Protocol type of consumers, the only one whose metadata the coordinator looks into."""


class GroupState(Enum):
    """The five states, by the names that DescribeGroups and ListGroups answer with."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


NEXT_STATES = {
    GroupState.EMPTY: {GroupState.PREPARING_REBALANCE, GroupState.DEAD},
    GroupState.PREPARING_REBALANCE: {
        GroupState.COMPLETING_REBALANCE,
        GroupState.EMPTY,
        GroupState.DEAD,
    },
    GroupState.COMPLETING_REBALANCE: {
        GroupState.STABLE,
        GroupState.PREPARING_REBALANCE,
        GroupState.DEAD,
    },
    GroupState.STABLE: {GroupState.PREPARING_REBALANCE, GroupState.DEAD},
    GroupState.DEAD: set(),
}


class Group:
    """The classic group called `group_id`, kept in one partition of the offsets topic."""

    __slots__ = (
        "generation_id",
        "group_id",
        "initial_delay_left_ms",
        "newcomer_seen",
        "offsets",
        "owing_sync",
        "partition",
        "protocol_name",
        "protocol_type",
        "rebalance_timer",
        "record_sequence",
        "roster",
        "state",
        "state_since_ms",
        "stored_generation",
        "subscribed_topics",
        "sync_timer",
    )

    def __init__(self, group_id: str, partition: int, outbox: Outbox, now_ms: int | None) -> None:
        self.group_id = group_id
        self.partition = partition
        self.roster = Roster(outbox)
        self.offsets = GroupOffsets()
        self.state = GroupState.EMPTY
        self.state_since_ms = now_ms  # None: loaded from a record too old to say
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.subscribed_topics: Collection[str] | None = None  # None: not known
        self.owing_sync: set[str] = set()
        self.stored_generation = -1  # of the last assignment handed to the log
        self.record_sequence = 0  # of its last record handed to the log; commits share the count
        self.rebalance_timer: TimerHandle | None = None
        self.sync_timer: TimerHandle | None = None
        self.initial_delay_left_ms: int | None = None  # None: not in the first rebalance's delay
        self.newcomer_seen = False

    @property
    def is_consumer_group(self) -> bool:
        return self.protocol_type == CONSUMER

    @property
    def can_rebalance(self) -> bool:
        return GroupState.PREPARING_REBALANCE in NEXT_STATES[self.state]

    @property
    def is_unused(self) -> bool:
        """Whether nothing would be lost with it: no members, no promised ids, no offsets."""
        return self.state is GroupState.EMPTY and not self.roster.promised and self.offsets.is_idle

    # Changes

    def move_to(self, state: GroupState, now_ms: int) -> None:
        assert state in NEXT_STATES[self.state], f"G1: {self.state} -> {state}"
        self.state = state
        self.state_since_ms = now_ms
        assert state is not GroupState.EMPTY or not len(self.roster), f"G3: {self}"
        assert state is not GroupState.STABLE or len(self.roster), f"G3: {self}"

    def begin_generation(self, now_ms: int) -> None:
        """Ends the join phase with the members that are there."""
        self.generation_id += 1
        if len(self.roster):
            self.protocol_name = self.roster.select_protocol()
            self.move_to(GroupState.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol_name = None
            self.move_to(GroupState.EMPTY, now_ms)
        self.refresh_subscribed_topics()

    def refresh_subscribed_topics(self) -> None:
        """Reads the members' topics; they stay unknown if one of them cannot be read."""
        self.subscribed_topics = None
        if self.is_consumer_group and not len(self.roster):
            self.subscribed_topics = frozenset()
        elif self.is_consumer_group and self.protocol_name is not None:
            self.subscribed_topics = subscribed_topics(
                member.protocols[self.protocol_name] for member in self.roster
            )

    # Questions

    def supports(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether a member with this protocol type and these protocols may join."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type and names)
        return self.protocol_type == protocol_type and self.roster.has_common_protocol(names)

    def member_error(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """NONE if the caller is a member, and under its instance id the current one."""
        if instance_id is not None:
            current = self.roster.instances.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.roster else ErrorCode.UNKNOWN_MEMBER_ID

    def commit_error(
        self, member_id: str, instance_id: str | None, generation_id: int, *, transactional: bool
    ) -> ErrorCode:
        """NONE if the caller may commit offsets."""
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if generation_id < 0 and self.state is GroupState.EMPTY:
            return ErrorCode.NONE  # a consumer without group management, or an administrator
        if generation_id >= 0 or member_id or instance_id is not None:
            error = self.member_error(member_id, instance_id)
            if error:
                return error
            if generation_id != self.generation_id:
                return ErrorCode.ILLEGAL_GENERATION
        elif not transactional:
            return ErrorCode.UNKNOWN_MEMBER_ID  # old transactional producers do not say who they are
        if self.state is GroupState.COMPLETING_REBALANCE and not transactional:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether members read the topic; yes when that is not known."""
        return self.subscribed_topics is None or topic in self.subscribed_topics

    def joined_members(self) -> list[JoinedMember]:
        """The members as the leader gets to see them."""
        assert self.protocol_name is not None, f"G4: {self}"
        return [
            JoinedMember(member.member_id, member.instance_id, member.protocols[self.protocol_name])
            for member in self.roster
        ]

    def describe(self) -> GroupDescription:
        stable = self.state is GroupState.STABLE
        protocol_name = (self.protocol_name or "") if stable else ""
        return GroupDescription(
            ErrorCode.NONE,
            self.group_id,
            self.state.value,
            self.protocol_type or "",
            protocol_name,
            [self._describe_member(member, protocol_name) for member in self.roster],
        )

    def _describe_member(self, member: Member, protocol_name: str) -> MemberDescription:
        return MemberDescription(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.protocols[protocol_name] if protocol_name else b"",
            member.assignment if protocol_name else b"",
        )

    def listing(self) -> GroupListing:
        return GroupListing(self.group_id, self.protocol_type or "", self.state.value, "classic")

    def check(self) -> None:
        """Asserts G3 to G7 and the roster's; costs a walk over all members, so tests call it."""
        self.roster.check()
        if self.state in (GroupState.EMPTY, GroupState.DEAD):
            assert not len(self.roster), f"G3: {self}"
        if self.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            assert len(self.roster), f"G3: {self}"
            assert all(self.protocol_name in member.protocols for member in self.roster), f"G4: {self}"
        else:
            assert not self.owing_sync, f"G7: {self.owing_sync}"
        if self.state is not GroupState.COMPLETING_REBALANCE:
            assert not any(member.awaiting_sync for member in self.roster), f"G5: {self}"
        if self.state is not GroupState.PREPARING_REBALANCE:
            joining = [member for member in self.roster if member.awaiting_join]
            stable = self.state is GroupState.STABLE
            assert not joining or (stable and all(m.is_static for m in joining)), f"G6: {self}"
        assert all(member_id in self.roster for member_id in self.owing_sync), f"G7: {self.owing_sync}"

    def __repr__(self) -> str:
        members = f"{len(self.roster)} members"
        return f"Group({self.group_id!r}, {self.state.value}, generation {self.generation_id}, {members})"
