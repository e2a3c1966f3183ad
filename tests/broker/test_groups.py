"""barnabas.broker.groups: the coordinator's life on this broker: led, loaded, deleted, made anew."""

from pathlib import Path

import pytest

from barnabas.metadata.image import ConfigResourceType
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.testing import Broker
from tests.broker._calls import partition_of
from tests.broker._groups import Member, commit, committed, find_coordinator, new_group, until_loaded
from tests.broker._wire import WireClient, until
from tests.broker.conftest import StartBroker
from tests.broker.test_node import running

OFFSETS = "__consumer_offsets"


def test_before_the_offsets_topic_exists_nobody_coordinates(start_broker: StartBroker) -> None:
    broker = start_broker()
    with WireClient(broker.bootstrap_servers) as client:
        beat = HeartbeatRequest(group_id="g", member_id="m", generation_id=1)
        assert client.call(beat, 3, HeartbeatResponse).error_code == ErrorCode.NOT_COORDINATOR
        find_coordinator(client)
        assert client.call(beat, 3, HeartbeatResponse).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("count", [1, 3, 9])
def test_the_offsets_topic_may_be_made_by_hand_with_any_number_of_partitions(
    start_broker: StartBroker, count: int
) -> None:
    broker = start_broker()
    broker.create_topic("t")
    with WireClient(broker.bootstrap_servers) as client:
        wanted = CreatableTopic(name=OFFSETS, num_partitions=count, replication_factor=1)
        (made,) = client.call(CreateTopicsRequest(topics=[wanted]), 4, CreateTopicsResponse).topics
        assert made.error_code == 0
        find_coordinator(client)
        for number in range(10):
            assert commit(client, f"g{number}", "t", number) == 0
            assert committed(client, f"g{number}", "t")[0] == number


def test_it_can_be_deleted_and_comes_back_empty(start_broker: StartBroker) -> None:
    broker = start_broker()
    broker.create_topic("t")
    with WireClient(broker.bootstrap_servers) as client:
        find_coordinator(client)
        assert commit(client, "g", "t", 5) == 0
        assert broker.node is not None
        assert broker.node.services is not None
        broker.run(broker.node.services.topics.delete(OFFSETS))
        assert commit(client, "g", "t", 6) == ErrorCode.NOT_COORDINATOR
        find_coordinator(client)
        assert committed(client, "g", "t")[0] == -1
        assert commit(client, "g", "t", 7) == 0


def test_what_groups_were_is_read_back_at_the_start(folder: Path) -> None:
    with running(folder) as (broker, client):
        broker.create_topic("t", 3)
        find_coordinator(client)
        for number in range(20):
            for partition in range(3):
                assert commit(client, f"g{number}", "t", number, partition=partition) == 0
        member = Member(client, "live", instance="i").start()
    with running(folder) as (_, client):
        for number in range(20):
            until_loaded(client, f"g{number}")
            assert committed(client, f"g{number}", "t", partition=2)[0] == number
        until_loaded(client, "live")
        listed = client.call(ListGroupsRequest(), 4, ListGroupsResponse)
        assert {group.group_id for group in listed.groups} == {"live", *(f"g{n}" for n in range(20))}
        (found,) = client.call(DescribeGroupsRequest(groups=["live"]), 5, DescribeGroupsResponse).groups
        assert (found.group_state, found.protocol_type, found.protocol_data) == (
            "Stable",
            "consumer",
            "range",
        )
        (seen,) = found.members
        assert (seen.member_id, seen.group_instance_id) == (member.member_id, "i")
        assert bytes(seen.member_assignment) == b"all"


def test_a_load_in_small_pieces_reads_the_same(folder: Path) -> None:
    with running(folder) as (broker, client):
        broker.create_topic("t")
        find_coordinator(client)
        for number in range(40):
            assert commit(client, "g", "t", number) == 0
    with running(folder, offsets_load_buffer_size="100") as (_, client):
        until_loaded(client, "g")
        assert committed(client, "g", "t")[0] == 39


def test_live_settings_reach_the_coordinator(start_broker: StartBroker) -> None:
    broker = start_broker()
    assert broker.node is not None
    services = broker.node.services
    assert services is not None
    around = services.groups._around
    before = around.settings.retention_ms
    broker.run(
        services.configs.replace(
            ConfigResourceType.BROKER, "", {"offsets.retention.minutes": "3"}, validate_only=False
        )
    )
    assert (before, around.settings.retention_ms) == (10_080 * 60_000, 3 * 60_000)


def test_commits_are_batches_in_kafkas_own_format(broker: Broker, client: WireClient, topic: str) -> None:
    find_coordinator(client)
    group = new_group()
    assert broker.node is not None
    assert broker.node.services is not None
    index = broker.node.services.groups.partition_for(group)
    before = partition_of(broker, OFFSETS, index).log.log_end_offset
    assert commit(client, group, topic, 3) == 0
    assert partition_of(broker, OFFSETS, index).log.log_end_offset == before + 1
    until(lambda: partition_of(broker, OFFSETS, index).high_watermark == before + 1)
