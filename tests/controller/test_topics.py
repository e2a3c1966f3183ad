"""barnabas.controller.topics: commands become changes, or are refused."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.base.types import TopicPartition
from barnabas.broker.cluster import Cluster, load_image
from barnabas.controller.changes import (
    Change,
    InvalidAssignment,
    InvalidPartitions,
    TopicExists,
    UnknownTopic,
)
from barnabas.controller.topics import NewTopic, add_partitions, create_topic, delete_topic, set_config
from barnabas.metadata.deltas import BrokerUp, apply
from barnabas.metadata.image import BrokerImage, ClusterImage, ConfigResourceType, Endpoint
from barnabas.metadata.names import InvalidTopicName
from barnabas.metadata.placement import InvalidPartitionCount, InvalidReplicationFactor
from barnabas.store import paths
from barnabas.store.embedded import open_embedded

TOPIC_ID = bytes(range(16))
ENDPOINTS = {"PLAINTEXT": Endpoint("PLAINTEXT", "localhost", 9092)}


def image_of(*nodes: int) -> ClusterImage:
    return apply(ClusterImage(), [BrokerUp(BrokerImage(node, 1, ENDPOINTS)) for node in nodes])


def created(image: ClusterImage, new: NewTopic) -> Change:
    return create_topic(image, new, topic_id=TOPIC_ID, start_index=0)


def with_topic(image: ClusterImage, new: NewTopic) -> ClusterImage:
    return apply(image, created(image, new).deltas)


class TestCreate:
    def test_partitions_begin_in_epoch_0_with_every_replica_in_sync(self) -> None:
        image = with_topic(image_of(1, 2, 3), NewTopic("orders", 3, 2))
        topic = image.topics["orders"]
        assert topic.id == TOPIC_ID
        assert [p.leader for p in topic.partitions] == [1, 2, 3]
        assert all(p.leader_epoch == 0 and p.isr == p.replicas and len(p.isr) == 2 for p in topic.partitions)

    def test_an_assignment_is_taken_as_it_is(self) -> None:
        image = with_topic(image_of(1, 2), NewTopic("orders", assignment=[[2, 1], [1, 2]]))
        assert [p.replicas for p in image.topics["orders"].partitions] == [(2, 1), (1, 2)]

    def test_settings_come_with_it(self) -> None:
        image = with_topic(image_of(1), NewTopic("orders", config={"retention.ms": "5"}))
        assert image.config(ConfigResourceType.TOPIC, "orders") == {"retention.ms": "5"}

    def test_internal_topics_are_marked(self) -> None:
        assert with_topic(image_of(1), NewTopic("__consumer_offsets")).topics["__consumer_offsets"].internal

    @pytest.mark.parametrize(
        ("new", "error", "said"),
        [
            (NewTopic("a b"), InvalidTopicName, "'a b' contains"),
            (NewTopic("have"), TopicExists, "^Topic 'have' already exists.$"),
            (NewTopic("ha.ve_x"), InvalidTopicName, "collides with existing topic: ha_ve_x"),
            (NewTopic("t", 0), InvalidPartitionCount, "partitions"),
            (NewTopic("t", 1, 3), InvalidReplicationFactor, "only 2 broker"),
            (NewTopic("t", assignment=[]), InvalidAssignment, "^the assignment names no partition$"),
            (NewTopic("t", assignment=[[]]), InvalidAssignment, "^partition 0 has no replica$"),
            (NewTopic("t", assignment=[[1, 1]]), InvalidAssignment, "^partition 0 names a broker twice"),
            (NewTopic("t", assignment=[[1], [1, 2]]), InvalidAssignment, "different numbers of replicas$"),
            (NewTopic("t", assignment=[[9]]), InvalidAssignment, r"brokers that are not up: \[9\]$"),
        ],
    )
    def test_what_cannot_be_is_refused(self, new: NewTopic, error: type[Exception], said: str) -> None:
        image = image_of(1, 2)
        image = with_topic(image, NewTopic("have"))
        image = apply(
            image, create_topic(image, NewTopic("ha_ve_x"), topic_id=bytes(16), start_index=0).deltas
        )
        with pytest.raises(error, match=said):
            created(image, new)


class TestAddPartitions:
    def test_new_ones_follow_the_old(self) -> None:
        image = with_topic(image_of(1), NewTopic("orders", 2))
        image = apply(image, add_partitions(image, "orders", 5).deltas)
        assert len(image.topics["orders"].partitions) == 5

    @pytest.mark.parametrize(
        ("name", "total", "assignment", "error", "said"),
        [
            ("none", 3, None, UnknownTopic, "The topic 'none' does not exist."),
            ("orders", 2, None, InvalidPartitions, "Topic already has 2 partition(s)."),
            (
                "orders",
                1,
                None,
                InvalidPartitions,
                "The topic orders currently has 2 partition(s); 1 would not be an increase.",
            ),
            (
                "orders",
                4,
                [[1]],
                InvalidAssignment,
                "2 partitions are to be added, the assignment names 1",
            ),
            ("orders", 3, [[1, 2]], InvalidAssignment, "every partition of orders has 1 replicas"),
        ],
    )
    def test_what_cannot_be_is_refused(
        self,
        name: str,
        total: int,
        assignment: list[list[int]] | None,
        error: type[Exception],
        said: str,
    ) -> None:
        image = with_topic(image_of(1, 2), NewTopic("orders", 2))
        with pytest.raises(error) as caught:
            add_partitions(image, name, total, assignment)
        assert str(caught.value) == said


class TestConfig:
    def test_a_topic_that_is_not_there_has_no_settings(self) -> None:
        with pytest.raises(UnknownTopic):
            set_config(image_of(1), ConfigResourceType.TOPIC, "none", {})

    def test_setting_nothing_where_nothing_was_writes_nothing(self) -> None:
        assert set_config(image_of(1), ConfigResourceType.BROKER, "", {}).operations == ()


def test_a_topic_that_is_not_there_cannot_be_deleted() -> None:
    with pytest.raises(UnknownTopic, match="does not exist"):
        delete_topic(image_of(1), "none")


def test_the_tree_says_after_every_change_what_the_image_says(tmp_path: Path) -> None:
    steps: list[Callable[[ClusterImage], Change]] = [
        lambda image: created(image, NewTopic("orders", 2, config={"retention.ms": "5"})),
        lambda image: add_partitions(image, "orders", 4),
        lambda image: set_config(image, ConfigResourceType.TOPIC, "orders", {"retention.ms": "7"}),
        lambda image: set_config(image, ConfigResourceType.BROKER, "", {"log.cleaner.threads": "2"}),
        lambda image: set_config(image, ConfigResourceType.BROKER, "1", {"log.cleaner.threads": "3"}),
        lambda image: set_config(image, ConfigResourceType.BROKER, "1", {}),
        lambda image: delete_topic(image, "orders"),
    ]

    async def main() -> None:
        store = await open_embedded(str(tmp_path / "tree"))
        before = await load_image(store, new_cluster_id=lambda: "cluster")
        cluster = Cluster(store, apply(before, [BrokerUp(BrokerImage(1, 1, ENDPOINTS))]))
        for step in steps:
            await cluster.commit(step)
            read = await load_image(store, new_cluster_id=lambda: "other")
            assert read.topics == cluster.image.topics
            assert read.configs == cluster.image.configs
            assert read.cluster_id == "cluster"
        assert await store.exists(paths.partition(TopicPartition("orders", 0))) is None
        await store.close()

    asyncio.run(main())
