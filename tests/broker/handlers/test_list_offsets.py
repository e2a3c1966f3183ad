"""barnabas.broker.handlers.list_offsets: offsets by time and by the special times (WIRE 2.9)."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.testing import Broker
from tests.broker._calls import READ_COMMITTED, batch, list_offset, partition_of, produce
from tests.broker._wire import WireClient
from tests.broker.conftest import MakeTopic
from tests.broker.handlers.test_fetch import marker, transactional

VERSIONS = range(12)
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = -1, -2, -3, -4, -5, -6


@pytest.fixture
def filled(client: WireClient, topic: str) -> str:
    """Offsets 0 to 3 with times 100, 300, 200, 300."""
    for time in (100, 300, 200, 300):
        assert produce(client, topic, batch(b"x", timestamp=time)).error_code == 0
    return topic


def old_style(client: WireClient, topic: str, timestamp: int, count: int = 10) -> list[int]:
    part = ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=count)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[part])])
    (answer,) = client.call(request, 0, ListOffsetsResponse).topics
    (found,) = answer.partitions
    assert found.error_code == 0
    return found.old_style_offsets


class TestEveryVersionFrom1:
    @pytest.mark.parametrize("version", VERSIONS[1:])
    def test_latest_and_earliest_have_no_time(self, client: WireClient, filled: str, version: int) -> None:
        epoch = 0 if version >= 4 else -1
        latest = list_offset(client, filled, LATEST, version=version)
        assert (latest.error_code, latest.offset, latest.timestamp, latest.leader_epoch) == (0, 4, -1, epoch)
        earliest = list_offset(client, filled, EARLIEST, version=version)
        assert (earliest.error_code, earliest.offset, earliest.timestamp) == (0, 0, -1)
        assert earliest.leader_epoch == epoch

    @pytest.mark.parametrize("version", VERSIONS[1:])
    def test_a_time_finds_the_first_record_that_is_not_older(
        self, client: WireClient, filled: str, version: int
    ) -> None:
        for asked, offset, time in ((0, 0, 100), (100, 0, 100), (101, 1, 300), (300, 1, 300)):
            found = list_offset(client, filled, asked, version=version)
            assert (found.error_code, found.offset, found.timestamp) == (0, offset, time)
            assert found.leader_epoch == (0 if version >= 4 else -1)

    @pytest.mark.parametrize("version", VERSIONS[1:])
    def test_nothing_found_is_minus_one_without_an_error(
        self, client: WireClient, filled: str, version: int
    ) -> None:
        found = list_offset(client, filled, 301, version=version)
        assert (found.error_code, found.offset, found.timestamp, found.leader_epoch) == (0, -1, -1, -1)

    @pytest.mark.parametrize("version", VERSIONS[1:])
    @pytest.mark.parametrize(
        ("special", "first_version", "offset", "time"),
        [
            (MAX_TIMESTAMP, 7, 1, 300),
            (EARLIEST_LOCAL, 8, 0, -1),
            (LATEST_TIERED, 9, -1, -1),
            (PENDING_UPLOAD, 11, 0, -1),
            (-7, 99, -1, -1),
        ],
    )
    def test_special_times_came_one_by_one(
        self,
        client: WireClient,
        filled: str,
        version: int,
        special: int,
        first_version: int,
        offset: int,
        time: int,
    ) -> None:
        found = list_offset(client, filled, special, version=version)
        if version < first_version:
            assert (found.error_code, found.offset) == (ErrorCode.UNSUPPORTED_VERSION, -1)
        else:
            assert (found.error_code, found.offset, found.timestamp) == (0, offset, time)

    @pytest.mark.parametrize("version", VERSIONS[1:])
    @pytest.mark.parametrize("index", [0, 4])
    def test_an_unknown_partition_is_told(
        self, client: WireClient, topic: str, version: int, index: int
    ) -> None:
        name = topic if index else "nowhere"
        found = list_offset(client, name, LATEST, version=version, partition=index)
        assert (found.partition_index, found.error_code) == (index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert (found.offset, found.timestamp, found.leader_epoch) == (-1, -1, -1)


class TestAnEmptyLog:
    @pytest.mark.parametrize("special", [LATEST, EARLIEST, EARLIEST_LOCAL])
    def test_begins_and_ends_at_zero(self, client: WireClient, topic: str, special: int) -> None:
        found = list_offset(client, topic, special, version=8)
        assert (found.error_code, found.offset, found.timestamp) == (0, 0, -1)

    @pytest.mark.parametrize("asked", [0, 1_000, MAX_TIMESTAMP])
    def test_has_no_record_of_any_time(self, client: WireClient, topic: str, asked: int) -> None:
        found = list_offset(client, topic, asked)
        assert (found.error_code, found.offset, found.timestamp) == (0, -1, -1)


class TestIsolation:
    def test_latest_is_the_last_stable_offset_for_readers_of_committed_data(
        self, broker: Broker, client: WireClient, topic: str
    ) -> None:
        produce(client, topic, batch(b"free", timestamp=50))
        transactional(broker, topic, b"open", producer_id=3)
        for version in range(2, 12):
            assert list_offset(client, topic, LATEST, version=version).offset == 2
            found = list_offset(client, topic, LATEST, version=version, isolation=READ_COMMITTED)
            assert found.offset == 1
        marker(broker, topic, producer_id=3, committed=True)
        assert list_offset(client, topic, LATEST, isolation=READ_COMMITTED).offset == 3

    def test_a_time_beyond_the_last_stable_offset_is_not_found(
        self, broker: Broker, client: WireClient, topic: str
    ) -> None:
        produce(client, topic, batch(b"free", timestamp=50))
        transactional(broker, topic, b"open", producer_id=3)
        assert list_offset(client, topic, 51).offset == 1
        assert list_offset(client, topic, 51, isolation=READ_COMMITTED).offset == -1


class TestEpochs:
    def test_an_older_epoch_is_fenced_and_a_newer_one_unknown(
        self, broker: Broker, client: WireClient, filled: str
    ) -> None:
        partition = partition_of(broker, filled)

        async def next_epoch() -> None:
            partition.lead(epoch=1, replicas=[1], in_sync=[1], high_watermark=4)

        broker.run(next_epoch())
        for version in range(4, 12):
            fenced = list_offset(client, filled, LATEST, version=version, leader_epoch=0)
            assert (fenced.error_code, fenced.offset) == (ErrorCode.FENCED_LEADER_EPOCH, -1)
            unknown = list_offset(client, filled, LATEST, version=version, leader_epoch=2)
            assert (unknown.error_code, unknown.offset) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1)
            assert list_offset(client, filled, LATEST, version=version, leader_epoch=1).error_code == 0
        assert list_offset(client, filled, LATEST).leader_epoch == 1
        assert list_offset(client, filled, EARLIEST).leader_epoch == 0


class TestVersion0:
    def test_latest_lists_the_end_and_the_segments_before_it(
        self, broker: Broker, client: WireClient, make_topic: MakeTopic
    ) -> None:
        topic = make_topic(segment_bytes="1048576")
        partition = partition_of(broker, topic)
        for _ in range(3):
            produce(client, topic, batch(b"a", b"b", timestamp=100))

            async def roll() -> None:
                partition.log.roll(0)

            broker.run(roll())
        assert old_style(client, topic, LATEST) == [6, 4, 2, 0]
        assert old_style(client, topic, LATEST, count=2) == [6, 4]
        produce(client, topic, batch(b"c", timestamp=100))
        assert old_style(client, topic, LATEST) == [7, 6, 4, 2, 0]
        assert old_style(client, topic, EARLIEST) == [0]
        assert old_style(client, topic, EARLIEST, count=0) == []

    def test_a_special_time_of_later_versions_is_unsupported(self, client: WireClient, topic: str) -> None:
        part = ListOffsetsPartition(partition_index=0, timestamp=MAX_TIMESTAMP)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[part])])
        (answer,) = client.call(request, 0, ListOffsetsResponse).topics
        assert answer.partitions[0].error_code == ErrorCode.UNSUPPORTED_VERSION

    def test_an_unknown_topic_is_told(self, client: WireClient) -> None:
        part = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="no", partitions=[part])])
        (answer,) = client.call(request, 0, ListOffsetsResponse).topics
        assert answer.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert answer.partitions[0].old_style_offsets == []


def test_a_partition_asked_for_twice_is_refused_both_times(client: WireClient, topic: str) -> None:
    part = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[part, part])]
    )
    (answer,) = client.call(request, 7, ListOffsetsResponse).topics
    assert [found.error_code for found in answer.partitions] == [ErrorCode.INVALID_REQUEST] * 2
