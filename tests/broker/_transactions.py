"""Transactional producers, driven call by call."""

import itertools

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.produce import ProduceResponse
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from barnabas.records.batch import iter_batches
from tests.broker._calls import READ_COMMITTED, batch, fetch, list_offset, produce_request, record_bytes
from tests.broker._wire import WireClient, until

TRANSACTION_KEY = 1
EARLIEST = -2
TIMEOUT_MS = 60_000
NOT_NOW = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_COORDINATOR,
)
_numbers = itertools.count(1)


def new_id() -> str:
    return f"tx{next(_numbers)}"


def find_transaction_coordinator(client: WireClient) -> None:
    """Makes the broker the coordinator of all transactional ids, as a client's first look-up does."""
    asked = FindCoordinatorRequest(key="any", key_type=TRANSACTION_KEY)
    assert client.call(asked, 3, FindCoordinatorResponse).error_code == 0


def init(
    client: WireClient,
    transactional_id: str | None,
    *,
    version: int = 4,
    timeout_ms: int = TIMEOUT_MS,
    producer_id: int = -1,
    epoch: int = -1,
) -> InitProducerIdResponse:
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
    )
    return client.call(request, version, InitProducerIdResponse)


def describe(client: WireClient, transactional_id: str) -> TransactionState:
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    (found,) = client.call(request, 0, DescribeTransactionsResponse).transaction_states
    return found


class TransactionalProducer:
    """A producer that says exactly what a test wants, and counts its sequences."""

    def __init__(
        self, client: WireClient, transactional_id: str | None = None, timeout_ms: int = TIMEOUT_MS
    ) -> None:
        self.client = client
        self.transactional_id = transactional_id or new_id()
        find_transaction_coordinator(client)

        def answer() -> InitProducerIdResponse | None:
            found = init(client, self.transactional_id, timeout_ms=timeout_ms)
            return None if found.error_code in NOT_NOW else found

        given = until(answer)
        assert given is not None
        assert given.error_code == 0, ErrorCode(given.error_code)
        self.producer_id, self.epoch = given.producer_id, given.producer_epoch
        self._sequences: dict[tuple[str, int], int] = {}

    def begin_epoch(self, epoch: int) -> None:
        """Goes on in a new epoch, with sequences from 0."""
        self.epoch = epoch
        self._sequences.clear()

    def add(self, topic: str, *partitions: int, version: int = 3) -> list[int]:
        """Adds partitions (0 if none is named) to the transaction; gives a code for each."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions or (0,)))],
        )
        (found,) = self.client.call(
            request, version, AddPartitionsToTxnResponse
        ).results_by_topic_v3_and_below
        return [each.partition_error_code for each in found.results_by_partition]

    def produce(
        self,
        topic: str,
        *values: bytes,
        partition: int = 0,
        version: int = 9,
        key: bytes | None = None,
    ) -> int:
        """Sends one batch of the transaction; gives the partition's code."""
        at = (topic, partition)
        sequence = self._sequences.get(at, 0)
        records = batch(
            *values,
            key=key,
            producer_id=self.producer_id,
            epoch=self.epoch,
            sequence=sequence,
            transactional=True,
        )
        request = produce_request(topic, records, partition=partition)
        request.transactional_id = self.transactional_id
        (answer,) = self.client.call(request, version, ProduceResponse).responses
        (part,) = answer.partition_responses
        if part.error_code == 0:
            self._sequences[at] = sequence + len(values)
        return part.error_code

    def send(self, topic: str, *values: bytes, partition: int = 0) -> None:
        """Adds the partition and writes to it."""
        assert self.add(topic, partition) == [0]
        assert self.produce(topic, *values, partition=partition) == 0

    def add_offsets(self, group: str, version: int = 3) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        return self.client.call(request, version, AddOffsetsToTxnResponse).error_code

    def commit_offset(
        self,
        group: str,
        topic: str,
        offset: int,
        *,
        partition: int = 0,
        version: int = 3,
        member_id: str = "",
        generation_id: int = -1,
    ) -> int:
        part = TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata="kept"
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            generation_id=generation_id,
            member_id=member_id,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[part])],
        )
        (answer,) = self.client.call(request, version, TxnOffsetCommitResponse).topics
        return answer.partitions[0].error_code

    def end(self, *, commit: bool, version: int = 3) -> int:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        return self.client.call(request, version, EndTxnResponse).error_code

    def commit(self) -> None:
        assert self.end(commit=True) == 0

    def abort(self) -> None:
        assert self.end(commit=False) == 0


def committed_values(client: WireClient, topic: str, partition: int = 0) -> list[bytes]:
    return [value for _, value in committed_records(client, topic, partition)]


def committed_records(client: WireClient, topic: str, partition: int = 0) -> list[tuple[bytes | None, bytes]]:
    """What a reader of committed data sees: the client's part of the filter included."""
    found: list[tuple[bytes | None, bytes]] = []
    offset = list_offset(client, topic, EARLIEST, partition=partition).offset
    while True:
        data = fetch(client, topic, offset, partition=partition, isolation=READ_COMMITTED)
        assert data.error_code == 0, ErrorCode(data.error_code)
        aborted = sorted((each.first_offset, each.producer_id) for each in data.aborted_transactions or ())
        batches = list(iter_batches(memoryview(record_bytes(data))))
        if not batches:
            return found
        open_now: set[int] = set()
        for each in batches:
            open_now |= {producer for first, producer in aborted if first <= each.last_offset}
            aborted = [(first, producer) for first, producer in aborted if first > each.last_offset]
            if each.is_control:
                open_now.discard(each.producer_id)
            elif not (each.is_transactional and each.producer_id in open_now):
                found += [
                    (None if record.key is None else bytes(record.key), bytes(record.value or b""))
                    for record in each.records(limit=1 << 26)
                    if record.offset >= offset
                ]
        offset = batches[-1].next_offset
