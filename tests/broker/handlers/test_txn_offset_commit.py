"""barnabas.broker.handlers.txn_offset_commit: offsets that count with their transaction (KIP-98, KIP-447)."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from tests.broker._groups import Member, committed, find_coordinator, new_group
from tests.broker._groups import commit as plain_commit
from tests.broker._transactions import TransactionalProducer
from tests.broker._wire import WireClient

VERSIONS = range(6)
FIRST_IMPLICIT = 5


@pytest.fixture
def producer(client: WireClient) -> TransactionalProducer:
    find_coordinator(client)
    return TransactionalProducer(client)


def stable_error(client: WireClient, group: str, topic: str) -> int:
    asked = OffsetFetchRequest(
        group_id=group,
        topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[0])],
        require_stable=True,
    )
    return client.call(asked, 7, OffsetFetchResponse).topics[0].partitions[0].error_code


def join(producer: TransactionalProducer, group: str, version: int) -> None:
    if version < FIRST_IMPLICIT:
        assert producer.add_offsets(group) == 0


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("commit", [True, False])
def test_offsets_are_seen_after_the_commit_and_forgotten_by_an_abort(
    client: WireClient, producer: TransactionalProducer, topic: str, version: int, commit: bool
) -> None:
    group = new_group()
    join(producer, group, version)
    assert producer.commit_offset(group, topic, 42, version=version) == 0
    assert committed(client, group, topic)[0] == -1
    assert stable_error(client, group, topic) == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert producer.end(commit=commit) == 0
    assert stable_error(client, group, topic) == 0
    wanted = (42, -1, "kept", 0) if commit else (-1, -1, "", 0)
    assert committed(client, group, topic) == wanted


@pytest.mark.parametrize("version", range(FIRST_IMPLICIT))
def test_the_group_must_be_part_of_the_transaction(
    producer: TransactionalProducer, topic: str, version: int
) -> None:
    expected = ErrorCode.TRANSACTION_ABORTABLE if version >= 4 else ErrorCode.INVALID_TXN_STATE
    assert producer.commit_offset(new_group(), topic, 1, version=version) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fenced_producer_is_told_so(
    client: WireClient, producer: TransactionalProducer, topic: str, version: int
) -> None:
    group = new_group()
    TransactionalProducer(client, producer.transactional_id)
    code = producer.commit_offset(group, topic, 1, version=version)
    assert code == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_topic_is_refused_alone(producer: TransactionalProducer, version: int) -> None:
    group = new_group()
    join(producer, group, version)
    code = producer.commit_offset(group, "no-such-topic", 1, version=version)
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    producer.abort()


@pytest.mark.parametrize("version", VERSIONS[3:])
def test_only_a_member_of_the_generation_commits(
    client: WireClient, producer: TransactionalProducer, topic: str, version: int
) -> None:
    group = new_group()
    member = Member(client, group)
    assert member.join().error_code == 0
    join(producer, group, version)

    def commit(member_id: str, generation_id: int) -> int:
        return producer.commit_offset(
            group, topic, 7, version=version, member_id=member_id, generation_id=generation_id
        )

    assert commit("somebody", member.generation) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(member.member_id, member.generation + 1) == ErrorCode.ILLEGAL_GENERATION
    assert commit(member.member_id, member.generation) == 0
    producer.commit()
    assert committed(client, group, topic)[0] == 7


def test_a_later_plain_commit_wins_over_a_transaction_that_ends_after_it(
    client: WireClient, producer: TransactionalProducer, topic: str
) -> None:
    group = new_group()
    join(producer, group, 3)
    assert producer.commit_offset(group, topic, 5) == 0
    plain_commit(client, group, topic, 9)
    producer.commit()
    assert committed(client, group, topic)[0] == 9
