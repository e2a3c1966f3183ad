"""The inner parts of a broker without its network: tree, image, settings, topics, logs."""

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barnabas.base.clock import ManualClock
from barnabas.broker.cluster import Cluster, load_image
from barnabas.broker.configs import ConfigAdmin
from barnabas.broker.partitions import PartitionTable
from barnabas.broker.replicas import LocalReplicas
from barnabas.broker.topics import TopicAdmin
from barnabas.controller.startup import register, take_leadership
from barnabas.log.directories import LogDirectories
from barnabas.log.files import OsFiles
from barnabas.metadata.image import Endpoint
from barnabas.replication.partition import Partition
from barnabas.store import paths
from barnabas.store.embedded import EmbeddedStore, open_embedded

NODE = 1
ENDPOINTS = [Endpoint("PLAINTEXT", "localhost", 9092)]


@dataclass(slots=True)
class Parts:
    """What the tests reach; every part is the real one."""

    store: EmbeddedStore
    cluster: Cluster
    configs: ConfigAdmin
    topics: TopicAdmin
    clock: ManualClock


@dataclass(slots=True)
class LogParts(Parts):
    """The same with logs, brought in line by `replicas`."""

    directories: LogDirectories
    partitions: PartitionTable
    replicas: LocalReplicas
    led: list[Partition]
    gone: list[Partition]
    moved: list[object]


@asynccontextmanager
async def open_parts(folder: Path, static: Mapping[str, str] | None = None) -> AsyncIterator[Parts]:
    """Opens the tree in `folder` and registers broker 1, as a start does."""
    clock = ManualClock()
    store = await open_embedded(str(folder / "metadata.db"), clock=clock)
    try:
        cluster = Cluster(store, await load_image(store, new_cluster_id=lambda: "cluster"))
        known = await store.exists(paths.CONTROLLER_EPOCH) is not None
        await cluster.commit(
            lambda image: register(
                image,
                node_id=NODE,
                endpoints=ENDPOINTS,
                rack=None,
                now_ms=clock.now_ms(),
                controller_epoch_exists=known,
            )
        )
        await cluster.commit(lambda image: take_leadership(image, NODE))
        configs = ConfigAdmin(cluster, NODE, static or {})

        async def refresh(*_: object) -> None:
            configs.refresh(cluster.image)

        cluster.follow(refresh)
        topics = TopicAdmin(
            cluster,
            lambda: configs.settings,
            new_id=lambda: os.urandom(16),
            start_index=lambda _: 0,
        )
        yield Parts(store, cluster, configs, topics, clock)
    finally:
        await store.close()


@asynccontextmanager
async def open_log_parts(folder: Path, static: Mapping[str, str] | None = None) -> AsyncIterator[LogParts]:
    """Opens the logs as well and follows the image."""
    async with open_parts(folder, static) as parts:
        directories = LogDirectories.open(
            OsFiles(),
            [str(folder)],
            broker_id=NODE,
            config_of=parts.configs.topic_config,
            clock=parts.clock,
            new_id=lambda: os.urandom(16),
            cluster_id="cluster",
        )
        partitions = PartitionTable()
        led: list[Partition] = []
        gone: list[Partition] = []
        moved: list[object] = []
        replicas = LocalReplicas(
            node_id=NODE,
            directories=directories,
            partitions=partitions,
            configs=parts.configs,
            on_moved=moved.append,
            led=led.append,
            gone=gone.append,
        )
        await replicas.start(parts.cluster.image)
        parts.cluster.follow(replicas.follow)
        yield LogParts(
            parts.store,
            parts.cluster,
            parts.configs,
            parts.topics,
            parts.clock,
            directories,
            partitions,
            replicas,
            led,
            gone,
            moved,
        )
        directories.close()


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)
