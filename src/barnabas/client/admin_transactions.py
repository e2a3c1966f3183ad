"""Admin calls about transactions: list, describe, find those that hang, end one in a partition.

A transaction hangs in a partition when records of it are open there and its coordinator does not know of
them: nobody will ever end it, and readers with isolation.level=read_committed wait before it for ever.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.base.types import TopicPartition
from barnabas.client.admin_base import answer_of
from barnabas.client.admin_cluster import ClusterCalls
from barnabas.client.admin_types import ProducerInfo
from barnabas.client.cluster import CoordinatorKind
from barnabas.client.errors import ConnectionLost, KafkaError, RequestTimedOut, error_for
from barnabas.client.results import Results
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

__all__ = ["OpenTransaction", "TransactionCalls", "TransactionDescription", "TransactionListing"]

_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id and what its producer does."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id in full; the start is -1 and there are no partitions when nothing is open."""

    transactional_id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that is open in a partition, and whose it is, as far as a coordinator knows."""

    partition: TopicPartition
    producer: ProducerInfo
    transactional_id: str | None
    state: str | None
    is_hanging: bool
    """No coordinator counts the partition to this transaction."""


class TransactionCalls(ClusterCalls):
    """Calls about transactions."""

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        timeout_ms: int | None = None,
    ) -> list[TransactionListing]:
        """All transactional ids that the brokers coordinate, or those in these states, by these producers."""
        await self.start()
        request = ListTransactionsRequest(state_filters=list(states), producer_id_filters=list(producer_ids))
        limit_ms = self._timeout_ms(timeout_ms)

        async def one(node: int) -> list[TransactionListing]:
            answer = answer_of(await self._cluster.request(node, request), ListTransactionsResponse)
            if answer.error_code:
                raise error_for(answer.error_code, subject=f"transactions of broker {node}")
            return [
                TransactionListing(found.transactional_id, found.producer_id, found.transaction_state, node)
                for found in answer.transaction_states
            ]

        async def repeated(node: int) -> list[TransactionListing]:
            return await self._cluster.retry(lambda: one(node), timeout_ms=limit_ms)

        lists = await asyncio.gather(*(repeated(node) for node in sorted(self._cluster.metadata.brokers)))
        return sorted((each for found in lists for each in found), key=lambda each: each.transactional_id)

    async def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, TransactionDescription]:
        """State, producer, age and partitions of transactional ids."""
        await self.start()
        names = list(dict.fromkeys(transactional_ids))
        limit_ms = self._timeout_ms(timeout_ms)

        async def one(name: str) -> TransactionDescription | KafkaError:
            try:
                return await self._cluster.retry(
                    lambda: self._describe_transaction(name), timeout_ms=limit_ms
                )
            except KafkaError as error:
                return error

        return Results(dict(zip(names, await asyncio.gather(*map(one, names)), strict=True)))

    async def _describe_transaction(self, name: str) -> TransactionDescription:
        node = await self._cluster.coordinator(CoordinatorKind.TRANSACTION, name)
        try:
            request = DescribeTransactionsRequest(transactional_ids=[name])
            answer = answer_of(await self._cluster.request(node, request), DescribeTransactionsResponse)
            found = answer.transaction_states[0]
            if found.error_code:
                raise error_for(found.error_code, subject=f"transactional id {name!r}")
        except KafkaError as error:
            if error.code in _MOVED or isinstance(error, ConnectionLost | RequestTimedOut):
                self._cluster.forget_coordinator(CoordinatorKind.TRANSACTION, name)
            raise
        return TransactionDescription(
            found.transactional_id,
            node,
            found.transaction_state,
            found.producer_id,
            found.producer_epoch,
            found.transaction_timeout_ms,
            found.transaction_start_time_ms,
            tuple(
                TopicPartition(topic.topic, index)
                for topic in sorted(found.topics, key=lambda topic: topic.topic)
                for index in sorted(topic.partitions)
            ),
        )

    async def open_transactions(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> list[OpenTransaction]:
        """The transactions that are open in these partitions, each with its owner; first the oldest."""
        producers = await self.describe_producers(partitions, timeout_ms=timeout_ms)
        found = [
            (partition, producer)
            for partition, some in producers.succeeded.items()
            for producer in some
            if producer.transaction_start_offset >= 0
        ]
        if not found:
            return []
        ids = {producer.producer_id for _, producer in found}
        listed = await self.list_transactions(producer_ids=ids, timeout_ms=timeout_ms)
        names = [each.transactional_id for each in listed]
        described = await self.describe_transactions(names, timeout_ms=timeout_ms)
        owners = {each.producer_id: each for each in described.succeeded.values()}
        opened = [_opened(partition, producer, owners) for partition, producer in found]
        return sorted(opened, key=lambda each: (each.producer.last_timestamp, each.partition))

    async def abort_transaction(
        self, partition: TopicPartition, producer: ProducerInfo, *, timeout_ms: int | None = None
    ) -> None:
        """Ends a transaction in one partition by an abort marker; only for one that hangs.

        The coordinator is not told: if it knows the transaction, abort by the producer instead.
        """
        where = TopicPartition(*partition)
        marker = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=where.topic, partition_indexes=[where.partition])],
            coordinator_epoch=max(producer.coordinator_epoch, 0),
        )

        async def ask(node: int, asked: list[TopicPartition]) -> Mapping[TopicPartition, KafkaError | None]:
            request = WriteTxnMarkersRequest(markers=[marker])
            answer = answer_of(await self._cluster.request(node, request), WriteTxnMarkersResponse)
            return {
                (at := TopicPartition(topic.name, part.partition_index)): error_for(
                    part.error_code, subject=str(at)
                )
                if part.error_code
                else None
                for written in answer.markers
                for topic in written.topics
                for part in topic.partitions
            }

        outcome = await self._each_partition([where], ask, timeout_ms)
        outcome[where]


def _opened(
    partition: TopicPartition, producer: ProducerInfo, owners: Mapping[int, TransactionDescription]
) -> OpenTransaction:
    owner = owners.get(producer.producer_id)
    if owner is None:
        return OpenTransaction(partition, producer, None, None, True)
    # A partition leaves the coordinator's list when its marker is written; an older epoch was ended before.
    is_known = partition in owner.partitions and producer.producer_epoch <= owner.producer_epoch
    return OpenTransaction(partition, producer, owner.transactional_id, owner.state, not is_known)
