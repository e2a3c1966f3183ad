"""Admin calls about topics: create, delete, list, describe, add partitions.

A change is made by the controller and reaches the other brokers a moment later.  Calls that change topics
wait for that moment, so that what follows sees the change; if it does not come, they return all the same.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from barnabas.base.types import Uuid
from barnabas.client.admin_base import AdminBase, answer_of
from barnabas.client.admin_types import CreatedTopic, NewTopic, TopicListing
from barnabas.client.errors import KafkaError, UnknownTopic, error_for
from barnabas.client.metadata import TopicInfo
from barnabas.client.results import Results
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

__all__ = ["TopicCalls"]

_SEEN_WITHIN_S: Final = 2.0


class TopicCalls(AdminBase):
    """Calls about topics."""

    async def create_topics(
        self, topics: Iterable[NewTopic | str], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> Results[str, CreatedTopic]:
        """Makes topics; a name alone stands for a topic with the cluster's defaults.

        With `validate_only` the brokers only say what they would do.
        """
        wanted = {topic.name: topic for topic in map(_new_topic, topics)}
        limit_ms = self._timeout_ms(timeout_ms)

        async def ask(names: list[str]) -> Mapping[str, CreatedTopic | KafkaError]:
            request = CreateTopicsRequest(
                topics=[_creatable(wanted[name]) for name in names],
                timeout_ms=limit_ms,
                validate_only=validate_only,
            )
            answer = await self._cluster.request(
                await self._cluster.controller(), request, timeout_ms=limit_ms
            )
            return {
                found.name: error_for(found.error_code, found.error_message, subject=f"topic {found.name!r}")
                if found.error_code
                else CreatedTopic(found.name, found.topic_id, found.num_partitions, found.replication_factor)
                for found in answer_of(answer, CreateTopicsResponse).topics
            }

        made = await self._each(wanted, ask, timeout_ms)
        if not validate_only:
            await self._until_seen(made.succeeded, _is_ready)
        return made

    async def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        *,
        configs: Mapping[str, str] | None = None,
        timeout_ms: int | None = None,
    ) -> CreatedTopic:
        """Makes one topic.  Raises TopicExists, InvalidTopic …"""
        topic = NewTopic(name, partitions, replication_factor, configs or {})
        return (await self.create_topics([topic], timeout_ms=timeout_ms))[name]

    async def delete_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, None]:
        """Deletes topics with all their records."""
        limit_ms = self._timeout_ms(timeout_ms)

        async def ask(asked: list[str]) -> Mapping[str, KafkaError | None]:
            node = await self._cluster.controller()
            await self._cluster.ready(node)
            by_state = (self._cluster.version_of(node, ApiKey.DELETE_TOPICS) or 0) >= 6
            request = DeleteTopicsRequest(
                topics=[DeleteTopicState(name=name) for name in asked] if by_state else [],
                topic_names=[] if by_state else asked,
                timeout_ms=limit_ms,
            )
            answer = await self._cluster.request(node, request, timeout_ms=limit_ms)
            return {
                found.name: error_for(found.error_code, found.error_message, subject=f"topic {found.name!r}")
                if found.error_code
                else None
                for found in answer_of(answer, DeleteTopicsResponse).responses
                if found.name is not None
            }

        deleted = await self._each(names, ask, timeout_ms)
        await self._until_seen(deleted.succeeded, lambda topic: topic is None)
        return deleted

    async def list_topics(
        self, *, internal: bool = False, timeout_ms: int | None = None
    ) -> list[TopicListing]:
        """All topics by name, with the cluster's own ones if asked for."""
        await self.start()
        await self._cluster.retry(self._cluster.refresh_all, timeout_ms=self._timeout_ms(timeout_ms))
        return [
            TopicListing(topic.name, topic.id, len(topic.partitions), topic.is_internal)
            for _, topic in sorted(self._cluster.metadata.topics.items())
            if internal or not topic.is_internal
        ]

    async def describe_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, TopicInfo]:
        """Partitions, leaders, replicas and in-sync replicas of topics."""

        async def ask(asked: list[str]) -> Mapping[str, TopicInfo | KafkaError]:
            await self._cluster.refresh(asked)
            metadata = self._cluster.metadata
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return {
                name: metadata.topics.get(name)
                or error_for(metadata.errors.get(name, missing), subject=f"topic {name!r}")
                for name in asked
            }

        return await self._each(names, ask, timeout_ms)

    async def describe_topic(self, name: str, *, timeout_ms: int | None = None) -> TopicInfo:
        """One topic.  Raises UnknownTopic."""
        return (await self.describe_topics([name], timeout_ms=timeout_ms))[name]

    async def topic_by_id(self, topic_id: Uuid, *, timeout_ms: int | None = None) -> TopicInfo:
        """The topic with an id.  Raises UnknownTopic."""
        await self.list_topics(internal=True, timeout_ms=timeout_ms)
        found = self._cluster.metadata.by_id(topic_id)
        if found is None:
            raise UnknownTopic("no topic has this id", code=ErrorCode.UNKNOWN_TOPIC_ID)
        return found

    async def create_partitions(
        self, totals: Mapping[str, int], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> Results[str, None]:
        """Raises the number of partitions of topics to these totals; it cannot be lowered."""
        limit_ms = self._timeout_ms(timeout_ms)

        async def ask(asked: list[str]) -> Mapping[str, KafkaError | None]:
            request = CreatePartitionsRequest(
                topics=[
                    CreatePartitionsTopic(name=name, count=totals[name], assignments=None) for name in asked
                ],
                timeout_ms=limit_ms,
                validate_only=validate_only,
            )
            answer = await self._cluster.request(
                await self._cluster.controller(), request, timeout_ms=limit_ms
            )
            return {
                found.name: error_for(found.error_code, found.error_message, subject=f"topic {found.name!r}")
                if found.error_code
                else None
                for found in answer_of(answer, CreatePartitionsResponse).results
            }

        grown = await self._each(totals, ask, timeout_ms)
        if not validate_only:
            for name in grown.succeeded:
                await self._until_seen([name], partial(_has, totals[name]))
        return grown

    async def _until_seen(self, names: Iterable[str], seen: "Callable[[TopicInfo | None], bool]") -> None:
        """Waits until a broker shows the topics as they should be now, but not for long."""
        wanted = list(names)
        backoff = self._cluster.retry_backoff()
        try:
            async with asyncio.timeout(_SEEN_WITHIN_S):
                while wanted:
                    await self._cluster.refresh(wanted)
                    topics = self._cluster.metadata.topics
                    wanted = [name for name in wanted if not seen(topics.get(name))]
                    if wanted:
                        await asyncio.sleep(backoff.next_ms() / 1000)
        except (TimeoutError, KafkaError):
            return  # the change is made; who asks next may have to ask again


def _is_ready(topic: TopicInfo | None) -> bool:
    return topic is not None and all(part.has_leader for part in topic.partitions)


def _has(count: int, topic: TopicInfo | None) -> bool:
    return topic is not None and len(topic.partitions) >= count


def _new_topic(topic: NewTopic | str) -> NewTopic:
    return NewTopic(topic) if isinstance(topic, str) else topic


def _creatable(topic: NewTopic) -> CreatableTopic:
    assignment = topic.assignment
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if assignment is not None else topic.partitions,
        replication_factor=-1 if assignment is not None else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in enumerate(assignment or ())
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )
