"""Who is in a group, who leads it, and which protocol they have in common.

R1  an instance id names exactly the one member that carries it
R2  support[name] is the number of members that list protocol `name`
R3  awaiting_joins is the number of members that wait for an answer to JoinGroup
R4  there is a leader if and only if there are members, and it is one of them
R5  an id that was handed out but not used yet (KIP-394) is no member's
Knows no state, generation or storage.  Answers to members leave through it, since it counts who waits.
"""

from collections import Counter
from collections.abc import Collection, Iterator

from barnabas.coordinator.calls import JoinCall, JoinReply, JoinResult, SyncReply, SyncResult
from barnabas.coordinator.member import Member, protocol_table
from barnabas.coordinator.outbox import Outbox
from barnabas.coordinator.ports import TimerHandle
from barnabas.protocol.codes import ErrorCode

__all__ = ["Roster"]


class Roster:
    """The members of one group in the order they came."""

    __slots__ = ("_members", "_outbox", "_support", "awaiting_joins", "instances", "leader_id", "promised")

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._members: dict[str, Member] = {}
        self._support: Counter[str] = Counter()
        self.awaiting_joins = 0
        self.leader_id: str | None = None
        self.instances: dict[str, str] = {}  # instance id -> member id
        self.promised: dict[str, TimerHandle] = {}  # ids handed out -> what makes them lapse

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._members

    def __iter__(self) -> Iterator[Member]:
        """The members of this moment; the roster may change meanwhile."""
        return iter(list(self._members.values()))

    def get(self, member_id: str) -> Member | None:
        return self._members.get(member_id)

    def __getitem__(self, member_id: str) -> Member:
        return self._members[member_id]

    @property
    def all_joined(self) -> bool:
        """Whether nobody is missing for the next generation, newcomers with a promised id included."""
        return self.awaiting_joins == len(self._members) and not self.promised

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self._members.values()), default=0)

    # Membership

    def add(self, member: Member) -> None:
        assert member.member_id not in self._members, f"{member} is a member already"
        if member.instance_id is not None:
            assert member.instance_id not in self.instances, f"R1: {member}"
            self.instances[member.instance_id] = member.member_id
        self._members[member.member_id] = member
        self._support.update(member.protocols.keys())
        self.awaiting_joins += member.awaiting_join is not None
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.withdraw_promise(member.member_id)

    def remove(self, member: Member) -> None:
        """Takes the member out; it must not wait for an answer."""
        assert member.awaiting_join is None, f"R3: {member} would wait for ever"
        assert member.awaiting_sync is None, f"{member} would wait for ever"
        del self._members[member.member_id]
        self._discount(member.protocols)
        if member.instance_id is not None:
            del self.instances[member.instance_id]
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self._members), None)

    def replace(self, old: Member, new: Member) -> None:
        """Puts `new` in the place of `old`, which carries the same instance id (KIP-345)."""
        assert old.instance_id == new.instance_id, f"R1: {old} and {new}"
        led = self.leader_id == old.member_id
        self.remove(old)
        self.add(new)
        if led:
            self.leader_id = new.member_id

    def update(self, member: Member, call: JoinCall) -> None:
        """Takes over what the member's new JoinGroup says."""
        self._discount(member.protocols)
        member.protocols = protocol_table(call.protocols)
        self._support.update(member.protocols.keys())
        member.rebalance_timeout_ms = call.rebalance_timeout_ms
        member.session_timeout_ms = call.session_timeout_ms

    def withdraw_promise(self, member_id: str) -> bool:
        """Forgets an id that was handed out; False if it was not."""
        timer = self.promised.pop(member_id, None)
        if timer is None:
            return False
        timer.cancel()
        return True

    def elect_joined_leader(self) -> bool:
        """Keeps the leader if it rejoined, else takes any member that did; False if none did."""
        leader = self._members.get(self.leader_id or "")
        if leader is not None and leader.awaiting_join is not None:
            return True
        for member in self._members.values():
            if member.awaiting_join is not None:
                self.leader_id = member.member_id
                return True
        return False

    # Protocols

    def has_common_protocol(self, names: Collection[str]) -> bool:
        """Whether one of `names` is listed by every member."""
        return any(self._support[name] == len(self._members) for name in names)

    def select_protocol(self) -> str:
        """The protocol, of those all members list, that most members prefer; there must be members."""
        candidates = {name for name, count in self._support.items() if count == len(self._members)}
        votes = Counter(member.vote(candidates) for member in self._members.values())
        return votes.most_common(1)[0][0]

    def _discount(self, protocols: dict[str, bytes]) -> None:
        self._support.subtract(protocols.keys())
        for name in protocols:
            if not self._support[name]:
                del self._support[name]

    # Answers

    def await_join(self, member: Member, reply: JoinReply) -> None:
        """Keeps the answer to a JoinGroup back.  An older call of the member, whose connection is
        most likely gone, and its SyncGroup end here."""
        self.answer_sync(member, SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
        self.answer_join(member, JoinResult(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        member.awaiting_join = reply
        self.awaiting_joins += 1

    def await_sync(self, member: Member, reply: SyncReply) -> None:
        """Keeps the answer to a SyncGroup back, as `await_join` does."""
        assert member.awaiting_join is None, f"M1: {member}"
        self.answer_sync(member, SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
        member.awaiting_sync = reply

    def answer_join(self, member: Member, result: JoinResult) -> bool:
        """Answers the member's JoinGroup; False if there is none."""
        reply, member.awaiting_join = member.awaiting_join, None
        if reply is None:
            return False
        self.awaiting_joins -= 1
        assert self.awaiting_joins >= 0, f"R3: {self.awaiting_joins}"
        self._outbox.post(reply, result)
        return True

    def answer_sync(self, member: Member, result: SyncResult) -> bool:
        """Answers the member's SyncGroup; False if there is none."""
        reply, member.awaiting_sync = member.awaiting_sync, None
        if reply is None:
            return False
        self._outbox.post(reply, result)
        return True

    def check(self) -> None:
        """Asserts R1 to R5 and M1; costs a walk over all members, so tests call it, requests do not."""
        members = self._members
        carriers = {m.instance_id: m.member_id for m in members.values() if m.instance_id is not None}
        assert self.instances == carriers, f"R1: {self.instances} {carriers}"
        support = Counter(name for member in members.values() for name in member.protocols)
        assert self._support == support, f"R2: {self._support} {support}"
        waiting = sum(member.awaiting_join is not None for member in members.values())
        assert self.awaiting_joins == waiting, f"R3: {self.awaiting_joins} {waiting}"
        assert (self.leader_id is None) == (not members), f"R4: {self.leader_id}"
        assert self.leader_id is None or self.leader_id in members, f"R4: {self.leader_id}"
        assert not self.promised.keys() & members.keys(), f"R5: {self.promised.keys()}"
        for member in members.values():
            assert member.awaiting_join is None or member.awaiting_sync is None, f"M1: {member}"
