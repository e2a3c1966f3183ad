"""Groups are listed with their states, described with what each member reads, and deleted when empty."""

import asyncio

import pytest

from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.admin_types import OffsetReset
from barnabas.client.aio import Admin as AsyncAdmin
from barnabas.client.cluster import CoordinatorKind
from barnabas.client.errors import GroupNotEmpty, UnknownGroup, error_for
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.client._kit import Client, Member, settings_for


class TestGroups:
    def test_a_group_with_a_member_shows_what_the_member_reads(
        self, admin: Admin, bootstrap: str, topic: str, group: str
    ) -> None:
        admin.create_topic(topic, 2)

        async def main() -> None:
            async with AsyncAdmin(settings_for(bootstrap)) as aio, Member(bootstrap, group, topic, [0, 1]):
                found = await aio.describe_group(group)
                assert (found.state, found.protocol_type, found.assignor) == ("Stable", "consumer", "range")
                (member,) = found.members
                assert member.client_id == "member"
                assert member.host == "127.0.0.1"
                assert member.subscription == (topic,)
                assert member.assignment == (TopicPartition(topic, 0), TopicPartition(topic, 1))
                assert found.owner_of(TopicPartition(topic, 1)) == member
                assert found.owner_of(TopicPartition("other", 1)) is None
                stable = await aio.list_groups(states=["Stable"])
                assert group in [each.id for each in stable]
                empty = await aio.list_groups(states=["Empty"])
                assert group not in [each.id for each in empty]

        asyncio.run(main())

    def test_a_group_with_members_is_neither_deleted_nor_moved(
        self, admin: Admin, bootstrap: str, topic: str, group: str
    ) -> None:
        admin.create_topic(topic, 1)

        async def main() -> None:
            async with AsyncAdmin(settings_for(bootstrap)) as aio, Member(bootstrap, group, topic, [0]):
                with pytest.raises(GroupNotEmpty):
                    (await aio.delete_groups([group]))[group]
                with pytest.raises(GroupNotEmpty, match=r"is Stable with 1 members; stop them first"):
                    await aio.reset_group_offsets(group, OffsetReset.latest(), topics=[topic], dry_run=True)
                with pytest.raises(GroupNotEmpty, match=r"has members; stop them first"):
                    await aio.alter_group_offsets(group, {TopicPartition(topic, 0): 0})

        asyncio.run(main())

    def test_a_group_of_the_newer_protocol_is_described_too(
        self, admin: Admin, bootstrap: str, topic: str, group: str
    ) -> None:
        admin.create_topic(topic, 2)

        async def main() -> None:
            async with AsyncAdmin(settings_for(bootstrap)) as aio, Client(bootstrap) as cluster:
                node = await cluster.coordinator(CoordinatorKind.GROUP, group)
                await cluster.ready(node)
                if cluster.version_of(node, ApiKey.CONSUMER_GROUP_HEARTBEAT) is None:
                    pytest.skip("the broker does not offer the newer protocol")
                join = ConsumerGroupHeartbeatRequest(
                    group_id=group,
                    member_id="member-1",
                    member_epoch=0,
                    rebalance_timeout_ms=30_000,
                    subscribed_topic_names=[topic],
                    topic_partitions=[],
                )

                async def beat() -> None:
                    answer = await cluster.request(node, join)
                    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
                    if answer.error_code:
                        raise error_for(answer.error_code, answer.error_message)
                    join.member_epoch = answer.member_epoch

                await cluster.retry(beat, timeout_ms=10_000)
                async with asyncio.timeout(30):
                    while not (found := await aio.describe_group(group)).members[0].target:
                        await beat()  # the coordinator assigns beside the join, when it knows the topic
                assert (found.type, found.protocol_type) == ("consumer", "consumer")
                (member,) = found.members
                assert member.subscription == (topic,)
                assert set(member.target or ()) == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
                assert group in [each.id for each in await aio.list_groups(types=["consumer"])]

        asyncio.run(main())

    def test_each_group_has_its_own_outcome(self, admin: Admin, topic: str, group: str) -> None:
        admin.create_topic(topic, 1)
        admin.alter_group_offsets(group, {TopicPartition(topic, 0): 0}).check()
        described = admin.describe_groups([group, f"{group}-missing"])
        assert described[group].state == "Empty"
        with pytest.raises(UnknownGroup, match=f"{group}-missing"):
            described[f"{group}-missing"]
        deleted = admin.delete_groups([f"{group}-missing", group])
        assert deleted[group] is None
        assert isinstance(deleted.errors[f"{group}-missing"], UnknownGroup)
        assert group not in [each.id for each in admin.list_groups()]
