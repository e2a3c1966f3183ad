"""barnabas.broker.handlers.offset_commit: who may commit, and what is kept (WIRE 2.11)."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.testing import Broker
from tests.broker._calls import topic_id_of
from tests.broker._groups import Member, commit, committed
from tests.broker._wire import WireClient, until
from tests.broker.conftest import MakeClient, MakeTopic

VERSIONS = range(11)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_consumer_without_a_group_commits_and_so_makes_one(
    broker: Broker, client: WireClient, group: str, topic: str, version: int
) -> None:
    topic_id = topic_id_of(broker, topic)
    code = commit(
        client, group, topic, 41, version=version, metadata="note", topic_id=topic_id, leader_epoch=3
    )
    assert code == 0
    assert committed(client, group, topic) == (41, 3 if version >= 6 else -1, "note", 0)


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_a_member_commits_in_its_generation(
    broker: Broker, client: WireClient, group: str, topic: str, version: int
) -> None:
    topic_id = topic_id_of(broker, topic)
    member = Member(client, group).start()
    assert commit(client, group, topic, 5, version=version, member=member, topic_id=topic_id) == 0
    member.generation += 1
    code = commit(client, group, topic, 6, version=version, member=member, topic_id=topic_id)
    assert code == ErrorCode.ILLEGAL_GENERATION
    member.member_id = "stranger"
    code = commit(client, group, topic, 6, version=version, member=member, topic_id=topic_id)
    assert code == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(client, group, topic)[0] == 5


def test_nobody_else_commits_while_there_are_members(client: WireClient, group: str, topic: str) -> None:
    Member(client, group).start()
    assert commit(client, group, topic, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_that_waits_for_assignments_refuses_and_one_that_prepares_accepts(
    connect: MakeClient, group: str, topic: str
) -> None:
    member, newcomer = Member(connect(), group).start(), Member(connect(), group)
    newcomer.begin_join()
    until(lambda: member.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS)
    assert commit(member.client, group, topic, 1, member=member) == 0, "preparing"
    member.join()
    newcomer.end_join()
    assert commit(member.client, group, topic, 2, member=member) == ErrorCode.REBALANCE_IN_PROGRESS
    member.sync()
    newcomer.sync()
    assert commit(newcomer.client, group, topic, 3, member=newcomer) == 0


@pytest.mark.parametrize("version", VERSIONS[:10])
def test_an_unknown_topic_or_partition_is_told_for_itself(
    client: WireClient, group: str, topic: str, version: int
) -> None:
    request = OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                partitions=[OffsetCommitRequestPartition(partition_index=index, committed_offset=1)],
            )
            for name, index in ((topic, 0), (topic, 7), ("nowhere", 0))
        ],
    )
    answers = client.call(request, version, OffsetCommitResponse).topics
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [(t.name, t.partitions[0].partition_index, t.partitions[0].error_code) for t in answers] == [
        (topic, 0, 0),
        (topic, 7, unknown),
        ("nowhere", 0, unknown),
    ]


def test_from_version_10_on_topics_have_ids_and_an_unknown_one_is_told(
    broker: Broker, client: WireClient, group: str, topic: str
) -> None:
    assert commit(client, group, "", 1, version=10, topic_id=b"\3" * 16) == ErrorCode.UNKNOWN_TOPIC_ID
    request = OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(
                topic_id=topic_id,
                partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=9)],
            )
            for topic_id in (b"\3" * 16, topic_id_of(broker, topic))
        ],
    )
    answers = client.call(request, 10, OffsetCommitResponse).topics
    assert [t.partitions[0].error_code for t in answers] == [ErrorCode.UNKNOWN_TOPIC_ID, 0]
    assert committed(client, group, topic)[0] == 9


@pytest.mark.parametrize("version", VERSIONS[:10])
def test_too_much_metadata_is_refused(client: WireClient, group: str, topic: str, version: int) -> None:
    assert commit(client, group, topic, 1, version=version, metadata="x" * 4_096) == 0
    code = commit(client, group, topic, 2, version=version, metadata="x" * 4_097)
    assert code == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert committed(client, group, topic)[0] == 1


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("retention_ms", [0, 1_000, 2**63 - 1, -2, -(2**63)])
def test_versions_2_to_4_bring_a_retention_of_their_own(
    client: WireClient, group: str, topic: str, version: int, retention_ms: int
) -> None:
    assert commit(client, group, topic, 4, version=version, retention_ms=retention_ms) == 0
    assert committed(client, group, topic)[0] == 4


def test_null_metadata_is_empty(client: WireClient, group: str, topic: str) -> None:
    assert commit(client, group, topic, 1, metadata=None) == 0
    assert committed(client, group, topic) == (1, -1, "", 0)


def test_no_topics_are_no_answers(client: WireClient, group: str) -> None:
    assert client.call(OffsetCommitRequest(group_id=group), 7, OffsetCommitResponse).topics == []


def test_pipelined_commits_are_answered_in_order_and_the_last_counts(
    client: WireClient, group: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(1)
    for offset in range(20):
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        client.send(
            OffsetCommitRequest(
                group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=[part])]
            ),
            7,
        )
    codes = [client.receive(OffsetCommitResponse).topics[0].partitions[0].error_code for _ in range(20)]
    assert codes == [0] * 20
    assert committed(client, group, topic)[0] == 19
