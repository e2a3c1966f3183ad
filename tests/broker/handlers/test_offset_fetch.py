"""barnabas.broker.handlers.offset_fetch: what was committed, and -1 where nothing was (WIRE 2.11)."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from barnabas.testing import Broker
from tests.broker._calls import topic_id_of
from tests.broker._groups import Member, commit, committed
from tests.broker._wire import WireClient
from tests.broker.conftest import MakeTopic

VERSIONS = range(11)
NOTHING = (-1, -1, "", 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_committed_comes_back(
    broker: Broker, client: WireClient, group: str, topic: str, version: int
) -> None:
    assert commit(client, group, topic, 12, leader_epoch=4, metadata="m") == 0
    found = committed(client, group, topic, version=version, topic_id=topic_id_of(broker, topic))
    assert found == (12, 4 if version >= 5 else -1, "m", 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_no_commit_and_no_group_are_minus_one_without_an_error(
    broker: Broker, client: WireClient, group: str, topic: str, version: int
) -> None:
    topic_id = topic_id_of(broker, topic)
    assert committed(client, f"{group}-x", topic, version=version, topic_id=topic_id) == NOTHING
    Member(client, group).start()
    assert committed(client, group, topic, version=version, topic_id=topic_id) == NOTHING


@pytest.mark.parametrize("version", VERSIONS[:10])
def test_an_unknown_topic_is_minus_one_too(client: WireClient, group: str, topic: str, version: int) -> None:
    assert committed(client, group, "nowhere", version=version) == NOTHING


@pytest.mark.parametrize("version", range(2, 8))
def test_null_asks_for_all_that_is_committed(
    client: WireClient, group: str, make_topic: MakeTopic, version: int
) -> None:
    one, two = make_topic(2), make_topic()
    for topic, index in ((one, 1), (two, 0), (one, 0)):
        commit(client, group, topic, 7, partition=index)
    response = client.call(OffsetFetchRequest(group_id=group, topics=None), version, OffsetFetchResponse)
    assert response.error_code == 0
    found = [(t.name, p.partition_index) for t in response.topics for p in t.partitions]
    assert sorted(found) == sorted([(one, 0), (one, 1), (two, 0)])
    names = [t.name for t in response.topics]
    assert len(names) == len(set(names)), "each topic once"
    unknown = client.call(OffsetFetchRequest(group_id="x-y", topics=None), version, OffsetFetchResponse)
    assert (unknown.error_code, unknown.topics) == (0, [])


@pytest.mark.parametrize("version", range(8, 11))
def test_several_groups_each_with_its_own_answer(
    broker: Broker, client: WireClient, group: str, make_topic: MakeTopic, version: int
) -> None:
    one, two = make_topic(2), make_topic()
    for topic, index in ((one, 1), (two, 0), (one, 0)):
        commit(client, group, topic, 7, partition=index)
    commit(client, f"{group}-2", one, 8)
    ids = {topic_id_of(broker, name): name for name in (one, two)}
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(group_id=group, topics=None),
            OffsetFetchRequestGroup(
                group_id=f"{group}-2",
                topics=[
                    OffsetFetchRequestTopics(
                        name=one, topic_id=topic_id_of(broker, one), partition_indexes=[0, 1]
                    )
                ],
            ),
            OffsetFetchRequestGroup(group_id="unheard-of", topics=None),
        ]
    )
    first, second, third = client.call(request, version, OffsetFetchResponse).groups
    assert [g.error_code for g in (first, second, third)] == [0, 0, 0]
    named = [
        (ids[t.topic_id] if version >= 10 else t.name, p.partition_index)
        for t in first.topics
        for p in t.partitions
    ]
    assert sorted(named) == sorted([(one, 0), (one, 1), (two, 0)])
    assert len(first.topics) == 2, "each topic once"
    assert [(p.partition_index, p.committed_offset) for p in second.topics[0].partitions] == [(0, 8), (1, -1)]
    assert third.topics == []


def test_version_10_tells_an_unknown_id(broker: Broker, client: WireClient, group: str, topic: str) -> None:
    commit(client, group, topic, 3)
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group,
                topics=[
                    OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0])
                    for topic_id in (b"\4" * 16, topic_id_of(broker, topic))
                ],
            )
        ]
    )
    (answer,) = client.call(request, 10, OffsetFetchResponse).groups
    assert [
        (t.topic_id, t.partitions[0].committed_offset, t.partitions[0].error_code) for t in answer.topics
    ] == [
        (b"\4" * 16, -1, ErrorCode.UNKNOWN_TOPIC_ID),
        (topic_id_of(broker, topic), 3, 0),
    ]


@pytest.mark.parametrize("version", [9, 10])
def test_a_classic_member_that_names_no_epoch_is_not_taken_for_one_of_the_new_protocol(
    broker: Broker, client: WireClient, group: str, topic: str, version: int
) -> None:
    commit(client, group, topic, 3)
    topic_id = topic_id_of(broker, topic)
    for member_id in (None, "", "somebody"):
        wanted = OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=[0])
        asked = OffsetFetchRequestGroup(group_id=group, member_id=member_id, member_epoch=-1, topics=[wanted])
        (answer,) = client.call(OffsetFetchRequest(groups=[asked]), version, OffsetFetchResponse).groups
        assert (answer.error_code, answer.topics[0].partitions[0].committed_offset) == (0, 3)


@pytest.mark.parametrize("version", [7, 8, 9])
def test_stable_offsets_can_be_insisted_on(client: WireClient, group: str, topic: str, version: int) -> None:
    commit(client, group, topic, 3)
    request = OffsetFetchRequest(require_stable=True)
    if version == 7:
        request.group_id = group
        request.topics = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
        (old,) = client.call(request, version, OffsetFetchResponse).topics
        assert old.partitions[0].committed_offset == 3
        return
    wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=[0])
    request.groups = [OffsetFetchRequestGroup(group_id=group, topics=[wanted])]
    (answer,) = client.call(request, version, OffsetFetchResponse).groups
    assert answer.topics[0].partitions[0].committed_offset == 3


def test_offsets_of_a_deleted_topic_are_gone(
    broker: Broker, client: WireClient, group: str, topic: str
) -> None:
    commit(client, group, topic, 3)
    assert broker.node is not None
    assert broker.node.services is not None
    broker.run(broker.node.services.topics.delete(topic))
    assert committed(client, group, topic) == NOTHING
    everything = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    (answer,) = client.call(everything, 8, OffsetFetchResponse).groups
    assert answer.topics == []
