"""barnabas.controller.startup: what a single broker writes when it starts."""

import asyncio
from pathlib import Path

from barnabas.base.types import TopicPartition
from barnabas.broker.cluster import Cluster, load_image
from barnabas.controller.startup import register, take_leadership
from barnabas.controller.topics import NewTopic, create_topic
from barnabas.metadata.image import ClusterImage, Endpoint
from barnabas.store import paths
from barnabas.store.documents import PartitionState
from barnabas.store.embedded import open_embedded

HERE = [Endpoint("PLAINTEXT", "localhost", 9092)]


async def start_and_stop(path: Path) -> ClusterImage:
    """One life of a broker on the tree; gives the image it had."""
    store = await open_embedded(str(path))
    cluster = Cluster(store, await load_image(store, new_cluster_id=lambda: "c"))
    known = await store.exists(paths.CONTROLLER_EPOCH) is not None
    await cluster.commit(
        lambda image: register(
            image, node_id=1, endpoints=HERE, rack="r", now_ms=1, controller_epoch_exists=known
        )
    )
    await cluster.commit(lambda image: take_leadership(image, 1))
    if "orders" not in cluster.image.topics:
        await cluster.commit(
            lambda image: create_topic(image, NewTopic("orders", 2), topic_id=bytes(16), start_index=0)
        )
    data, _ = await store.get(paths.partition_state(TopicPartition("orders", 1)))
    stored = PartitionState.decode(TopicPartition("orders", 1), data)
    assert stored.leader_epoch == cluster.image.topics["orders"].partitions[1].leader_epoch
    await store.close()
    return cluster.image


def test_epochs_rise_at_every_start_and_never_go_back(tmp_path: Path) -> None:
    lives = [asyncio.run(start_and_stop(tmp_path / "tree")) for _ in range(3)]
    assert [life.controller_epoch for life in lives] == [1, 2, 3]
    assert [life.topics["orders"].partitions[0].leader_epoch for life in lives] == [0, 1, 2]
    assert [life.brokers[1].epoch for life in lives] == [1, 2, 3]


def test_the_broker_and_the_controller_are_registered(tmp_path: Path) -> None:
    image = asyncio.run(start_and_stop(tmp_path / "tree"))
    assert image.controller_id == 1
    assert image.brokers[1].rack == "r"
    assert image.brokers[1].endpoints["PLAINTEXT"].port == 9092


def test_a_partition_is_led_from_here_with_this_replica_alone(tmp_path: Path) -> None:
    image = asyncio.run(start_and_stop(tmp_path / "tree"))
    state = image.topics["orders"].partitions[0]
    assert (state.leader, state.isr) == (1, (1,))
