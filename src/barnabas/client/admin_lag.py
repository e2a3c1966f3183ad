"""How far a group is behind: in messages, and in seconds by the age of the oldest record it has not read.

The age comes from the record itself, so it is right for slow topics too: a group that is one record behind
for an hour is an hour late.  Reading it costs one small fetch per partition that is behind.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from barnabas.base.types import TopicPartition
from barnabas.client.admin_base import answer_of
from barnabas.client.admin_offsets import OffsetCalls
from barnabas.client.admin_types import GroupDescription, GroupLag, ListedOffset, OffsetSpec, PartitionLag
from barnabas.client.errors import KafkaError
from barnabas.client.results import Results
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

__all__ = ["LagCalls"]

_NAMES_UP_TO: Final = 12  # Fetch names topics by id from the next version on
_FETCH_BYTES: Final = 1  # a broker gives one whole batch however little is asked for
_AT_ONCE: Final = 32


class LagCalls(OffsetCalls):
    """Calls about lag."""

    async def group_lags(
        self, groups: Iterable[str], *, seconds: bool = True, timeout_ms: int | None = None
    ) -> Results[str, GroupLag]:
        """How far groups are behind; without `seconds` no record is read."""
        described = await self.describe_groups(groups, timeout_ms=timeout_ms)
        outcomes: dict[str, GroupLag | KafkaError] = dict(described.errors)
        for name, description in described.succeeded.items():
            try:
                outcomes[name] = await self._lag_of(description, seconds, timeout_ms)
            except KafkaError as error:
                outcomes[name] = error
        return Results({name: outcomes[name] for name in described})

    async def group_lag(self, group: str, *, seconds: bool = True, timeout_ms: int | None = None) -> GroupLag:
        """How far one group is behind.  Raises UnknownGroup."""
        return (await self.group_lags([group], seconds=seconds, timeout_ms=timeout_ms))[group]

    async def _lag_of(self, group: GroupDescription, seconds: bool, timeout_ms: int | None) -> GroupLag:
        committed = (await self.list_group_offsets(group.id, timeout_ms=timeout_ms)).succeeded
        assigned = {partition for member in group.members for partition in member.assignment}
        partitions = sorted(set(committed) | assigned)
        starts, ends = await asyncio.gather(
            self.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST), timeout_ms=timeout_ms),
            self.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST), timeout_ms=timeout_ms),
        )
        there = [where for where in partitions if where not in starts.errors and where not in ends.errors]
        limit = asyncio.Semaphore(_AT_ONCE)

        async def one(where: TopicPartition) -> PartitionLag:
            async with limit:
                return await self._partition_lag(
                    where, group, committed.get(where), starts[where], ends[where], seconds
                )

        return GroupLag(group, tuple(await asyncio.gather(*(one(where) for where in there))))

    async def _partition_lag(
        self,
        where: TopicPartition,
        group: GroupDescription,
        committed: OffsetAndMetadata | None,
        start: ListedOffset,
        end: ListedOffset,
        seconds: bool,
    ) -> PartitionLag:
        offset = None if committed is None else committed.offset
        unread_from = max(start.offset, offset if offset is not None else start.offset)
        oldest: int | None = None
        age: float | None = None
        if unread_from >= end.offset:
            age = 0.0
        elif seconds:
            oldest = await self._timestamp_at(where, unread_from)
            age = None if oldest is None else max(0, self._cluster.clock.now_ms() - oldest) / 1000
        return PartitionLag(where, offset, start.offset, end.offset, oldest, age, group.owner_of(where))

    async def _timestamp_at(self, where: TopicPartition, offset: int) -> int | None:
        """The time of the first record at or after an offset; None if it cannot be told."""
        leader = self._cluster.metadata.leader(*where)
        if leader is None:
            return None
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_FETCH_BYTES,
            topics=[
                FetchTopic(
                    topic=where.topic,
                    partitions=[
                        FetchPartition(
                            partition=where.partition, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES
                        )
                    ],
                )
            ],
        )
        try:
            answer = await self._cluster.request(leader, request, version_max=_NAMES_UP_TO)
        except KafkaError:
            return None  # the lag in messages is known all the same
        for topic in answer_of(answer, FetchResponse).responses:
            for found in topic.partitions:
                if not found.error_code and isinstance(found.records, memoryview | bytes):
                    return _first_timestamp(memoryview(found.records), offset)
        return None


def _first_timestamp(data: memoryview, offset: int) -> int | None:
    from barnabas.records.batch import iter_batches
    from barnabas.records.errors import RecordError

    try:
        for batch in iter_batches(data):
            if batch.next_offset <= offset or batch.is_control:
                continue
            for record in batch.records(limit=64 * 1024 * 1024):
                if record.offset >= offset:
                    return record.timestamp
    except RecordError:
        return None
    return None
