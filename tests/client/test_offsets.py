"""Questions about offsets, asked of a real broker and of versions that it no longer shows."""

import asyncio

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.errors import CommitFailed, KafkaError, UnknownTopic
from barnabas.client.offsets import (
    EARLIEST,
    LATEST,
    EpochEnd,
    GroupIdentity,
    ask_epoch_ends,
    ask_offsets,
    commit_offsets,
    committed_offsets,
    list_offsets,
)
from barnabas.client.subscription import OffsetAndMetadata
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from barnabas.protocol.schema import Message
from barnabas.protocol.versions import Versions
from tests.client._fake import FakeBroker
from tests.client._kit import Client
from tests.client._records import produce

TP = TopicPartition("t", 0)


@pytest.mark.slow
class TestARealBroker:
    def test_starts_ends_and_times(self, bootstrap: str, admin: Admin, topic: str) -> None:
        admin.create_topic(topic, 2, configs={"retention.ms": "-1"})
        produce(bootstrap, topic, [b"a"], timestamp=1000)
        produce(bootstrap, topic, [b"b"], timestamp=2000)
        first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

        async def main() -> None:
            async with Client(bootstrap) as cluster:
                found = await list_offsets(cluster, {first: 1500, second: LATEST}, timeout_ms=5000)
                assert (found[first].offset, found[first].timestamp) == (1, 2000)
                assert found[second].offset == 0
                found = await list_offsets(cluster, {first: EARLIEST, second: 5}, timeout_ms=5000)
                assert (found[first].offset, found[second].offset) == (0, -1)
                assert await list_offsets(cluster, {}, timeout_ms=1) == {}
                ends = await ask_epoch_ends(cluster, {first: 0})
                assert ends.found == {first: EpochEnd(0, 2)}

        asyncio.run(main())

    def test_a_topic_that_is_not_there(self, bootstrap: str, topic: str) -> None:
        async def main() -> None:
            async with Client(bootstrap) as cluster:
                with pytest.raises(UnknownTopic):
                    await list_offsets(cluster, {TopicPartition(topic, 0): LATEST}, timeout_ms=50)
                outcome = await ask_offsets(cluster, {TopicPartition(topic, 0): LATEST})
                assert outcome.found == {}
                assert [error.retriable for error in outcome.failed.values()] == [True]

        asyncio.run(main())

    def test_commits_are_found_again(self, bootstrap: str, admin: Admin, topic: str, group: str) -> None:
        admin.create_topic(topic, 2)
        first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

        async def main() -> None:
            async with Client(bootstrap) as cluster:
                await commit_offsets(cluster, GroupIdentity(group), {}, timeout_ms=5000)
                await commit_offsets(
                    cluster, GroupIdentity(group), {first: OffsetAndMetadata(7, "note", 0)}, timeout_ms=5000
                )
                for wanted in ([first, second], None):
                    found = await committed_offsets(cluster, group, wanted, timeout_ms=5000)
                    assert found == {first: OffsetAndMetadata(7, "note", 0)}
                with pytest.raises(CommitFailed, match="has rebalanced without this member"):
                    await commit_offsets(
                        cluster,
                        GroupIdentity(group, 9, "nobody"),
                        {first: OffsetAndMetadata(8)},
                        timeout_ms=5000,
                    )

        asyncio.run(main())


def coordinator(broker: FakeBroker) -> Message:
    found = Coordinator(key="g", node_id=broker.node, host="127.0.0.1", port=broker.port)
    return FindCoordinatorResponse(coordinators=[found])


class TestAScriptedBroker:
    def test_older_brokers_are_asked_for_one_group(self) -> None:
        def answer(message: Message) -> Message:
            assert isinstance(message, OffsetFetchRequest)
            assert message.group_id == "g"
            part = OffsetFetchResponsePartition(partition_index=0, committed_offset=3, metadata=None)
            return OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=[part])])

        async def main() -> None:
            async with FakeBroker() as broker:
                broker.offered[ApiKey.OFFSET_FETCH] = Versions(0, 5)
                broker.responses[ApiKey.FIND_COORDINATOR] = lambda message: coordinator(broker)
                broker.responses[ApiKey.OFFSET_FETCH] = answer
                async with Client(broker.address) as cluster:
                    found = await committed_offsets(cluster, "g", [TP], timeout_ms=5000)
            assert found == {TP: OffsetAndMetadata(3)}

        asyncio.run(main())

    def test_a_coordinator_that_moved_is_looked_up_again(self) -> None:
        codes = [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE]

        def answer(message: Message) -> Message:
            part = OffsetCommitResponsePartition(partition_index=0, error_code=codes.pop(0))
            return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=[part])])

        async def main() -> None:
            async with FakeBroker() as broker:
                broker.responses[ApiKey.FIND_COORDINATOR] = lambda message: coordinator(broker)
                broker.responses[ApiKey.OFFSET_COMMIT] = answer
                async with Client(broker.address) as cluster:
                    await commit_offsets(
                        cluster, GroupIdentity("g"), {TP: OffsetAndMetadata(1)}, timeout_ms=5000
                    )
                assert broker.count(ApiKey.FIND_COORDINATOR) == 2

        asyncio.run(main())

    def test_a_refusal_names_group_and_partition(self) -> None:
        def answer(message: Message) -> Message:
            part = OffsetCommitResponsePartition(
                partition_index=0, error_code=ErrorCode.OFFSET_METADATA_TOO_LARGE
            )
            return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=[part])])

        async def main() -> None:
            async with FakeBroker() as broker:
                broker.responses[ApiKey.FIND_COORDINATOR] = lambda message: coordinator(broker)
                broker.responses[ApiKey.OFFSET_COMMIT] = answer
                async with Client(broker.address) as cluster:
                    with pytest.raises(KafkaError, match=r"group 'g', t-0: .*OFFSET_METADATA_TOO_LARGE"):
                        await commit_offsets(
                            cluster, GroupIdentity("g"), {TP: OffsetAndMetadata(1)}, timeout_ms=5000
                        )

        asyncio.run(main())
