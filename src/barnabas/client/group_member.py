"""A member of a classic consumer group: joins, assigns when it leads, keeps its seat, leaves.

G1  partitions are given up only inside a poll of the user (`GroupHooks`), so that all records handed out
    before were processed; until then heartbeats go on and the broker waits, up to max.poll.interval.ms
G2  eager assignors give up everything before a join; cooperative ones (KIP-429) join with what they own,
    give up only what moves, and join once more so that it can be given out
G3  a member that the group no longer knows has lost its partitions; it is not told that they were revoked
G4  without a poll for max.poll.interval.ms the member leaves, and joins again at the next poll
G5  a static member (group.instance.id) does not leave when it closes: its seat waits for session.timeout.ms

Two tasks on the client's loop: one joins and rejoins, one sends heartbeats.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from barnabas.base.types import TopicPartition
from barnabas.client.assignors import Assignor
from barnabas.client.cluster import Cluster, CoordinatorKind
from barnabas.client.config import ClientSettings
from barnabas.client.errors import ClientClosed, ConnectionLost, KafkaError, RequestTimedOut, error_for
from barnabas.client.group_protocol import join_request, members_of, read_assignment, sync_request
from barnabas.client.offsets import GroupIdentity
from barnabas.client.subscription import Subscription
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from barnabas.protocol.schema import Message

__all__ = ["GroupCounters", "GroupHooks", "GroupMember", "Release"]

_log: Final = logging.getLogger("barnabas.client.group")

_PURPOSE: Final = "group"
_JOIN_GRACE_MS: Final = 5_000  # a broker answers a join when the rebalance timeout is over at the latest

_SAME_PLACE_LATER: Final = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS}
)
_MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
_LOST: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class Release(Enum):
    """Why partitions go."""

    REVOKED = "revoked"
    LOST = "lost"


class GroupHooks(Protocol):
    """What a member needs of the consumer around it."""

    async def release(
        self, partitions: list[TopicPartition], why: Callable[[], Release], take_away: Callable[[], None]
    ) -> None:
        """Returns when the user, inside poll, was told that these go; `why` is asked at that moment.

        `take_away` is called in between: after the user was told, before poll hands out anything else.
        """

    async def assigned(self, partitions: list[TopicPartition]) -> None:
        """Returns when the user, inside poll, was told of these new ones."""

    def idle_ms(self) -> int:
        """How long the user has not polled; 0 while it is inside poll."""

    def failed(self, error: KafkaError) -> None:
        """The member cannot go on; the user is told in poll."""


@dataclass(slots=True)
class GroupCounters:
    """What `metrics` shows of the group."""

    rebalances: int = 0
    heartbeats: int = 0
    failed_heartbeats: int = 0


class _Rejoin(Exception):
    """Something happened on the way; start the join anew."""


class GroupMember:
    """One member, from `start` to `close`."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ClientSettings,
        subscription: Subscription,
        assignors: list[Assignor],
        hooks: GroupHooks,
    ) -> None:
        self.group_id: Final = settings.string("group.id")
        self.generation = -1
        self.member_id = ""
        self.protocol: str | None = None
        self.is_leader = False
        self.is_stable = False
        self.counters = GroupCounters()
        self._cluster = cluster
        self._settings = settings
        self._subscription = subscription
        self._assignors = assignors
        self._hooks = hooks
        self._instance_id = settings.optional_string("group.instance.id")
        self._session_ms = settings.integer("session.timeout.ms")
        self._beat_ms = settings.integer("heartbeat.interval.ms")
        self._poll_limit_ms = settings.integer("max.poll.interval.ms")
        # All assignors must be cooperative, or some member could choose one that is not.
        self._is_cooperative = all(assignor.is_cooperative for assignor in assignors)
        self._counted: dict[str, int] = {}  # partitions per topic, as the leader assigned them
        self._is_lost = False
        self._is_fenced = False
        self._needs_join = asyncio.Event()
        self._beat_soon = asyncio.Event()
        self._is_joining = False  # a JoinGroup or SyncGroup is under way: no heartbeats
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def identity(self) -> GroupIdentity:
        return GroupIdentity(self.group_id, self.generation, self.member_id, self._instance_id)

    def start(self) -> None:
        """Joins, and keeps joining, until `stop`."""
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(self._keep_joined(), name=f"barnabas member of {self.group_id}"),
                asyncio.create_task(self._keep_beating(), name=f"barnabas heartbeat of {self.group_id}"),
            ]
        self.rejoin("the subscription changed")

    async def stop(self, *, timeout_ms: int, reason: str) -> None:
        """Ends membership; a dynamic member tells the group."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        if self.member_id and self._instance_id is None:
            await self._leave(timeout_ms, reason)
        self._forget_generation(member_too=True)
        self._is_lost = False

    def rejoin(self, reason: str) -> None:
        """Joins again soon; a fenced static member never does, or it would fence the one that took over."""
        if self._is_fenced:
            return
        _log.debug("group %s: will join: %s", self.group_id, reason)
        self._needs_join.set()

    def metadata_changed(self) -> None:
        """The leader joins again when topics of the group got partitions or came into being."""
        if self.is_leader and self.is_stable and self._counted != self._count(self._counted):
            self.rejoin("topics of the group have changed")

    def committing_failed(self, error: KafkaError) -> None:
        """A commit told that the group went on without this member."""
        if error.code in _LOST:
            self._lose(error.code)
        elif error.code is ErrorCode.FENCED_INSTANCE_ID:
            self._give_up(error)
        elif error.code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.rejoin("a commit met a rebalance")

    # --- joining

    async def _keep_joined(self) -> None:
        backoff = self._cluster.retry_backoff()
        while True:
            await self._needs_join.wait()
            try:
                await self._release_before_join()
                self._needs_join.clear()
                await self._join()
                backoff.reset()
            except ClientClosed:
                return
            except _Rejoin:
                self._needs_join.set()
            except KafkaError as error:
                self._needs_join.set()
                if not self._recover(error):
                    self._give_up(error)
                    continue
                _log.debug("group %s: joining failed, trying again: %s", self.group_id, error)
                if error.code not in _LOST and error.code is not ErrorCode.MEMBER_ID_REQUIRED:
                    await asyncio.sleep(backoff.next_ms() / 1000)

    def _recover(self, error: KafkaError) -> bool:
        """Does what an error asks for; false when nothing helps."""
        if error.code in _LOST:
            self._lose(error.code)
            return True
        if error.code in _MOVED or isinstance(error, ConnectionLost | RequestTimedOut):
            self._cluster.forget_coordinator(CoordinatorKind.GROUP, self.group_id)
            return True
        return error.retriable or error.code in _SAME_PLACE_LATER

    async def _release_before_join(self) -> None:
        """What must go before the group is asked for more (G2, G3)."""
        going = list(self._subscription.partitions)
        if self._is_cooperative and not self._is_lost and self.generation >= 0:
            going = [tp for tp in going if tp.topic not in self._subscription.topics]
        if going or self._is_lost:
            await self._release(going)
        self._is_lost = False

    async def _release(self, going: list[TopicPartition]) -> None:
        def why() -> Release:
            return Release.LOST if self._is_lost or self.generation < 0 else Release.REVOKED

        def take_away() -> None:
            gone = set(going)
            self._subscription.replace([tp for tp in self._subscription.partitions if tp not in gone])

        await self._hooks.release(going, why, take_away)

    async def _join(self) -> None:
        topics = self._subscription.topics
        self.is_stable = False
        self._is_joining = True
        try:
            joined = await self._join_group(topics)
            self.is_leader = joined.leader == joined.member_id
            assignment = await self._sync_group(joined)
        finally:
            self._is_joining = False
        self.counters.rebalances += 1
        self.is_stable = True
        self._beat_soon.set()
        await self._adopt(assignment)
        if topics != self._subscription.topics:
            self.rejoin("the subscription changed while joining")

    async def _join_group(self, topics: frozenset[str]) -> JoinGroupResponse:
        request = join_request(
            self.identity,
            topics,
            list(self._subscription.partitions),
            self._assignors,
            session_ms=self._session_ms,
            rebalance_ms=self._poll_limit_ms,
            rack=self._settings.string("client.rack") or None,
        )
        answer = await self._ask(request, timeout_ms=self._poll_limit_ms + _JOIN_GRACE_MS)
        assert isinstance(answer, JoinGroupResponse), answer
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            raise _Rejoin
        if answer.error_code:
            raise error_for(answer.error_code, subject=f"joining group {self.group_id!r}")
        self.generation, self.member_id = answer.generation_id, answer.member_id
        self.protocol = answer.protocol_name or None
        return answer

    async def _sync_group(self, joined: JoinGroupResponse) -> list[TopicPartition]:
        assignments: dict[str, list[TopicPartition]] = {}
        if self.is_leader:
            members = members_of(joined)
            self._counted = await self._counts_of(topic for member in members for topic in member.topics)
            if not joined.skip_assignment:
                assignor = self._assignor(joined.protocol_name)
                assignments = assignor.assign(
                    {topic: count for topic, count in self._counted.items() if count}, members
                )
                _log.debug("group %s: %s assigns %s", self.group_id, assignor.name, assignments)
        request = sync_request(self.identity, joined.protocol_name, assignments)
        answer = await self._ask(request, timeout_ms=self._poll_limit_ms + _JOIN_GRACE_MS)
        assert isinstance(answer, SyncGroupResponse), answer
        if answer.error_code:
            raise error_for(answer.error_code, subject=f"joining group {self.group_id!r}")
        return read_assignment(answer.assignment)

    async def _adopt(self, assignment: list[TopicPartition]) -> None:
        """Takes the assignment of a generation, telling the user what goes and what comes."""
        owned = set(self._subscription.partitions)
        wanted = set(assignment)
        # An assignor of another client may hand out a topic that this member does not want any more.
        going = [tp for tp in self._subscription.partitions if tp not in wanted]
        if going:
            await self._release(going)
        if self._is_lost:
            return
        self._subscription.replace(assignment)
        self._cluster.track({tp.topic for tp in assignment})
        coming = [tp for tp in assignment if tp not in owned]
        await self._hooks.assigned(coming)
        if going and self._is_cooperative:
            self.rejoin("partitions were given up for others to take")

    def _assignor(self, name: str | None) -> Assignor:
        for assignor in self._assignors:
            if assignor.name == name:
                return assignor
        raise error_for(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, subject=f"group {self.group_id!r} chose assignor {name!r}"
        )

    async def _counts_of(self, topics: Iterable[str]) -> dict[str, int]:
        """Partition counts of all topics that some member reads; 0 for those that do not exist."""
        names = set(topics)
        self._cluster.track(names)
        if any(name not in self._cluster.metadata.topics for name in names):
            await self._cluster.refresh(names, create=self._settings.boolean("allow.auto.create.topics"))
        return self._count(names)

    def _count(self, topics: Iterable[str]) -> dict[str, int]:
        known = self._cluster.metadata.topics
        return {name: len(known[name].partitions) if name in known else 0 for name in topics}

    # --- heartbeats

    async def _keep_beating(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._beat_ms / 1000):
                    await self._beat_soon.wait()
            except TimeoutError:
                pass
            self._beat_soon.clear()
            if self.generation < 0 or self._is_joining:
                continue
            if self._hooks.idle_ms() > self._poll_limit_ms:
                await self._leave_for_slowness()
                continue
            try:
                await self._beat()
            except ClientClosed:
                return
            except KafkaError as error:
                self.counters.failed_heartbeats += 1
                _log.debug("group %s: heartbeat: %s", self.group_id, error)
                if not self._recover(error):
                    self._give_up(error)

    async def _beat(self) -> None:
        generation = self.generation
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=generation,
            member_id=self.member_id,
            group_instance_id=self._instance_id,
        )
        answer = await self._ask(request, timeout_ms=self._session_ms)
        assert isinstance(answer, HeartbeatResponse), answer
        self.counters.heartbeats += 1
        if generation != self.generation or self._is_joining or not answer.error_code:
            return
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.rejoin("the group rebalances")
        else:
            raise error_for(answer.error_code, subject=f"heartbeat in group {self.group_id!r}")

    async def _leave_for_slowness(self) -> None:
        _log.warning(
            "group %s: no poll for more than max.poll.interval.ms (%d ms), so this member leaves and its "
            "partitions go to others; it joins again at the next poll.  Poll more often, take fewer records "
            "at a time (max.poll.records), or raise max.poll.interval.ms",
            self.group_id,
            self._poll_limit_ms,
        )
        try:
            await self._leave(self._beat_ms, "max.poll.interval.ms exceeded")
        except ClientClosed:
            return
        self._lose(ErrorCode.UNKNOWN_MEMBER_ID)

    # --- inside

    def _lose(self, code: ErrorCode) -> None:
        self._is_lost = True
        self._forget_generation(member_too=code is not ErrorCode.ILLEGAL_GENERATION)
        self.rejoin(f"membership was lost: {code.name}")

    def _give_up(self, error: KafkaError) -> None:
        """Nothing helps: the partitions are lost, and the user decides what comes next."""
        self._is_fenced = error.code is ErrorCode.FENCED_INSTANCE_ID
        self._is_lost = True
        self._forget_generation(member_too=True)
        self._needs_join.clear()
        self._hooks.failed(error)

    def _forget_generation(self, *, member_too: bool) -> None:
        self.generation = -1
        self.is_stable = self.is_leader = False
        if member_too:
            self.member_id = ""

    async def _leave(self, timeout_ms: int, reason: str) -> None:
        """Tells the group; that it did not hear is no reason to fail, for the session runs out."""
        try:
            node = await self._cluster.coordinator(
                CoordinatorKind.GROUP, self.group_id, timeout_ms=timeout_ms
            )
            await self._cluster.ready(node, purpose="coordinator")
            answer = await self._cluster.request(
                node, self._leave_request(node, reason), purpose="coordinator", timeout_ms=max(timeout_ms, 1)
            )
            assert isinstance(answer, LeaveGroupResponse), answer
        except ClientClosed:
            raise
        except KafkaError as error:
            _log.debug("group %s: leaving: %s", self.group_id, error)

    def _leave_request(self, node: int, reason: str) -> Message:
        version = self._cluster.version_of(node, ApiKey.LEAVE_GROUP) or 0
        if version < 3:
            return LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id)
        member = MemberIdentity(member_id=self.member_id, group_instance_id=self._instance_id, reason=reason)
        return LeaveGroupRequest(group_id=self.group_id, members=[member])

    async def _ask(self, request: Message, *, timeout_ms: int) -> Message:
        node = await self._cluster.coordinator(CoordinatorKind.GROUP, self.group_id)
        return await self._cluster.request(node, request, purpose=_PURPOSE, timeout_ms=timeout_ms)
