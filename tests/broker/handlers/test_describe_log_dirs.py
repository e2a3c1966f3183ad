"""barnabas.broker.handlers.describe_log_dirs: what lies where, and how large it is."""

import pytest

from barnabas.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from barnabas.testing import Broker
from tests.broker._calls import batch, produce
from tests.broker._wire import WireClient
from tests.broker.conftest import MakeTopic

VERSIONS = range(6)


def ask(client: WireClient, version: int, topics: dict[str, list[int]] | None) -> DescribeLogDirsResult:
    wanted = None
    if topics is not None:
        wanted = [DescribableLogDirTopic(topic=name, partitions=parts) for name, parts in topics.items()]
    response = client.call(DescribeLogDirsRequest(topics=wanted), version, DescribeLogDirsResponse)
    assert response.error_code == 0
    (folder,) = response.results
    assert folder.error_code == 0
    return folder


@pytest.mark.parametrize("version", VERSIONS)
def test_the_folder_and_its_partitions(
    broker: Broker, client: WireClient, make_topic: MakeTopic, version: int
) -> None:
    topic = make_topic(2)
    data = batch(b"x" * 100)
    produce(client, topic, data, partition=1)
    folder = ask(client, version, {topic: [0, 1, 7], "nowhere": [0]})
    assert folder.log_dir == broker.data_dir
    (found,) = folder.topics
    assert found.name == topic
    assert {part.partition_index: part.partition_size for part in found.partitions} == {0: 0, 1: len(data)}
    assert {(part.offset_lag, part.is_future_key) for part in found.partitions} == {(0, False)}
    if version >= 4:
        assert 0 < folder.usable_bytes <= folder.total_bytes
    else:
        assert (folder.total_bytes, folder.usable_bytes) == (-1, -1)


@pytest.mark.parametrize("version", VERSIONS)
def test_null_is_everything_and_an_empty_list_nothing(client: WireClient, topic: str, version: int) -> None:
    assert topic in {found.name for found in ask(client, version, None).topics}
    assert ask(client, version, {}).topics == []
