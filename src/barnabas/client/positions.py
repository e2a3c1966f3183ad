"""Gives every partition a position, and looks after it when leaders change.

    START      the group's committed offset, else the reset rule
    RESET      the offset of a time, of the start or of the end of the log
    VALIDATE   after a leader change: does the new leader's log still have what was read (KIP-320)?

Q1  an answer counts only for the session of the partition in which it was asked for
Q2  nothing here blocks the user: partitions without a position are not fetched, and poll goes on with others
Q3  what the user must decide (no offset and no rule, truncation without a rule) is raised from poll

One task, on the client's loop.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from typing import Final

from barnabas.base.types import TopicPartition
from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientSettings
from barnabas.client.errors import ClientClosed, KafkaError, NoOffset, OffsetOutOfRange
from barnabas.client.metadata import Metadata, PartitionInfo
from barnabas.client.offsets import (
    EARLIEST,
    LATEST,
    EpochEnd,
    Outcome,
    ask_epoch_ends,
    ask_offsets,
    committed_offsets,
)
from barnabas.client.subscription import UNKNOWN, PartitionState, Reset, Stage, Subscription
from barnabas.protocol.api import ApiKey

__all__ = ["Positions", "reset_rule"]

_log: Final = logging.getLogger("barnabas.client.positions")

_DURATION: Final = re.compile(
    r"P(?:(?P<D>\d+)D)?(?:T(?:(?P<H>\d+)H)?(?:(?P<M>\d+)M)?(?:(?P<S>\d+(?:\.\d+)?)S)?)?"
)
_UNIT_MS: Final = {"D": 86_400_000, "H": 3_600_000, "M": 60_000, "S": 1_000}


def reset_rule(settings: ClientSettings, now_ms: int) -> Reset | None:
    """What auto.offset.reset asks for, None for an error."""
    rule = settings.string("auto.offset.reset")
    match rule:
        case "earliest":
            return Reset(EARLIEST)
        case "latest":
            return Reset(LATEST)
        case "none":
            return None
    found = _DURATION.fullmatch(rule.removeprefix("by_duration:"))
    assert found is not None, "the setting was checked when it was given"
    back_ms = sum(float(number) * _UNIT_MS[unit] for unit, number in found.groupdict().items() if number)
    return Reset(max(0, now_ms - int(back_ms)))


class Positions:
    """Finds positions for the partitions of a subscription."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ClientSettings,
        subscription: Subscription,
        *,
        on_ready: Callable[[], None],
        on_error: Callable[[KafkaError, PartitionState], None],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._subscription = subscription
        self._on_ready = on_ready
        self._on_error = on_error
        self._group = settings.optional_string("group.id")
        self._read_committed = settings.string("isolation.level") == "read_committed"
        self._timeout_ms = settings.integer("default.api.timeout.ms")
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="barnabas positions")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def wake(self) -> None:
        """Partitions were added, or lost their position."""
        self._wanted.set()

    def metadata_changed(self, metadata: Metadata) -> None:
        """Positions read from an older leader are checked with the new one before more is fetched."""
        for state in self._subscription.partitions.values():
            info = _info(metadata, state.topic_partition)
            if info is None or not info.has_leader or info.leader_epoch <= state.leader_epoch:
                continue
            if state.leader_epoch == UNKNOWN or state.position_epoch == UNKNOWN or not state.has_position:
                state.leader_epoch = info.leader_epoch
            else:
                state.want_validation()
                self._wanted.set()

    def reset(self, state: PartitionState, why: str) -> None:
        """Follows auto.offset.reset, or tells the user that there is no rule to follow."""
        rule = reset_rule(self._settings, self._cluster.clock.now_ms())
        if rule is None:
            topic, partition = state.topic_partition
            text = f"{topic}-{partition}: {why}, and auto.offset.reset is none"
            error = OffsetOutOfRange(text) if state.has_position else NoOffset(text)
            self._on_error(error, state)
            return
        _log.debug("%s: %s; resetting", state, why)
        state.want_reset(rule)
        self._wanted.set()

    # --- the task

    async def _run(self) -> None:
        backoff = self._cluster.retry_backoff()
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                done = await self._round()
            except ClientClosed:
                return
            except KafkaError as error:
                _log.debug("positions: %s", error)
                if not error.retriable:
                    for state in self._open(Stage.START):
                        self._on_error(error, state)
                done = False
            self._on_ready()
            if done:
                backoff.reset()
            elif any(self._open(stage) for stage in (Stage.START, Stage.RESET, Stage.VALIDATE)):
                await self._pause(backoff.next_ms() / 1000)

    async def _pause(self, seconds: float) -> None:
        """Waits before the next round, unless something changes for the better."""
        try:
            async with asyncio.timeout(seconds):
                await self._wanted.wait()
        except TimeoutError:
            self._wanted.set()

    def _open(self, stage: Stage) -> list[PartitionState]:
        """Partitions in this stage that nothing but an answer is missing for."""
        return [
            state
            for state in self._subscription.in_stage(stage)
            if not state.has_fault and not state.is_revoking
        ]

    async def _round(self) -> bool:
        """Asks for everything that is missing; true when all of it was answered."""
        done = True
        if starting := self._open(Stage.START):
            await self._start(starting)
        if resetting := self._open(Stage.RESET):
            done &= await self._look_up(resetting)
        if doubtful := self._open(Stage.VALIDATE):
            done &= await self._validate(doubtful)
        return done

    async def _start(self, states: list[PartitionState]) -> None:
        sessions = {state: state.session for state in states}
        if self._group is None:
            committed = {}
        else:
            committed = await committed_offsets(
                self._cluster,
                self._group,
                [state.topic_partition for state in states],
                timeout_ms=self._timeout_ms,
                require_stable=self._read_committed,
            )
        for state in states:
            if state.session != sessions[state] or state.stage is not Stage.START:
                continue
            found = committed.get(state.topic_partition)
            if found is None:
                self.reset(state, "no offset is committed")
            else:
                state.seek(found.offset, epoch=found.leader_epoch, validate=True)
                self.adopt_epoch(state)

    async def _look_up(self, states: list[PartitionState]) -> bool:
        wanted = {state.topic_partition: state.reset.timestamp for state in states if state.reset is not None}
        sessions = {state: state.session for state in states}
        outcome = await ask_offsets(self._cluster, wanted, read_committed=self._read_committed)
        late = [tp for tp, found in outcome.found.items() if found.offset == UNKNOWN]
        if late:  # no record is as late as the time asked for: the next one to come will be
            ends = await ask_offsets(
                self._cluster, dict.fromkeys(late, LATEST), read_committed=self._read_committed
            )
            outcome.found.update(ends.found)
            outcome.failed.update(ends.failed)
        for state in states:
            if state.session != sessions[state] or state.stage is not Stage.RESET:
                continue
            found = outcome.found.get(state.topic_partition)
            if found is not None and found.offset != UNKNOWN:
                state.seek(found.offset)
                self.adopt_epoch(state)
        return self._report(outcome.failed)

    async def _validate(self, states: list[PartitionState]) -> bool:
        askable: dict[TopicPartition, PartitionState] = {}
        for state in states:
            node = self._cluster.metadata.leader(*state.topic_partition)
            if node is not None:
                await self._cluster.ready(node)
            if state.position_epoch == UNKNOWN or (
                node is not None and self._cluster.version_of(node, ApiKey.OFFSET_FOR_LEADER_EPOCH) is None
            ):
                state.validated(self._current_epoch(state))
            else:
                askable[state.topic_partition] = state
        sessions = {state: state.session for state in askable.values()}
        epochs = {tp: state.position_epoch for tp, state in askable.items()}
        leaders = {tp: self._current_epoch(state) for tp, state in askable.items()}
        outcome: Outcome[EpochEnd] = await ask_epoch_ends(self._cluster, epochs)
        for tp, end in outcome.found.items():
            state = askable[tp]
            if state.session == sessions[state] and state.stage is Stage.VALIDATE:
                self._judge(state, end, leaders[tp])
        return self._report(outcome.failed)

    def _judge(self, state: PartitionState, end: EpochEnd, leader_epoch: int) -> None:
        """Compares a position with where its epoch ended in the leader's log."""
        state.leader_epoch = leader_epoch
        if end.end_offset == UNKNOWN:
            self.reset(state, f"the log does not know epoch {state.position_epoch} any more")
        elif end.end_offset < state.position or end.leader_epoch < state.position_epoch:
            self._truncated(state, end)
        else:
            state.validated(leader_epoch)

    def _truncated(self, state: PartitionState, end: EpochEnd) -> None:
        topic, partition = state.topic_partition
        text = (
            f"{topic}-{partition}: the log was truncated to offset {end.end_offset}, "
            f"below the position {state.position}"
        )
        target = min(end.end_offset, state.position)
        if reset_rule(self._settings, 0) is None:
            self._on_error(OffsetOutOfRange(text), state)
            return
        _log.warning("%s; going on from there", text)
        state.seek(target, epoch=end.leader_epoch)

    def _report(self, failed: Mapping[TopicPartition, KafkaError]) -> bool:
        """Tells the user of errors that will not pass by themselves; true when nothing failed."""
        for tp, error in failed.items():
            state = self._subscription.partitions.get(tp)
            if not error.retriable and state is not None:
                self._on_error(error, state)
        return not failed

    def _current_epoch(self, state: PartitionState) -> int:
        info = _info(self._cluster.metadata, state.topic_partition)
        return UNKNOWN if info is None else info.leader_epoch

    def adopt_epoch(self, state: PartitionState) -> None:
        """The position is new, so it needs no comparison with the leader that there is now."""
        state.leader_epoch = self._current_epoch(state)


def _info(metadata: Metadata, tp: TopicPartition) -> PartitionInfo | None:
    topic = metadata.topics.get(tp.topic)
    if topic is None or tp.partition >= len(topic.partitions):
        return None
    return topic.partitions[tp.partition]
