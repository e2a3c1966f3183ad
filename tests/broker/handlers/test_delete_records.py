"""barnabas.broker.handlers.delete_records: a partition's start moves up."""

import pytest

from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tests.broker._calls import batch, fetch, list_offset, offsets, produce
from tests.broker._groups import find_coordinator
from tests.broker._wire import WireClient
from tests.broker.conftest import MakeTopic

VERSIONS = range(3)
EARLIEST = -2


def delete(
    client: WireClient, topic: str, offset: int, version: int = 2, *, partition: int = 0
) -> DeleteRecordsPartitionResult:
    asked = DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[asked])], timeout_ms=1)
    (answer,) = client.call(request, version, DeleteRecordsResponse).topics
    assert answer.name == topic
    (result,) = answer.partitions
    assert result.partition_index == partition
    return result


@pytest.fixture
def filled(client: WireClient, topic: str) -> str:
    for _ in range(3):
        produce(client, topic, batch(b"a", b"b"))
    return topic


@pytest.mark.parametrize("version", VERSIONS)
def test_readers_find_the_new_start(client: WireClient, filled: str, version: int) -> None:
    result = delete(client, filled, 3, version)
    assert (result.error_code, result.low_watermark) == (0, 3)
    assert list_offset(client, filled, EARLIEST).offset == 3
    assert fetch(client, filled, 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    part = fetch(client, filled, 3)
    assert (part.log_start_offset, offsets(part)) == (3, [2, 3, 4, 5])


@pytest.mark.parametrize("version", VERSIONS)
def test_minus_one_is_all(client: WireClient, filled: str, version: int) -> None:
    assert delete(client, filled, -1, version).low_watermark == 6
    assert offsets(fetch(client, filled, 6)) == []
    assert produce(client, filled, batch(b"x")).base_offset == 6


def test_an_offset_below_the_start_leaves_it(client: WireClient, filled: str) -> None:
    delete(client, filled, 4)
    result = delete(client, filled, 1)
    assert (result.error_code, result.low_watermark) == (0, 4)


@pytest.mark.parametrize("offset", [7, -2])
def test_outside_the_log_is_out_of_range(client: WireClient, filled: str, offset: int) -> None:
    result = delete(client, filled, offset)
    assert (result.error_code, result.low_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_an_unknown_partition_is_told(client: WireClient, topic: str) -> None:
    for name, index in (("nowhere", 0), (topic, 3)):
        result = delete(client, name, 0, partition=index)
        assert (result.error_code, result.low_watermark) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_a_compacted_topic_keeps_its_records(client: WireClient, make_topic: MakeTopic) -> None:
    compacted, both = make_topic(cleanup_policy="compact"), make_topic(cleanup_policy="compact,delete")
    assert delete(client, compacted, 0).error_code == ErrorCode.POLICY_VIOLATION
    assert delete(client, both, 0).error_code == 0


def test_so_do_the_brokers_own_topics(client: WireClient) -> None:
    find_coordinator(client)
    assert delete(client, "__consumer_offsets", 0).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
