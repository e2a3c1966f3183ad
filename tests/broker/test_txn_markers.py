"""barnabas.broker.txn_markers: markers reach the partitions, and groups hear of theirs."""

from collections.abc import Mapping

from barnabas.base.types import TopicPartition
from barnabas.broker.services import Services
from barnabas.coordinator.txn_ports import Marker
from barnabas.metadata.names import GROUP_METADATA_TOPIC
from barnabas.protocol.codes import ErrorCode
from barnabas.testing import Broker
from tests.broker._groups import committed, find_coordinator, new_group
from tests.broker._transactions import TransactionalProducer, committed_values
from tests.broker._wire import WireClient

NEWER = 1_000


def services_of(broker: Broker) -> Services:
    assert broker.node is not None
    assert broker.node.services is not None
    return broker.node.services


def write(broker: Broker, marker: Marker, *partitions: TopicPartition) -> Mapping[TopicPartition, ErrorCode]:
    """What the broker says of each partition; a single replica answers at once."""
    answers: list[Mapping[TopicPartition, ErrorCode]] = []

    async def work() -> None:
        services_of(broker).markers.write(marker, partitions, answers.append)

    broker.run(work())
    (answer,) = answers
    return answer


def test_a_marker_ends_the_transaction_in_its_partition(
    broker: Broker, client: WireClient, topic: str
) -> None:
    producer = TransactionalProducer(client)
    producer.send(topic, b"x")
    where, gone = TopicPartition(topic, 0), TopicPartition("no-such-topic", 0)
    marker = Marker(producer.producer_id, producer.epoch, committed=True, coordinator_epoch=NEWER)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert write(broker, marker, where, gone) == {where: ErrorCode.NONE, gone: unknown}
    assert committed_values(client, topic) == [b"x"]


def test_groups_see_their_offsets_once_the_marker_is_there(
    broker: Broker, client: WireClient, topic: str
) -> None:
    find_coordinator(client)
    producer, group = TransactionalProducer(client), new_group()
    assert producer.add_offsets(group) == 0
    assert producer.commit_offset(group, topic, 4) == 0
    where = TopicPartition(GROUP_METADATA_TOPIC, services_of(broker).groups.partition_for(group))
    marker = Marker(producer.producer_id, producer.epoch, committed=True, coordinator_epoch=NEWER)
    assert write(broker, marker, where) == {where: ErrorCode.NONE}
    assert committed(client, group, topic)[0] == 4


def test_a_partition_whose_groups_are_not_loaded_is_asked_again(broker: Broker, client: WireClient) -> None:
    find_coordinator(client)
    services = services_of(broker)
    producer = TransactionalProducer(client)
    where = TopicPartition(GROUP_METADATA_TOPIC, 0)
    partition = services.partitions.get(*where)
    assert partition is not None
    marker = Marker(producer.producer_id, producer.epoch, committed=True, coordinator_epoch=NEWER)

    async def unload() -> int:
        services.groups.unload(0)
        return partition.log.log_end_offset

    async def load() -> int:
        found = services.groups.begin_load(0, partition.leader_epoch)
        assert found is not None
        services.groups.finish_load(found)
        return partition.log.log_end_offset

    end = broker.run(unload())
    assert write(broker, marker, where) == {where: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert broker.run(load()) == end
    assert write(broker, marker, where) == {where: ErrorCode.NONE}
