"""Admin calls about brokers and what they hold: the cluster, data folders, producers, deleting records."""

import asyncio
from collections.abc import Iterable, Mapping

from barnabas.base.types import TopicPartition
from barnabas.client.admin_base import AdminBase, answer_of, by_topic
from barnabas.client.admin_types import ClusterDescription, LogDir, LogDirReplica, ProducerInfo
from barnabas.client.errors import KafkaError, error_for
from barnabas.client.results import Results
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)

__all__ = ["ClusterCalls"]


class ClusterCalls(AdminBase):
    """Calls about brokers."""

    async def describe_cluster(self, *, timeout_ms: int | None = None) -> ClusterDescription:
        """The brokers that are up, and which of them is the controller."""
        await self.start()
        await self._cluster.retry(self._cluster.refresh, timeout_ms=self._timeout_ms(timeout_ms))
        metadata = self._cluster.metadata
        brokers = tuple(metadata.brokers[node] for node in sorted(metadata.brokers))
        return ClusterDescription(metadata.cluster_id, metadata.brokers.get(metadata.controller_id), brokers)

    async def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> Results[TopicPartition, int]:
        """Deletes all records below an offset (-1: all there are); the result is the new start of the log."""
        offsets = {TopicPartition(*partition): offset for partition, offset in before.items()}
        limit_ms = self._timeout_ms(timeout_ms)

        async def ask(node: int, asked: list[TopicPartition]) -> Mapping[TopicPartition, int | KafkaError]:
            request = DeleteRecordsRequest(
                topics=[
                    DeleteRecordsTopic(
                        name=topic,
                        partitions=[
                            DeleteRecordsPartition(
                                partition_index=index, offset=offsets[TopicPartition(topic, index)]
                            )
                            for index in indexes
                        ],
                    )
                    for topic, indexes in by_topic(asked).items()
                ],
                timeout_ms=limit_ms,
            )
            answer = await self._cluster.request(node, request, timeout_ms=limit_ms)
            return {
                (where := TopicPartition(topic.name, found.partition_index)): error_for(
                    found.error_code, subject=str(where)
                )
                if found.error_code
                else found.low_watermark
                for topic in answer_of(answer, DeleteRecordsResponse).topics
                for found in topic.partitions
            }

        return await self._each_partition(offsets, ask, timeout_ms)

    async def describe_log_dirs(
        self,
        brokers: Iterable[int] | None = None,
        *,
        partitions: Iterable[TopicPartition] | None = None,
        timeout_ms: int | None = None,
    ) -> Results[int, Results[str, LogDir]]:
        """The data folders of brokers (all of them by default) with the size of each replica in them."""
        await self.start()
        if brokers is None:
            await self._cluster.refresh()
        nodes = sorted(self._cluster.metadata.brokers) if brokers is None else list(brokers)
        wanted = None if partitions is None else by_topic(partitions)
        request = DescribeLogDirsRequest(
            topics=None
            if wanted is None
            else [DescribableLogDirTopic(topic=name, partitions=some) for name, some in wanted.items()]
        )

        async def one(node: int) -> Results[str, LogDir] | KafkaError:
            try:
                answer = answer_of(await self._cluster.request(node, request), DescribeLogDirsResponse)
            except KafkaError as error:
                return error
            if answer.error_code:
                return error_for(answer.error_code, subject=f"broker {node}")
            return Results(
                {
                    found.log_dir: error_for(found.error_code, subject=found.log_dir)
                    if found.error_code
                    else _log_dir(found)
                    for found in answer.results
                }
            )

        async def ask(asked: list[int]) -> Mapping[int, Results[str, LogDir] | KafkaError]:
            found = await asyncio.gather(*(one(node) for node in asked))
            return dict(zip(asked, found, strict=True))

        return await self._each(nodes, ask, timeout_ms)

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> Results[TopicPartition, tuple[ProducerInfo, ...]]:
        """The idempotent and transactional producers that a partition's leader remembers."""

        async def ask(
            node: int, asked: list[TopicPartition]
        ) -> Mapping[TopicPartition, tuple[ProducerInfo, ...] | KafkaError]:
            request = DescribeProducersRequest(
                topics=[
                    TopicRequest(name=topic, partition_indexes=indexes)
                    for topic, indexes in by_topic(asked).items()
                ]
            )
            answer = answer_of(await self._cluster.request(node, request), DescribeProducersResponse)
            return {
                (where := TopicPartition(topic.name, found.partition_index)): error_for(
                    found.error_code, found.error_message, subject=str(where)
                )
                if found.error_code
                else tuple(
                    ProducerInfo(
                        state.producer_id,
                        state.producer_epoch,
                        state.last_sequence,
                        state.last_timestamp,
                        state.coordinator_epoch,
                        state.current_txn_start_offset,
                    )
                    for state in found.active_producers
                )
                for topic in answer.topics
                for found in topic.partitions
            }

        return await self._each_partition((TopicPartition(*each) for each in partitions), ask, timeout_ms)


def _log_dir(found: DescribeLogDirsResult) -> LogDir:
    replicas = tuple(
        LogDirReplica(
            TopicPartition(topic.name, part.partition_index),
            part.partition_size,
            part.offset_lag,
            part.is_future_key,
        )
        for topic in found.topics
        for part in topic.partitions
    )
    total = found.total_bytes if found.total_bytes >= 0 else None
    usable = found.usable_bytes if found.usable_bytes >= 0 else None
    return LogDir(found.log_dir, replicas, total, usable)
