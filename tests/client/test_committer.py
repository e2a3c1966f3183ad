"""Commits: in order, only what changed, and never in the name of a member that is none."""

import asyncio
import logging
from typing import cast

import pytest

from barnabas.base.errors import Misuse
from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.committer import Committer, Offsets
from barnabas.client.errors import CommitFailed, KafkaError
from barnabas.client.group_member import GroupMember
from barnabas.client.offsets import committed_offsets
from barnabas.client.subscription import OffsetAndMetadata, Subscription
from tests.client._kit import Client

pytestmark = pytest.mark.slow


@pytest.fixture
def place(admin: Admin, topic: str) -> TopicPartition:
    admin.create_topic(topic, 1)
    return TopicPartition(topic, 0)


def test_commits_keep_their_order(bootstrap: str, place: TopicPartition, group: str) -> None:
    told: list[int] = []

    async def main() -> None:
        async with Client(bootstrap) as cluster:
            committer = Committer(cluster, group, Subscription(), timeout_ms=5000)

            def tell(offsets: Offsets, error: KafkaError | None) -> None:
                assert error is None
                told.append(offsets[place].offset)

            for offset in range(20):
                committer.commit_soon({place: OffsetAndMetadata(offset)}, tell)
            await committer.drain()
            found = await committed_offsets(cluster, group, [place], timeout_ms=5000)
            assert found[place].offset == 19
            assert committer.counters.commits == 20

    asyncio.run(main())
    assert told == list(range(20))


def test_only_what_changed_is_committed_by_itself(bootstrap: str, place: TopicPartition, group: str) -> None:
    async def main() -> None:
        async with Client(bootstrap) as cluster:
            committer = Committer(cluster, group, Subscription(), timeout_ms=5000)
            await committer.commit({place: OffsetAndMetadata(3)})
            committer.commit_changed({place: OffsetAndMetadata(3)})
            await committer.drain()
            assert committer.counters.commits == 1
            committer.forget([place])
            committer.commit_changed({place: OffsetAndMetadata(3)})
            await committer.drain()
            assert committer.counters.commits == 2

    asyncio.run(main())


def test_a_failure_nobody_waits_for_is_logged(
    bootstrap: str, place: TopicPartition, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with Client(bootstrap) as cluster:
            committer = Committer(cluster, group, Subscription(), timeout_ms=5000)
            with caplog.at_level(logging.WARNING):
                committer.commit_soon({place: OffsetAndMetadata(1, "x" * 10_000)})
                await committer.drain()
            assert committer.counters.failed == 1

    asyncio.run(main())
    assert "offsets were not committed" in caplog.text


def test_a_member_without_a_generation_commits_nothing(
    bootstrap: str, place: TopicPartition, group: str
) -> None:
    class Lost:
        generation = -1

        def committing_failed(self, error: KafkaError) -> None:
            assert isinstance(error, CommitFailed)

    async def main() -> None:
        async with Client(bootstrap) as cluster:
            subscription = Subscription()
            subscription.subscribe([place.topic])
            committer = Committer(cluster, group, subscription, timeout_ms=5000)
            committer.member = cast(GroupMember, Lost())
            with pytest.raises(CommitFailed, match="no member of group"):
                await committer.commit({place: OffsetAndMetadata(1)})
            assert await committed_offsets(cluster, group, [place], timeout_ms=5000) == {}

    asyncio.run(main())


def test_without_a_group_there_is_no_commit(bootstrap: str, place: TopicPartition) -> None:
    async def main() -> None:
        async with Client(bootstrap) as cluster:
            committer = Committer(cluster, None, Subscription(), timeout_ms=5000)
            with pytest.raises(Misuse, match=r"committing needs group\.id"):
                await committer.commit({place: OffsetAndMetadata(1)})

    asyncio.run(main())
