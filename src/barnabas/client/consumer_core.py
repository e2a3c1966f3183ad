"""The consumer behind both faces: everything that runs on the loop, and what the polling side shares with it.

The polling side (a user's thread, or a coroutine on the same loop) uses these without crossing over:
`queue` (taking records), `errands` (work that must happen inside poll), `faults` (errors to raise from poll),
`consumed` and the poll marks.  Everything else is called on the loop.

K1  errands run in order, inside poll, before records are taken; the loop waits for each
K2  an error is raised from one poll; after that the partition is tried again
"""

import asyncio
import logging
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeVar

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.assignors import assignors_named
from barnabas.client.cluster import Cluster
from barnabas.client.committer import Committer, Offsets
from barnabas.client.config import ClientSettings
from barnabas.client.errors import ClientClosed, KafkaError, RequestTimedOut, error_for
from barnabas.client.fetched import Fetched, FetchQueue
from barnabas.client.fetcher import Fetcher
from barnabas.client.group_member import GroupMember, Release
from barnabas.client.metadata import Metadata
from barnabas.client.offsets import OffsetAndTimestamp, committed_offsets, list_offsets
from barnabas.client.positions import Positions
from barnabas.client.subscription import (
    UNKNOWN,
    OffsetAndMetadata,
    PartitionState,
    Reset,
    Stage,
    Subscription,
)
from barnabas.protocol.codes import ErrorCode

__all__ = ["ConsumerCore", "Errand", "RebalanceListener"]

_log: Final = logging.getLogger("barnabas.client.consumer")

Result = TypeVar("Result")
_WAITING_OK: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})


class RebalanceListener(Protocol):
    """Told inside poll when partitions come and go.  A listener may have any of the three methods; with
    `barnabas.aio` they may be coroutines."""

    def on_assigned(self, partitions: list[TopicPartition]) -> object:
        """These came.  Positions may be sought here; else they start where the group committed."""

    def on_revoked(self, partitions: list[TopicPartition]) -> object:
        """These go, and are still this member's: offsets may be committed here."""

    def on_lost(self, partitions: list[TopicPartition]) -> object:
        """These are another's by now.  Without this method `on_revoked` is called."""


@dataclass(slots=True, eq=False)
class Errand:
    """Something to do inside poll; `done` takes the result, or the error, back to the loop."""

    work: Callable[[], object]
    done: Callable[[object, BaseException | None], object]


class ConsumerCore:
    """A consumer without a face.  `post` runs a callback on the loop from anywhere; `signal` rouses poll."""

    def __init__(
        self,
        settings: ClientSettings,
        *,
        post: Callable[..., object],
        signal: Callable[[], None],
    ) -> None:
        self.settings: Final = settings
        self.cluster: Final = Cluster(settings)
        self.subscription: Final = Subscription()
        self.errands: Final[deque[Errand]] = deque()
        self.faults: Final[deque[tuple[KafkaError, PartitionState | None]]] = deque()
        self.listeners: tuple[object, ...] = ()
        """Told in this order when partitions come, and in the opposite one when they go."""
        self.is_polling = False
        self.polled_at_ms = self.cluster.clock.monotonic_ms()
        self.unread: Callable[[], Iterable[tuple[TopicPartition, int]]] = lambda: ()
        """What poll returned and the user has not seen yet, as an iteration has: (partition, offset)."""
        self._post = post
        self._signal = signal
        self._assignors = assignors_named(settings.instances("partition.assignment.strategy"))
        self._group_id = settings.optional_string("group.id")
        self.auto_commits = settings.boolean("enable.auto.commit") and self._group_id is not None
        self._timeout_ms = settings.integer("default.api.timeout.ms")
        self._read_committed = settings.string("isolation.level") == "read_committed"
        self._changed = asyncio.Event()
        self._seeker: asyncio.Task[None] | None = None
        self._is_closed = False
        self.queue: Final = FetchQueue(
            check_crc=settings.boolean("check.crcs"),
            on_room=self._on_room,
            on_error=lambda fetched: post(self._on_fetch_error, fetched),
            on_unreadable=lambda state: post(self._on_unreadable, state),
        )
        self.fetcher: Final = Fetcher(
            self.cluster, settings, self.subscription, self.queue, on_data=self._signal
        )
        self.positions: Final = Positions(
            self.cluster,
            settings,
            self.subscription,
            on_ready=self._on_ready,
            on_error=self._on_partition_error,
        )
        self.committer: Final = Committer(
            self.cluster, self._group_id, self.subscription, timeout_ms=self._timeout_ms
        )
        self.member: GroupMember | None = None
        self.subscription.on_change = self._on_partitions

    @property
    def reads_committed(self) -> bool:
        return self._read_committed

    # --- life

    async def start(self) -> None:
        await self.cluster.start()
        self.cluster.on_change(self._on_metadata)
        self.positions.start()

    async def close(self, timeout_ms: int, *, leave: bool = True) -> None:
        """Leaves the group and ends everything; commits are the face's business before.  May be repeated."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._seeker is not None:
            self._seeker.cancel()
        await self.positions.close()
        await self.fetcher.close()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self.committer.drain()
                if self.member is not None and leave:
                    await self.member.stop(timeout_ms=timeout_ms, reason="the consumer was closed")
        except TimeoutError:
            _log.debug("closing did not finish within %d ms", timeout_ms)
        self.committer.cancel()
        await self.cluster.close()

    # --- what is read

    async def subscribe(
        self, topics: Collection[str], pattern: re.Pattern[str] | None, listeners: tuple[object, ...]
    ) -> None:
        member = self._ensure_member()
        if pattern is not None:
            self.subscription.subscribe_pattern(pattern)
            self.cluster.track(None)
            await self.cluster.refresh_all()
            self._match(self.cluster.metadata)
        else:
            self.subscription.subscribe(topics)
            self.cluster.track(topics)
        self.listeners = listeners
        if not topics and pattern is None:
            await self.unsubscribe()
            return
        self._seek_missing()
        member.start()

    async def unsubscribe(self) -> None:
        """Leaves the group; the face has told the listener."""
        if self.member is not None:
            await self.member.stop(timeout_ms=self._timeout_ms, reason="the consumer unsubscribed")
        self.committer.forget(list(self.subscription.partitions))
        self.subscription.unsubscribe()
        self.cluster.untrack(None)

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        wanted = [TopicPartition(*tp) for tp in partitions]
        self.subscription.assign(wanted)
        self.cluster.track({tp.topic for tp in wanted})
        self._seek_missing()

    def _ensure_member(self) -> GroupMember:
        if self._group_id is None:
            raise Misuse("subscribing needs group.id; without a group, assign partitions by hand")
        if self.member is None:
            self.member = GroupMember(self.cluster, self.settings, self.subscription, self._assignors, self)
            self.committer.member = self.member
        return self.member

    # --- positions

    async def seek(self, tp: TopicPartition, to: int | OffsetAndMetadata) -> None:
        state = self.subscription.state(tp)
        at = OffsetAndMetadata(to) if isinstance(to, int) else to
        state.seek(at.offset, epoch=at.leader_epoch, validate=True)
        self.positions.adopt_epoch(state)
        self._on_partitions()

    async def rewind(self, timeout_ms: int) -> None:
        """To what the group committed last, else to where the assignment began."""
        committed = await self.committed(list(self.subscription.partitions), timeout_ms)
        for tp, state in self.subscription.partitions.items():
            if (at := committed.get(tp)) is not None:
                state.seek(at.offset, epoch=at.leader_epoch, validate=True)
                self.positions.adopt_epoch(state)
            elif state.origin != UNKNOWN:
                state.seek(state.origin)
        self._on_partitions()

    async def seek_to_time(self, partitions: Collection[TopicPartition], timestamp: int) -> None:
        """To the first record not before `timestamp` (ms), or EARLIEST or LATEST; all partitions if none."""
        for tp in partitions or list(self.subscription.partitions):
            self.subscription.state(tp).want_reset(Reset(timestamp))
        self._on_partitions()

    async def position(self, tp: TopicPartition, timeout_ms: int) -> int:
        state = self.subscription.state(tp)
        what = f"the position of {tp.topic}-{tp.partition}"
        await self._until(lambda: state.has_position or state.has_fault, timeout_ms, what)
        if not state.has_position:
            self.raise_fault()
        return state.position

    async def pause(self, partitions: Collection[TopicPartition], paused: bool) -> None:
        for tp in partitions or list(self.subscription.partitions):
            self.subscription.state(tp).pause(paused)
        self._on_partitions()

    async def committed(
        self, partitions: Collection[TopicPartition], timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        if self._group_id is None:
            raise Misuse("committed offsets need group.id")
        return await committed_offsets(self.cluster, self._group_id, partitions, timeout_ms=timeout_ms)

    async def offsets_at(
        self, wanted: Mapping[TopicPartition, int], timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        return await list_offsets(
            self.cluster, wanted, timeout_ms=timeout_ms, read_committed=self._read_committed
        )

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a commit without offsets commits: behind all that the user has seen.  On the polling side."""
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        for tp, state in self.subscription.partitions.items():
            if state.has_position and state.position >= 0:
                found[tp] = OffsetAndMetadata(state.position, "", state.position_epoch)
        seen: set[TopicPartition] = set()
        for tp, offset in self.unread():
            if tp in found and tp not in seen:
                found[tp] = OffsetAndMetadata(offset, "", found[tp].leader_epoch)
                seen.add(tp)
        return found

    def lag(self) -> dict[TopicPartition, int | None]:
        """Records between the position and the end of the log at the last fetch; None before the first."""
        lags: dict[TopicPartition, int | None] = {}
        for tp, state in self.subscription.partitions.items():
            end = state.end_offset(self._read_committed)
            known = end is not None and state.has_position
            lags[tp] = max(0, end - state.position) if known and end is not None else None
        return lags

    def commit_changed_soon(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """The automatic commit.  On the polling side."""
        self._post(self._auto_commit, positions)

    def _auto_commit(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        # A member between two generations commits when it gives up its partitions, or has lost them.
        if self.member is None or not self.subscription.is_by_group or self.member.generation >= 0:
            self.committer.commit_changed(positions)

    async def commit_last(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """The automatic commit when the consumer gives up its partitions for good."""
        await self.committer.drain()
        if self.member is None or not self.subscription.is_by_group or self.member.generation >= 0:
            await self.committer.commit(self.committer.changed(positions))

    def commit_soon(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        callback: Callable[[Offsets, KafkaError | None], object] | None,
    ) -> None:
        """Commits without anybody waiting; the callback is called inside a later poll."""
        if callback is None:
            self.committer.commit_soon(offsets)
            return

        def told(committed: Offsets, error: KafkaError | None) -> None:
            self.errands.append(Errand(lambda: callback(committed, error), lambda result, failure: None))
            self._signal()

        self.committer.commit_soon(offsets, told)

    @staticmethod
    def log_lost_commit(error: KafkaError) -> None:
        _log.warning("the last offsets were not committed: %s", error)

    # --- what poll meets

    def begin_poll(self, now_ms: int) -> None:
        self.is_polling = True
        self.polled_at_ms = now_ms

    def end_poll(self, now_ms: int) -> None:
        self.polled_at_ms = now_ms
        self.is_polling = False

    def idle_ms(self) -> int:
        return 0 if self.is_polling else self.cluster.clock.monotonic_ms() - self.polled_at_ms

    def raise_fault(self) -> None:
        """Raises the oldest error; what it was about is tried again after that.  On the polling side."""
        if (error := self._take_fault()) is not None:
            raise error

    def _take_fault(self) -> KafkaError | None:
        while self.faults:
            error, state = self.faults.popleft()
            if state is None or (state.has_fault and not state.is_taken_away):
                self._post(self._after_fault, state)
                return error
        return None

    def _after_fault(self, state: PartitionState | None) -> None:
        if state is not None:
            state.has_fault = False
        elif self.member is not None and self.subscription.is_by_group:
            self.member.rejoin("the user polls again after an error")
        self._on_partitions()

    async def in_poll(self, work: Callable[[], Result]) -> Result:
        """The result of `work`, which the polling side runs (K1)."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[object] = loop.create_future()

        def settle(result: object, error: BaseException | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

        errand = Errand(work, lambda result, error: self._post(settle, result, error))
        self.errands.append(errand)
        self._signal()
        try:
            return await future  # type: ignore[return-value]  # it is what `work` returned
        except asyncio.CancelledError:
            if errand in self.errands:
                self.errands.remove(errand)
            raise

    # --- GroupHooks

    async def release(
        self, partitions: list[TopicPartition], why: Callable[[], Release], take_away: Callable[[], None]
    ) -> None:
        for tp in partitions:
            self.subscription.state(tp).revoke()
        # From here on the user gets no record of them; that it polls says it is through with those it got.
        positions = await self.in_poll(self.consumed)
        if why() is Release.REVOKED and self.auto_commits:
            await self._commit_before_release(
                {tp: at for tp, at in positions.items() if tp in set(partitions)}
            )
        if partitions:
            await self._tell_gone(partitions, why())
        self.committer.forget(partitions)
        take_away()

    async def _commit_before_release(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        await self.committer.drain()
        try:
            await self.committer.commit(self.committer.changed(positions))
        except KafkaError as error:
            _log.warning("offsets were not committed before partitions went: %s", error)

    async def _tell_gone(self, partitions: list[TopicPartition], why: Release) -> None:
        for told in self.told("on_revoked" if why is Release.REVOKED else "on_lost"):
            await self.in_poll(partial(told, partitions))

    async def assigned(self, partitions: list[TopicPartition]) -> None:
        for told in self.told("on_assigned"):
            await self.in_poll(partial(told, partitions))

    def told(self, name: str) -> list[Callable[[list[TopicPartition]], object]]:
        """The methods of the listeners for an event, in order; without on_lost, on_revoked hears of it."""
        found = []
        for listener in self.listeners if name == "on_assigned" else reversed(self.listeners):
            method = getattr(listener, name, None)
            if method is None and name == "on_lost":
                method = getattr(listener, "on_revoked", None)
            if method is not None:
                found.append(method)
        return found

    def failed(self, error: KafkaError) -> None:
        self._add_fault(error, None)

    # --- events, on the loop

    def _on_room(self) -> None:
        self.queue.wants_room = False
        self._post(self.fetcher.wake)

    def _on_partitions(self) -> None:
        self.queue.has_changed = True
        if any(state.stage is not Stage.FETCH for state in self.subscription.partitions.values()):
            self.positions.wake()
        self.fetcher.wake()
        self._changed.set()
        self._signal()

    def _on_ready(self) -> None:
        self.queue.has_changed = True
        self.fetcher.wake()
        self._changed.set()
        self._signal()

    def _on_fetch_error(self, fetched: Fetched) -> None:
        state = fetched.state
        if fetched.is_void:
            return
        if fetched.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            where = f"offset {fetched.fetch_offset} is outside the log"
            self.positions.reset(state, where)
            self._on_partitions()
            return
        topic, partition = state.topic_partition
        self._on_partition_error(
            error_for(fetched.error_code, subject=f"fetching {topic}-{partition}"), state
        )

    def read_again(self, state: PartitionState) -> None:
        """Fetches anew from the position; what is queued was made void.  On the polling side."""
        self._post(self._on_unreadable, state)

    def _on_unreadable(self, state: PartitionState) -> None:
        """Fetches anew from the position, after the user was told that what is there cannot be read."""
        if not state.is_taken_away and state.stage is Stage.FETCH:
            state.seek(state.position, epoch=state.position_epoch)
            self._on_partitions()

    def _on_partition_error(self, error: KafkaError, state: PartitionState) -> None:
        state.has_fault = True
        self._add_fault(error, state)

    def _add_fault(self, error: KafkaError, state: PartitionState | None) -> None:
        self.faults.append((error, state))
        self._changed.set()
        self._signal()

    def _on_metadata(self, metadata: Metadata) -> None:
        if self.subscription.pattern is not None and self._match(metadata) and self.member is not None:
            self.member.rejoin("other topics match the pattern")
        if self.member is not None and self.subscription.is_by_group:
            self.member.metadata_changed()
        self.positions.metadata_changed(metadata)
        if any(state.stage is not Stage.FETCH for state in self.subscription.partitions.values()):
            self.positions.wake()
        self.fetcher.wake()

    def _match(self, metadata: Metadata) -> bool:
        hidden = self.settings.boolean("exclude.internal.topics")
        return self.subscription.match(
            name for name, topic in metadata.topics.items() if not (hidden and topic.is_internal)
        )

    # --- topics that are not there yet

    def _seek_missing(self) -> None:
        if self._seeker is None or self._seeker.done():
            self._seeker = asyncio.create_task(self._find_missing(), name="barnabas missing topics")

    async def _find_missing(self) -> None:
        """Asks for topics until all are known; refusals that will not pass are raised from poll."""
        backoff = self.cluster.retry_backoff()
        create = self.settings.boolean("allow.auto.create.topics")
        refused: set[str] = set()
        while not self._is_closed:
            missing = self._wanted_topics() - self.cluster.metadata.topics.keys() - refused
            if not missing:
                return
            try:
                await self.cluster.refresh(missing, create=create)
            except ClientClosed:
                return
            except KafkaError as error:
                _log.debug("topics %s: %s", sorted(missing), error)
            for name in missing:
                code = self.cluster.metadata.errors.get(name)
                if code is not None and code not in _WAITING_OK and not code.retriable:
                    refused.add(name)
                    self._add_fault(error_for(code, subject=f"topic {name!r}"), None)
            if missing - self.cluster.metadata.topics.keys() - refused:
                await asyncio.sleep(backoff.next_ms() / 1000)

    def _wanted_topics(self) -> set[str]:
        return set(self.subscription.topics) | {tp.topic for tp in self.subscription.partitions}

    async def _until(self, predicate: Callable[[], bool], timeout_ms: int, what: str) -> None:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while not predicate():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError as error:
            raise RequestTimedOut(f"{what} was not known within {timeout_ms} ms") from error
