"""Which refusals end a transaction and which end its producer, for transactions V1 and V2 (as Java 4.3)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.aio import Producer
from barnabas.client.errors import KafkaError, TransactionAborted
from barnabas.client.offsets import GroupIdentity
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from barnabas.protocol.messages.api_versions import ApiVersionsResponse, FinalizedFeatureKey
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.produce import PartitionProduceResponse
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.protocol.schema import Message
from barnabas.records.batch import RecordBatch
from tests.client._fake import Answer
from tests.client._kit import settings_for
from tests.client._produce_fake import ProduceFake, refuse

GROUP = GroupIdentity("g")
V1, V2 = 0, 2
BOTH = [V1, V2]


class TransactionFake(ProduceFake):
    """A coordinator that agrees to everything but what `refusals` says, each once."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self.level = level
        self.epoch = -1
        self.refusals: dict[ApiKey, ErrorCode] = {}
        for key, answer in {
            ApiKey.API_VERSIONS: self._versions,
            ApiKey.FIND_COORDINATOR: self._coordinator,
            ApiKey.INIT_PRODUCER_ID: self._init_producer,
            ApiKey.ADD_PARTITIONS_TO_TXN: self._add,
            ApiKey.ADD_OFFSETS_TO_TXN: self._add_offsets,
            ApiKey.TXN_OFFSET_COMMIT: self._offsets,
            ApiKey.END_TXN: self._end,
        }.items():
            self.responses[key] = answer

    def refusal(self, key: ApiKey) -> ErrorCode:
        return self.refusals.pop(key, ErrorCode.NONE)

    def _versions(self, message: Message) -> Answer:
        answer = self._default(message)
        assert isinstance(answer, ApiVersionsResponse)
        if self.level:
            answer.finalized_features_epoch = 1
            answer.finalized_features = [
                FinalizedFeatureKey(
                    name="transaction.version", max_version_level=self.level, min_version_level=self.level
                )
            ]
        return answer

    def _coordinator(self, message: Message) -> Answer:
        host, port = self.advertised[self.node]
        return FindCoordinatorResponse(
            coordinators=[Coordinator(key="x", node_id=self.node, host=host, port=port)]
        )

    def _init_producer(self, message: Message) -> Answer:
        assert isinstance(message, InitProducerIdRequest)
        self.epoch += 1
        code = self.refusal(ApiKey.INIT_PRODUCER_ID)
        return InitProducerIdResponse(error_code=code, producer_id=7, producer_epoch=self.epoch)

    def _add(self, message: Message) -> Answer:
        assert isinstance(message, AddPartitionsToTxnRequest)
        code = self.refusal(ApiKey.ADD_PARTITIONS_TO_TXN)
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                        for index in topic.partitions
                    ],
                )
                for topic in message.v3_and_below_topics
            ]
        )

    def _add_offsets(self, message: Message) -> Answer:
        return AddOffsetsToTxnResponse(error_code=self.refusal(ApiKey.ADD_OFFSETS_TO_TXN))

    def _offsets(self, message: Message) -> Answer:
        assert isinstance(message, TxnOffsetCommitRequest)
        code = self.refusal(ApiKey.TXN_OFFSET_COMMIT)
        part = TxnOffsetCommitResponsePartition(partition_index=0, error_code=code)
        return TxnOffsetCommitResponse(topics=[TxnOffsetCommitResponseTopic(name="s", partitions=[part])])

    def _end(self, message: Message) -> Answer:
        assert isinstance(message, EndTxnRequest)
        if code := self.refusal(ApiKey.END_TXN):
            return EndTxnResponse(error_code=code)
        assert message.producer_epoch == self.epoch
        if self.level < V2:
            return EndTxnResponse()
        self.epoch += 1
        return EndTxnResponse(producer_id=7, producer_epoch=self.epoch)


Step = Callable[[Producer], Awaitable[Any]]


def played(level: int, step: Step, script: Sequence[object] = (), **refusals: ErrorCode) -> TransactionFake:
    """Runs `step` in an open transaction; the broker refuses the requests named."""

    async def main() -> TransactionFake:
        async with TransactionFake(level) as broker:
            assert isinstance(broker, TransactionFake)
            settings = settings_for(broker.address, **{"transactional.id": "x", "linger.ms": 0})
            async with Producer(settings) as producer:
                await producer.begin_transaction()
                broker.refusals = {ApiKey[name]: code for name, code in refusals.items()}
                if (code := broker.refusals.pop(ApiKey.PRODUCE, None)) is not None:
                    broker.script = [refuse(code)]
                broker.script += script
                await step(producer)
            return broker

    return asyncio.run(main())


async def fails_to_write(producer: Producer) -> None:
    future = await producer.send("t", b"lost")
    with pytest.raises(KafkaError):
        await future


async def goes_on(producer: Producer) -> None:
    """The transaction can only be aborted; the next one works, numbered anew under a new epoch."""
    with pytest.raises(TransactionAborted):
        await producer.commit_transaction()
    await producer.abort_transaction()
    async with producer.transaction():
        await producer.send("t", b"next")


async def is_done_for(producer: Producer) -> None:
    """Every call raises what happened."""
    for call in (
        producer.commit_transaction,
        producer.abort_transaction,
        producer.begin_transaction,
        producer.init_transactions,
    ):
        with pytest.raises(KafkaError) as caught:
            await call()
        assert not isinstance(caught.value, TransactionAborted)


@pytest.mark.parametrize("level", BOTH)
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_RECORD,
    ],
)
def test_a_batch_refused_for_one_of_these_ends_the_transaction_only(level: int, code: ErrorCode) -> None:
    async def step(producer: Producer) -> None:
        await fails_to_write(producer)
        await goes_on(producer)

    broker = played(level, step, PRODUCE=code)
    (batch,) = broker.batches[0]
    assert (batch.producer_epoch, batch.base_sequence) == (1, 0)
    assert broker.values() == [b"next"]


@pytest.mark.parametrize("level", BOTH)
@pytest.mark.parametrize(
    "code", [ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
)
def test_a_batch_refused_for_one_of_these_ends_the_producer(level: int, code: ErrorCode) -> None:
    async def step(producer: Producer) -> None:
        await fails_to_write(producer)
        await is_done_for(producer)

    assert played(level, step, PRODUCE=code).values() == []


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.TRANSACTION_ABORTABLE])
def test_partitions_refused_for_one_of_these_end_the_transaction_only(code: ErrorCode) -> None:
    async def step(producer: Producer) -> None:
        await fails_to_write(producer)
        await goes_on(producer)

    assert played(V1, step, ADD_PARTITIONS_TO_TXN=code).values() == [b"next"]


@pytest.mark.parametrize(
    "code",
    [ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_ID_MAPPING],
)
def test_partitions_refused_for_one_of_these_end_the_producer(code: ErrorCode) -> None:
    async def step(producer: Producer) -> None:
        await fails_to_write(producer)
        await is_done_for(producer)

    assert played(V1, step, ADD_PARTITIONS_TO_TXN=code).values() == []


@pytest.mark.parametrize("level", BOTH)
@pytest.mark.parametrize(
    ("code", "is_fatal"),
    [
        (ErrorCode.UNKNOWN_MEMBER_ID, False),
        (ErrorCode.ILLEGAL_GENERATION, False),
        (ErrorCode.FENCED_INSTANCE_ID, False),
        (ErrorCode.TRANSACTION_ABORTABLE, False),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, False),
        (ErrorCode.INVALID_PRODUCER_EPOCH, True),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, True),
    ],
)
def test_of_offsets(level: int, code: ErrorCode, is_fatal: bool) -> None:
    async def step(producer: Producer) -> None:
        with pytest.raises(KafkaError):
            await producer.send_offsets_to_transaction({TopicPartition("s", 0): 3}, GROUP)
        await (is_done_for if is_fatal else goes_on)(producer)

    broker = played(level, step, TXN_OFFSET_COMMIT=code)
    assert broker.count(ApiKey.ADD_OFFSETS_TO_TXN) == (1 if level == V1 else 0)


@pytest.mark.parametrize("level", BOTH)
@pytest.mark.parametrize(
    ("code", "is_fatal"),
    [
        (ErrorCode.UNKNOWN_PRODUCER_ID, False),
        (ErrorCode.TRANSACTION_ABORTABLE, False),
        (ErrorCode.PRODUCER_FENCED, True),
        (ErrorCode.INVALID_TXN_STATE, True),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, True),
    ],
)
def test_of_the_end(level: int, code: ErrorCode, is_fatal: bool) -> None:
    async def step(producer: Producer) -> None:
        await producer.send("t", b"lost")
        with pytest.raises(KafkaError):
            await producer.commit_transaction()
        await (is_done_for if is_fatal else goes_on)(producer)

    values = played(level, step, END_TXN=code).values()
    assert values == ([b"lost"] if is_fatal else [b"lost", b"next"])


def test_v2_names_nothing_beforehand_and_every_transaction_has_its_own_epoch() -> None:
    async def step(producer: Producer) -> None:
        await producer.send("t", b"1")
        await producer.send_offsets_to_transaction({TopicPartition("s", 0): 3}, GROUP)
        await producer.commit_transaction()
        for value in (b"2", b"3"):
            async with producer.transaction():
                await producer.send("t", value)

    broker = played(V2, step)
    assert broker.count(ApiKey.ADD_PARTITIONS_TO_TXN) == broker.count(ApiKey.ADD_OFFSETS_TO_TXN) == 0
    assert broker.count(ApiKey.INIT_PRODUCER_ID) == 1
    assert [(batch.producer_epoch, batch.base_sequence) for batch in broker.batches[0]] == [
        (0, 0),
        (1, 0),
        (2, 0),
    ]
    assert min(broker.versions_of(ApiKey.PRODUCE)) >= 12
    assert set(broker.versions_of(ApiKey.END_TXN)) == set(broker.versions_of(ApiKey.TXN_OFFSET_COMMIT)) == {5}


def test_v1_keeps_below_the_versions_that_mean_v2() -> None:
    async def step(producer: Producer) -> None:
        await producer.send("t", b"1")
        await producer.send_offsets_to_transaction({TopicPartition("s", 0): 3}, GROUP)
        await producer.commit_transaction()

    broker = played(V1, step)
    assert broker.versions_of(ApiKey.PRODUCE) == [11]
    assert broker.versions_of(ApiKey.END_TXN) == broker.versions_of(ApiKey.TXN_OFFSET_COMMIT) == [4]


def test_v2_sends_on_while_the_first_batch_is_under_way_and_keeps_the_order_when_it_is_refused() -> None:
    async def step(producer: Producer) -> None:
        # One batch a record: the first waits for its turn, the others come too early.
        sent = [await producer.send("t", b"%d" % number + bytes(20_000)) for number in range(4)]
        for future in sent:
            await future
        await producer.commit_transaction()

    def in_order(partition: int, batch: RecordBatch) -> PartitionProduceResponse | None:
        if batch.base_sequence == len(broker_batches):
            broker_batches.append(batch)
            return None
        return PartitionProduceResponse(error_code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, base_offset=-1)

    broker_batches: list[RecordBatch] = []
    first = [refuse(ErrorCode.NOT_ENOUGH_REPLICAS)]
    broker = played(V2, step, script=[*first, *[in_order] * 20])
    assert [(value or b"")[:1] for value in broker.values()] == [b"0", b"1", b"2", b"3"]


def test_a_batch_that_finds_the_last_transaction_still_ending_goes_again_soon() -> None:
    async def step(producer: Producer) -> None:
        future = await producer.send("t", b"1")
        await future
        await producer.commit_transaction()

    broker = played(V2, step, PRODUCE=ErrorCode.CONCURRENT_TRANSACTIONS)
    assert broker.values() == [b"1"]
