"""The cluster as this broker knows it: the image, the tree behind it, and the one way to change both.

C1  Changes are made one at a time: each is decided on the newest image, written to the tree, then applied.
C2  The tree comes first: an image never shows what is not durable.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from barnabas.base.types import TopicPartition, Uuid
from barnabas.controller.changes import Change
from barnabas.metadata.deltas import (
    ClusterNamed,
    ConfigChanged,
    ControllerChanged,
    Delta,
    FeaturesChanged,
    TopicCreated,
    apply,
)
from barnabas.metadata.image import ClusterImage, ConfigResourceType, PartitionImage, TopicImage
from barnabas.metadata.names import is_internal
from barnabas.store import paths
from barnabas.store.documents import (
    FinalizedFeatures,
    PartitionState,
    TopicAssignment,
    decode_cluster_id,
    decode_config,
    decode_controller_epoch,
    encode_cluster_id,
)
from barnabas.store.errors import DocumentFault
from barnabas.store.tree import Store

__all__ = ["Cluster", "Follower", "load_image"]

Follower = Callable[[ClusterImage, Sequence[Delta]], Awaitable[None]]
"""Brings one part of the broker in line with a new image; gets it and the deltas that led to it."""


class Cluster:
    """Holds the newest image.  Followers hear of every change, in order, before `commit` returns."""

    __slots__ = ("_followers", "_lock", "_store", "image")

    def __init__(self, store: Store, image: ClusterImage) -> None:
        self._store = store
        self._lock = asyncio.Lock()
        self._followers: list[Follower] = []
        self.image = image

    def has_partition(self, topic: str, partition: int) -> bool:
        """Whether the partition exists; the coordinators' `Topics` port."""
        return self.image.partition(topic, partition) is not None

    def follow(self, follower: Follower) -> None:
        self._followers.append(follower)

    async def commit(self, decide: Callable[[ClusterImage], Change]) -> Change:
        """Decides, writes, applies.  Raises what `decide` refuses; then nothing has changed."""
        async with self._lock:
            change = decide(self.image)
            image = apply(self.image, change.deltas)
            if change.operations:
                await self._store.transact(change.operations)
            self.image = image
            for follower in self._followers:
                await follower(self.image, change.deltas)
            return change


async def load_image(store: Store, *, new_cluster_id: Callable[[], str]) -> ClusterImage:
    """The image that the tree describes; a new tree gets its fixed nodes and a cluster id."""
    for path in paths.PERSISTENT_PATHS:
        await store.ensure(path)
    deltas: list[Delta] = [ClusterNamed(await _cluster_id(store, new_cluster_id))]
    if await store.exists(paths.CONTROLLER_EPOCH) is not None:
        data, _ = await store.get(paths.CONTROLLER_EPOCH)
        deltas.append(ControllerChanged(-1, decode_controller_epoch(data)))
    if await store.exists(paths.FEATURE) is not None:
        data, stat = await store.get(paths.FEATURE)
        deltas.append(FeaturesChanged(FinalizedFeatures.decode(data).levels, stat.version))
    names = await store.children(paths.TOPICS)
    deltas += [TopicCreated(await _load_topic(store, name)) for name in names]
    for kind, entity in ((ConfigResourceType.TOPIC, "topics"), (ConfigResourceType.BROKER, "brokers")):
        for name in await store.children(f"/config/{entity}"):
            path = paths.config(entity, name)
            data, _ = await store.get(path)
            if values := decode_config(path, data):
                resource = "" if name == paths.DEFAULT_ENTITY else name
                deltas.append(ConfigChanged((kind, resource), values))
    return apply(ClusterImage(), deltas)


async def _cluster_id(store: Store, new_cluster_id: Callable[[], str]) -> str:
    if await store.exists(paths.CLUSTER_ID) is None:
        await store.ensure("/cluster")
        await store.create(paths.CLUSTER_ID, encode_cluster_id(new_cluster_id()))
    data, _ = await store.get(paths.CLUSTER_ID)
    return decode_cluster_id(data)


async def _load_topic(store: Store, name: str) -> TopicImage:
    data, _ = await store.get(paths.topic(name))
    assignment = TopicAssignment.decode(name, data)
    topic_id: Uuid | None = assignment.topic_id
    if topic_id is None:
        raise DocumentFault(f"{paths.topic(name)}: the topic has no id")
    partitions: list[PartitionImage] = []
    for index in sorted(assignment.partitions):
        replicas = assignment.partitions[index]
        tp = TopicPartition(name, index)
        data, stat = await store.get(paths.partition_state(tp))
        state = PartitionState.decode(tp, data)
        partitions.append(
            PartitionImage(
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=state.isr,
                replicas=replicas.replicas,
                partition_epoch=stat.version,
                adding=replicas.adding,
                removing=replicas.removing,
            )
        )
    return TopicImage(name, topic_id, tuple(partitions), internal=is_internal(name))
