"""One member of a group: what it told us, what it waits for, when it counts as lost.

M1  a member waits for an answer to JoinGroup or to SyncGroup, never to both
M2  an armed timer fires at or before the deadline
Holds no rule of the group; the roster counts members, the sessions watch their deadlines.
"""

from collections.abc import Container

from barnabas.coordinator.calls import JoinCall, JoinReply, Protocols, SyncReply
from barnabas.coordinator.ports import TimerHandle

__all__ = ["Member", "protocol_table"]


def protocol_table(protocols: Protocols) -> dict[str, bytes]:
    """Protocol names, best first, with their metadata; of a name given twice the first counts."""
    table: dict[str, bytes] = {}
    for name, metadata in protocols:
        table.setdefault(name, bytes(metadata))
    return table


class Member:
    """A client process that belongs to a group."""

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "deadline_ms",
        "instance_id",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "timer",
        "timer_due_ms",
    )

    def __init__(
        self,
        member_id: str,
        *,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocols: dict[str, bytes],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = False  # in no generation yet, so it cannot have sent a heartbeat
        self.awaiting_join: JoinReply | None = None
        self.awaiting_sync: SyncReply | None = None
        self.deadline_ms = 0
        self.timer: TimerHandle | None = None
        self.timer_due_ms = 0

    @classmethod
    def of_call(cls, member_id: str, call: JoinCall) -> "Member":
        """A member as its JoinGroup describes it."""
        return cls(
            member_id,
            instance_id=call.instance_id,
            client_id=call.client_id,
            client_host=call.client_host,
            session_timeout_ms=call.session_timeout_ms,
            rebalance_timeout_ms=call.rebalance_timeout_ms,
            protocols=protocol_table(call.protocols),
        )

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_excused(self) -> bool:
        """Whether a missed heartbeat is no sign of death, because the member waits for our answer."""
        if self.awaiting_sync is not None:
            return True
        # A newcomer whose connection broke would otherwise wait in every rebalance to come.
        return self.awaiting_join is not None and not self.is_new

    def lists(self, protocols: Protocols) -> bool:
        """Whether a JoinGroup with these protocols says nothing new."""
        return list(protocol_table(protocols).items()) == list(self.protocols.items())

    def vote(self, candidates: Container[str]) -> str:
        """The first of the member's protocols among `candidates`, of which it must list one."""
        return next(name for name in self.protocols if name in candidates)

    def __repr__(self) -> str:
        instance = f", instance {self.instance_id!r}" if self.is_static else ""
        return f"Member({self.member_id!r}{instance})"
