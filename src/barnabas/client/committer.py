"""Commits of a consumer: one after the other, in the order asked for.

C1  a later commit is sent after an earlier one was answered, so it cannot be undone by it
C2  a member that has lost its generation commits nothing: its partitions may be another's by now
C3  an automatic commit sends only positions that changed since the last commit
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.cluster import Cluster
from barnabas.client.errors import CommitFailed, KafkaError
from barnabas.client.group_member import GroupMember
from barnabas.client.offsets import GroupIdentity, commit_offsets
from barnabas.client.subscription import OffsetAndMetadata, Subscription

__all__ = ["CommitCounters", "Committer", "Offsets"]

_log: Final = logging.getLogger("barnabas.client.commit")

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


@dataclass(slots=True)
class CommitCounters:
    """What `metrics` shows of commits."""

    commits: int = 0
    failed: int = 0


class Committer:
    """Sends commits in the name of the member, or of the bare group when partitions were assigned by hand."""

    def __init__(
        self, cluster: Cluster, group_id: str | None, subscription: Subscription, *, timeout_ms: int
    ) -> None:
        self.member: GroupMember | None = None
        self.counters = CommitCounters()
        self._cluster = cluster
        self._group_id = group_id
        self._subscription = subscription
        self._timeout_ms = timeout_ms
        self._turn = asyncio.Lock()
        self._last: dict[TopicPartition, OffsetAndMetadata] = {}
        self._pending: set[asyncio.Task[None]] = set()

    async def commit(self, offsets: Offsets, *, timeout_ms: int | None = None) -> None:
        """Returns when the offsets are committed.  Raises CommitFailed, RebalanceInProgress, KafkaError."""
        limit_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        async with self._turn:
            try:
                await commit_offsets(self._cluster, self.identity(), offsets, timeout_ms=limit_ms)
            except KafkaError as error:
                self.counters.failed += 1
                if self.member is not None and self._subscription.is_by_group:
                    self.member.committing_failed(error)
                raise
            self.counters.commits += 1
            self._last.update(offsets)

    def commit_soon(
        self, offsets: Offsets, told: Callable[[Offsets, KafkaError | None], None] | None = None
    ) -> None:
        """Commits without anybody waiting; `told` hears how it went, else a failure is logged."""
        task = asyncio.create_task(self._commit_quietly(offsets, told), name="barnabas commit")
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)

    def commit_changed(self, positions: Offsets) -> None:
        """The automatic commit: what changed, without waiting."""
        if changed := self.changed(positions):
            self.commit_soon(changed)

    def changed(self, positions: Offsets) -> dict[TopicPartition, OffsetAndMetadata]:
        """Those of the positions that are not the last ones committed."""
        return {tp: at for tp, at in positions.items() if self._last.get(tp) != at}

    def forget(self, partitions: list[TopicPartition]) -> None:
        """Partitions that went: another member commits for them from now on."""
        for tp in partitions:
            self._last.pop(tp, None)

    async def drain(self) -> None:
        """Returns when every commit asked for so far has ended."""
        while self._pending:
            await asyncio.gather(*self._pending, return_exceptions=True)

    def cancel(self) -> None:
        for task in self._pending:
            task.cancel()

    async def _commit_quietly(
        self, offsets: Offsets, told: Callable[[Offsets, KafkaError | None], None] | None
    ) -> None:
        error: KafkaError | None = None
        try:
            await self.commit(offsets)
        except KafkaError as failure:
            error = failure
        if told is not None:
            told(offsets, error)
        elif error is not None:
            _log.warning("offsets were not committed: %s", error)

    def identity(self) -> GroupIdentity:
        """In whose name is committed.  Raises CommitFailed outside of the group, Misuse without one."""
        if self._group_id is None:
            raise Misuse("committing needs group.id")
        if self.member is None or not self._subscription.is_by_group:
            return GroupIdentity(self._group_id)
        if self.member.generation < 0:
            raise CommitFailed(
                f"this consumer is no member of group {self._group_id!r} at the moment, so nothing was "
                "committed: its partitions may be another's.  Poll, and it joins again"
            )
        return self.member.identity
