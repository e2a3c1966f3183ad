"""barnabas.broker.handlers.end_txn: commit and abort, version by version (WIRE 2.14)."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from tests.broker._transactions import TransactionalProducer, committed_values, describe
from tests.broker._wire import WireClient

VERSIONS = range(5)
BUMPING = 5


def end(producer: TransactionalProducer, commit: bool, version: int) -> EndTxnResponse:
    request = EndTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=commit,
    )
    return producer.client.call(request, version, EndTxnResponse)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("commit", [True, False])
def test_the_end_is_as_the_producer_says_and_may_be_repeated(
    client: WireClient, topic: str, version: int, commit: bool
) -> None:
    producer = TransactionalProducer(client)
    producer.send(topic, b"x")
    for _ in range(2):
        answer = end(producer, commit, version)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, -1, -1)
    assert end(producer, not commit, version).error_code == ErrorCode.INVALID_TXN_STATE
    assert committed_values(client, topic) == ([b"x"] if commit else [])
    state = describe(client, producer.transactional_id).transaction_state
    assert state == ("CompleteCommit" if commit else "CompleteAbort")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fenced_producer_is_told_in_words_it_knows(client: WireClient, topic: str, version: int) -> None:
    producer = TransactionalProducer(client)
    TransactionalProducer(client, producer.transactional_id)
    expected = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert end(producer, True, version).error_code == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_begun_is_nothing_to_end(client: WireClient, version: int) -> None:
    producer = TransactionalProducer(client)
    assert end(producer, False, version).error_code == ErrorCode.INVALID_TXN_STATE
    producer.transactional_id = "unknown"
    assert end(producer, True, version).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


class TestVersion5:
    def test_tells_the_next_epoch_with_every_end(self, client: WireClient, topic: str) -> None:
        producer = TransactionalProducer(client)
        for commit in (True, False, True):
            assert producer.produce(topic, b"%d" % producer.epoch, version=12) == 0
            before = producer.epoch
            answer = end(producer, commit, BUMPING)
            assert (answer.error_code, answer.producer_id) == (0, producer.producer_id)
            assert answer.producer_epoch == before + 1
            assert end(producer, commit, BUMPING) == answer
            producer.begin_epoch(answer.producer_epoch)
        assert committed_values(client, topic) == [b"0", b"2"]

    def test_aborts_what_was_never_begun(self, client: WireClient) -> None:
        producer = TransactionalProducer(client)
        answer = end(producer, False, BUMPING)
        assert (answer.error_code, answer.producer_epoch) == (0, 1)
        producer.begin_epoch(1)
        assert end(producer, True, BUMPING).error_code == ErrorCode.INVALID_TXN_STATE
