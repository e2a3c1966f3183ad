"""barnabas.broker.handlers.offset_for_leader_epoch: where epochs end."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.testing import Broker
from tests.broker._calls import batch, partition_of, produce
from tests.broker._wire import WireClient

VERSIONS = range(5)


def ask(
    client: WireClient, topic: str, epoch: int, *, version: int = 4, current: int = -1, partition: int = 0
) -> EpochEndOffset:
    part = OffsetForLeaderPartition(partition=partition, leader_epoch=epoch, current_leader_epoch=current)
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=[part])])
    (answer,) = client.call(request, version, OffsetForLeaderEpochResponse).topics
    assert answer.topic == topic
    (found,) = answer.partitions
    return found


def raise_epoch(broker: Broker, topic: str, epoch: int) -> None:
    partition = partition_of(broker, topic)

    async def lead() -> None:
        partition.lead(epoch=epoch, replicas=[1], in_sync=[1], high_watermark=0)

    broker.run(lead())


@pytest.fixture
def aged(broker: Broker, client: WireClient, topic: str) -> str:
    """Offsets 0-1 of epoch 0, 2 of epoch 3, and epoch 5 without a record."""
    produce(client, topic, batch(b"a", b"b"))
    raise_epoch(broker, topic, 3)
    produce(client, topic, batch(b"c"))
    raise_epoch(broker, topic, 5)
    return topic


@pytest.mark.parametrize("version", VERSIONS)
def test_the_largest_epoch_not_above_the_asked_one_and_its_end(
    client: WireClient, aged: str, version: int
) -> None:
    for asked, epoch, end in ((0, 0, 2), (1, 0, 2), (2, 0, 2), (3, 3, 3), (4, 3, 3), (5, 5, 3)):
        found = ask(client, aged, asked, version=version)
        assert (found.partition, found.error_code, found.end_offset) == (0, 0, end)
        assert found.leader_epoch == (epoch if version >= 1 else -1)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("asked", [6, -1])
def test_an_epoch_that_nobody_knows_is_minus_one(
    client: WireClient, aged: str, version: int, asked: int
) -> None:
    found = ask(client, aged, asked, version=version)
    assert (found.error_code, found.leader_epoch, found.end_offset) == (0, -1, -1)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_partition_is_told(client: WireClient, topic: str, version: int) -> None:
    for name, index in (("nowhere", 0), (topic, 8)):
        found = ask(client, name, 0, version=version, partition=index)
        assert (found.partition, found.error_code) == (index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert (found.leader_epoch, found.end_offset) == (-1, -1)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_callers_own_epoch_is_checked_first(client: WireClient, aged: str, version: int) -> None:
    assert ask(client, aged, 0, version=version, current=3).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert ask(client, aged, 0, version=version, current=6).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert ask(client, aged, 0, version=version, current=5).error_code == 0


def test_a_reader_that_came_to_an_empty_log_in_an_older_epoch_has_lost_nothing(
    broker: Broker, client: WireClient, topic: str
) -> None:
    raise_epoch(broker, topic, 1)
    raise_epoch(broker, topic, 2)
    found = ask(client, topic, 1)
    assert (found.error_code, found.leader_epoch, found.end_offset) == (0, 1, 0)
