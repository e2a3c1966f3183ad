"""Admin calls about offsets: of the log, committed by groups, and how to move a group.

Names are used, not topic ids: OffsetFetch and OffsetCommit go up to v9, Fetch up to v12.
"""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from barnabas.base.types import TopicPartition
from barnabas.client.admin_base import answer_of, by_topic
from barnabas.client.admin_groups import GroupCalls
from barnabas.client.admin_types import (
    GroupDescription,
    ListedOffset,
    OffsetChange,
    OffsetReset,
    OffsetSpec,
    ResetWay,
)
from barnabas.client.errors import GroupNotEmpty, KafkaError, NoOffset, UnknownGroup, UnknownTopic, error_for
from barnabas.client.results import Results
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

__all__ = ["OffsetCalls"]

_NAMES_UP_TO: Final = 9  # OffsetFetch and OffsetCommit name topics by id from the next version on
_GROUPS_FROM: Final = 8
_READ_COMMITTED: Final = 1

When = OffsetSpec | int | datetime
"""A role in the log, or a time: milliseconds since 1970 or a datetime (without a zone: local)."""


class OffsetCalls(GroupCalls):
    """Calls about offsets."""

    async def list_offsets(
        self,
        partitions: Mapping[TopicPartition, When],
        *,
        read_committed: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, ListedOffset]:
        """The offset of a role or a time in each partition.

        A time gives the first record at or after it; offset -1 means that there is none.
        With `read_committed`, LATEST is the end of what is not in an open transaction.
        """
        times = {TopicPartition(*partition): _timestamp(when) for partition, when in partitions.items()}
        limit_ms = self._timeout_ms(timeout_ms)

        async def ask(
            node: int, asked: list[TopicPartition]
        ) -> Mapping[TopicPartition, ListedOffset | KafkaError]:
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=_READ_COMMITTED if read_committed else 0,
                topics=[
                    ListOffsetsTopic(
                        name=topic,
                        partitions=[
                            ListOffsetsPartition(
                                partition_index=index, timestamp=times[TopicPartition(topic, index)]
                            )
                            for index in indexes
                        ],
                    )
                    for topic, indexes in by_topic(asked).items()
                ],
                timeout_ms=limit_ms,
            )
            answer = answer_of(await self._cluster.request(node, request), ListOffsetsResponse)
            return {
                (where := TopicPartition(topic.name, found.partition_index)): error_for(
                    found.error_code, subject=str(where)
                )
                if found.error_code
                else ListedOffset(found.offset, found.timestamp, found.leader_epoch)
                for topic in answer.topics
                for found in topic.partitions
            }

        return await self._each_partition(times, ask, timeout_ms)

    async def list_group_offsets(
        self,
        group: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, OffsetAndMetadata | None]:
        """What a group has committed: for some partitions (None where it has not), or all there is.

        With `require_stable` it waits for transactions that are about to commit offsets.
        """
        asked = None if partitions is None else [TopicPartition(*each) for each in partitions]

        async def work(node: int) -> Results[TopicPartition, OffsetAndMetadata | None]:
            await self._cluster.ready(node, purpose="coordinator")
            version = min(self._cluster.version_of(node, ApiKey.OFFSET_FETCH) or 0, _NAMES_UP_TO)
            answer = await self._cluster.request(
                node,
                _offset_fetch(group, asked, require_stable, version),
                purpose="coordinator",
                version_max=_NAMES_UP_TO,
            )
            return Results(_committed(group, answer_of(answer, OffsetFetchResponse)))

        return await self._at_coordinator(group, work, timeout_ms)

    async def alter_group_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, None]:
        """Commits offsets for a group without members; it is made if there is none.

        Raises GroupNotEmpty if it has members: they would go on from where they are and commit over this.
        """
        values = {
            TopicPartition(*partition): value
            if isinstance(value, OffsetAndMetadata)
            else OffsetAndMetadata(value)
            for partition, value in offsets.items()
        }

        async def work(node: int) -> Results[TopicPartition, None]:
            request = OffsetCommitRequest(group_id=group, topics=_commits(values))
            answer = answer_of(
                await self._cluster.request(node, request, purpose="coordinator", version_max=_NAMES_UP_TO),
                OffsetCommitResponse,
            )
            outcomes: dict[TopicPartition, KafkaError | None] = {}
            for topic in answer.topics:
                for found in topic.partitions:
                    where = TopicPartition(topic.name, found.partition_index)
                    if found.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS):
                        raise GroupNotEmpty(f"group {group!r} has members; stop them first")
                    outcomes[where] = (
                        error_for(found.error_code, subject=str(where)) if found.error_code else None
                    )
            _raise_if_moved(outcomes.values())
            return Results(outcomes)

        return await self._at_coordinator(group, work, timeout_ms)

    async def delete_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> Results[TopicPartition, None]:
        """Forgets what a group has committed for partitions of topics that it does not read now."""
        asked = [TopicPartition(*each) for each in partitions]

        async def work(node: int) -> Results[TopicPartition, None]:
            request = OffsetDeleteRequest(
                group_id=group,
                topics=[
                    OffsetDeleteRequestTopic(
                        name=topic,
                        partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes],
                    )
                    for topic, indexes in by_topic(asked).items()
                ],
            )
            answer = answer_of(
                await self._cluster.request(node, request, purpose="coordinator"), OffsetDeleteResponse
            )
            if answer.error_code:
                raise error_for(answer.error_code, subject=f"group {group!r}")
            return Results(
                {
                    (where := TopicPartition(topic.name, found.partition_index)): error_for(
                        found.error_code, subject=str(where)
                    )
                    if found.error_code
                    else None
                    for topic in answer.topics
                    for found in topic.partitions
                }
            )

        return await self._at_coordinator(group, work, timeout_ms)

    async def reset_group_offsets(
        self,
        group: str,
        to: OffsetReset,
        *,
        topics: Iterable[str] = (),
        partitions: Iterable[TopicPartition] = (),
        dry_run: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, OffsetChange]:
        """Moves a group: all partitions it has offsets in, or those of `topics` and `partitions` only.

        With `dry_run` nothing is changed and the result is the plan.  Offsets outside the log become its
        start or end, with a note.  Raises GroupNotEmpty, also in a dry run, while the group has members.
        """
        description = await self._described_or_none(group, timeout_ms)
        if description is not None and description.members:
            count = len(description.members)
            raise GroupNotEmpty(
                f"group {group!r} is {description.state} with {count} members; stop them first"
            )
        committed = await self.list_group_offsets(group, timeout_ms=timeout_ms)
        wanted = await self._chosen(topics, partitions, timeout_ms)
        chosen = wanted or list(committed.succeeded)
        plan = await self._planned(to, chosen, committed.succeeded, timeout_ms)
        if dry_run or not plan.succeeded:
            return plan
        changes = {where: change.after for where, change in plan.succeeded.items()}
        written = await self.alter_group_offsets(group, changes, timeout_ms=timeout_ms)
        return Results(
            {
                where: written.errors.get(where) or plan.errors.get(where) or plan.succeeded[where]
                for where in plan
            }
        )

    async def _described_or_none(self, group: str, timeout_ms: int | None) -> GroupDescription | None:
        try:
            return await self.describe_group(group, timeout_ms=timeout_ms)
        except UnknownGroup:
            return None

    async def _chosen(
        self, topics: Iterable[str], partitions: Iterable[TopicPartition], timeout_ms: int | None
    ) -> list[TopicPartition]:
        """The partitions meant; a topic means all of its partitions.  Raises UnknownTopic."""
        names = list(topics)
        chosen = [TopicPartition(*each) for each in partitions]
        if names:
            await self.start()
            await self._cluster.retry(
                lambda: self._cluster.refresh(names), timeout_ms=self._timeout_ms(timeout_ms)
            )
        for name in names:
            info = self._cluster.metadata.topics.get(name)
            if info is None:
                raise UnknownTopic(f"topic {name!r}: there is none of this name")
            chosen += [TopicPartition(name, part.index) for part in info.partitions]
        return list(dict.fromkeys(chosen))

    async def _planned(
        self,
        to: OffsetReset,
        partitions: list[TopicPartition],
        committed: Mapping[TopicPartition, OffsetAndMetadata | None],
        timeout_ms: int | None,
    ) -> Results[TopicPartition, OffsetChange]:
        starts, ends = await asyncio.gather(
            self.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST), timeout_ms=timeout_ms),
            self.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST), timeout_ms=timeout_ms),
        )
        by_time = await self._by_time(to, partitions, timeout_ms)
        plan: dict[TopicPartition, OffsetChange | KafkaError] = {}
        for where in partitions:
            try:
                stands = committed.get(where)
                plan[where] = _change(
                    where,
                    to,
                    None if stands is None else stands.offset,
                    starts[where].offset,
                    ends[where].offset,
                    None if by_time is None else by_time[where].offset,
                )
            except KafkaError as error:
                plan[where] = error
        return Results(plan)

    async def _by_time(
        self, to: OffsetReset, partitions: list[TopicPartition], timeout_ms: int | None
    ) -> Results[TopicPartition, ListedOffset] | None:
        match to.way:
            case ResetWay.TO_DATETIME:
                time_ms = to.amount
            case ResetWay.BY_DURATION:
                time_ms = self._cluster.clock.now_ms() - to.amount
            case _:
                return None
        return await self.list_offsets(dict.fromkeys(partitions, max(0, time_ms)), timeout_ms=timeout_ms)


def _change(
    where: TopicPartition, to: OffsetReset, before: int | None, start: int, end: int, by_time: int | None
) -> OffsetChange:
    """The plan for one partition.  Raises NoOffset when the way needs a committed offset."""
    match to.way:
        case ResetWay.EARLIEST:
            after = start
        case ResetWay.LATEST:
            after = end
        case ResetWay.CURRENT:
            after = end if before is None else before
        case ResetWay.TO_OFFSET:
            after = to.amount
        case ResetWay.SHIFT_BY:
            if before is None:
                raise NoOffset(f"{where}: there is no committed offset to shift")
            after = before + to.amount
        case ResetWay.TO_DATETIME | ResetWay.BY_DURATION:
            assert by_time is not None, "times were looked up"
            after = end if by_time < 0 else by_time
    if after < start:
        return OffsetChange(where, before, start, start, end, f"{after} is before the start of the log")
    if after > end:
        return OffsetChange(where, before, end, start, end, f"{after} is past the end of the log")
    return OffsetChange(where, before, after, start, end)


def _timestamp(when: When) -> int:
    return round(when.timestamp() * 1000) if isinstance(when, datetime) else int(when)


def _offset_fetch(
    group: str, partitions: list[TopicPartition] | None, require_stable: bool, version: int
) -> OffsetFetchRequest:
    topics = None if partitions is None else by_topic(partitions)
    stable = require_stable and version >= 7
    if version < _GROUPS_FROM:
        return OffsetFetchRequest(
            group_id=group,
            topics=None
            if topics is None
            else [
                OffsetFetchRequestTopic(name=name, partition_indexes=some) for name, some in topics.items()
            ],
            require_stable=stable,
        )
    wanted = OffsetFetchRequestGroup(
        group_id=group,
        topics=None
        if topics is None
        else [OffsetFetchRequestTopics(name=name, partition_indexes=some) for name, some in topics.items()],
    )
    return OffsetFetchRequest(groups=[wanted], require_stable=stable)


def _committed(
    group: str, answer: OffsetFetchResponse
) -> dict[TopicPartition, OffsetAndMetadata | KafkaError | None]:
    """The answer of either layout.  Raises what holds for the whole group, and what deserves another try."""
    found = answer.groups[0] if answer.groups else answer
    if found.error_code:
        raise error_for(found.error_code, subject=f"group {group!r}")
    outcomes: dict[TopicPartition, OffsetAndMetadata | KafkaError | None] = {}
    for topic in found.topics:
        for part in topic.partitions:
            where = TopicPartition(topic.name, part.partition_index)
            if part.error_code:
                outcomes[where] = error_for(part.error_code, subject=str(where))
            elif part.committed_offset < 0:
                outcomes[where] = None
            else:
                outcomes[where] = OffsetAndMetadata(
                    part.committed_offset, part.metadata or "", part.committed_leader_epoch
                )
    _raise_if_moved(outcomes.values())
    return outcomes


def _raise_if_moved(outcomes: Iterable[object]) -> None:
    """Raises an error that says "ask again": then none of the request took effect."""
    for outcome in outcomes:
        if isinstance(outcome, KafkaError) and outcome.retriable and not outcome.refreshes_metadata:
            raise outcome


def _commits(values: Mapping[TopicPartition, OffsetAndMetadata]) -> list[OffsetCommitRequestTopic]:
    return [
        OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=(value := values[TopicPartition(topic, index)]).offset,
                    committed_leader_epoch=value.leader_epoch,
                    committed_metadata=value.metadata,
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(values).items()
    ]
