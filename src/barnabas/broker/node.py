"""One broker from start to stop: opens the parts in order, wires them, closes them in reverse.

Start: the tree is opened and read → data folders are locked and recovered → listeners bind → the broker
registers and leads its partitions in a new epoch → groups and transactions load → listeners accept.
Stop: listeners let go → requests in progress end → transactions and groups stop → logs close and leave the
clean-shutdown marker → the tree closes.  Decides nothing itself.
"""

import asyncio
import os
import random
import secrets
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial

from barnabas.base.clock import Clock, SystemClock
from barnabas.base.config import Settings
from barnabas.base.errors import InvariantBroken, StorageFault
from barnabas.base.types import Uuid, uuid_text
from barnabas.broker.cluster import Cluster, load_image
from barnabas.broker.config import advertised_endpoints, listener_endpoints, parse_broker_settings
from barnabas.broker.configs import ConfigAdmin
from barnabas.broker.coordinator_appends import CoordinatorAppends
from barnabas.broker.delayed import Purgatory
from barnabas.broker.dispatch import Dispatcher
from barnabas.broker.features import finalize_if_new
from barnabas.broker.fetch_sessions import FetchSessions
from barnabas.broker.flushing import Flusher
from barnabas.broker.groups import GroupHost
from barnabas.broker.loop_timers import LoopTimers
from barnabas.broker.maintenance import Maintenance
from barnabas.broker.offload import Offload
from barnabas.broker.partitions import PartitionTable
from barnabas.broker.producer_ids import ProducerIds
from barnabas.broker.replicas import LocalReplicas
from barnabas.broker.services import Services
from barnabas.broker.topics import TopicAdmin
from barnabas.broker.transactions import TransactionHost, no_fault
from barnabas.controller.startup import register, take_leadership
from barnabas.coordinator.txn_ports import FaultPoint
from barnabas.log.directories import LogDirectories
from barnabas.log.files import OsFiles
from barnabas.log.page_cache import PageCacheCare, PageCacheSettings
from barnabas.metadata.image import Endpoint
from barnabas.net.limits import ConnectionLimits, ServerLimits
from barnabas.net.listener import Listener
from barnabas.net.server import Server
from barnabas.replication.partition import Partition
from barnabas.store import paths
from barnabas.store.embedded import open_embedded
from barnabas.store.tree import Store

__all__ = ["STORE_FILE", "Node"]

STORE_FILE = "metadata.db"
WILDCARD_HOSTS = ("", "0.0.0.0", "::")
INT32_MAX = 2**31 - 1


class Node:
    """A broker in this process.  `start` and `stop` once each, on one running event loop."""

    def __init__(
        self,
        settings: Mapping[str, str],
        *,
        clock: Clock | None = None,
        reach: Callable[[FaultPoint], None] = no_fault,
    ) -> None:
        """Checks the settings.  Raises ConfigFault.

        `reach` is for the test kit alone: it is called at the points where a transaction may be stopped.
        """
        if not __debug__:
            raise InvariantBroken("asserts guard the data here: do not run with python -O")
        self.settings, self.ignored = parse_broker_settings(settings)
        self._given = {name: text for name, text in settings.items() if name not in self.ignored}
        self._clock = clock or SystemClock()
        self._reach = reach
        self._files = OsFiles()
        self._exits = AsyncExitStack()
        self.endpoints: list[Endpoint] = []
        """Where clients connect, as advertised, once started."""
        self.bound_ports: dict[str, int] = {}
        """The port of each listener on this machine, once started."""
        self.services: Services | None = None

    @property
    def node_id(self) -> int:
        return self.settings.integer("node.id")

    @property
    def data_folders(self) -> list[str]:
        several = self.settings.optional_string("log.dirs")
        text = self.settings.string("log.dir") if several is None else several
        return [part.strip() for part in text.split(",") if part.strip()]

    async def start(self) -> None:
        """Serves when it returns.  Raises what keeps it from starting, with everything closed again."""
        try:
            await self._start()
        except BaseException:
            await self._exits.aclose()
            raise

    async def stop(self) -> None:
        """Stops cleanly.  Raises StorageFault if a log could not be closed; then recovery follows."""
        await self._exits.aclose()

    async def _start(self) -> None:
        offload = Offload()
        self._exits.callback(offload.close)
        store = await self._open_store()
        cluster = Cluster(store, await load_image(store, new_cluster_id=_new_cluster_id))
        configs = ConfigAdmin(cluster, self.node_id, self._given)
        directories = await self._open_logs(cluster, configs, offload)
        services, groups, transactions = self._services(store, cluster, configs, directories, offload)
        self.services = services
        dispatcher = Dispatcher(services)
        server = Server(
            dispatcher.on_request,
            on_closed=dispatcher.on_closed,
            limits=_server_limits(self.settings),
            clock=self._clock,
        )
        self._exits.push_async_callback(server.stop, 0)
        self.endpoints = self._bind(server)
        await self._register(store, cluster)
        await finalize_if_new(cluster, self.settings)
        maintenance = Maintenance(services, directories, self._files)

        def gone(partition: Partition) -> None:
            maintenance.forget(partition)
            groups.on_gone(partition)
            transactions.on_gone(partition)

        def led(partition: Partition) -> None:
            groups.on_led(partition)
            transactions.on_led(partition)

        replicas = LocalReplicas(
            node_id=self.node_id,
            directories=directories,
            partitions=services.partitions,
            configs=configs,
            on_moved=services.purgatory.moved,
            led=led,
            gone=gone,
        )
        self._exits.push_async_callback(services.flusher.drain)
        groups.start()
        self._exits.push_async_callback(groups.stop)
        transactions.start()
        self._exits.push_async_callback(transactions.stop)
        services.flusher.on_disk_fault = maintenance.on_disk_fault = replicas.disk_failed
        await replicas.start(cluster.image)
        cluster.follow(replicas.follow)
        cluster.follow(groups.follow)
        cluster.follow(transactions.follow)
        cluster.follow(maintenance.follow)
        maintenance.start()
        self._exits.push_async_callback(maintenance.checkpoint_high_watermarks)
        self._exits.push_async_callback(maintenance.stop)
        self._exits.push_async_callback(dispatcher.drain)
        self._exits.push_async_callback(server.stop, self.settings.integer("barnabas.shutdown.timeout.ms"))
        server.start()

    async def _open_store(self) -> Store:
        folder = self.data_folders[0]
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise StorageFault(f"the data folder {folder} cannot be made: {error.strerror}") from error
        store = await open_embedded(os.path.join(folder, STORE_FILE), clock=self._clock)
        self._exits.push_async_callback(store.close)
        return store

    async def _open_logs(self, cluster: Cluster, configs: ConfigAdmin, offload: Offload) -> LogDirectories:
        directories = await offload.run(
            partial(
                LogDirectories.open,
                self._files,
                self.data_folders,
                broker_id=self.node_id,
                config_of=configs.topic_config,
                clock=self._clock,
                new_id=_new_id,
                cluster_id=cluster.image.cluster_id,
                recovery_threads=self.settings.integer("num.recovery.threads.per.data.dir"),
            )
        )
        self._exits.push_async_callback(offload.run, directories.close)
        return directories

    def _services(
        self,
        store: Store,
        cluster: Cluster,
        configs: ConfigAdmin,
        directories: LogDirectories,
        offload: Offload,
    ) -> tuple[Services, GroupHost, TransactionHost]:
        timers = LoopTimers(asyncio.get_running_loop())
        purgatory = Purgatory(timers)
        partitions = PartitionTable()
        configs.holds_records = partitions.holds_records
        flusher = Flusher(offload, self._clock)
        appends = CoordinatorAppends(purgatory, self._clock, flusher)
        groups = GroupHost(
            cluster=cluster,
            configs=configs,
            partitions=partitions,
            appends=appends,
            timers=timers,
            clock=self._clock,
            offload=offload,
        )
        producer_ids = ProducerIds(store, self.node_id)
        transactions = TransactionHost(
            cluster=cluster,
            configs=configs,
            partitions=partitions,
            appends=appends,
            timers=timers,
            clock=self._clock,
            offload=offload,
            producer_ids=producer_ids,
            groups=groups.coordinator,
            reach=self._reach,
        )
        services = Services(
            node_id=self.node_id,
            clock=self._clock,
            cluster=cluster,
            directories=directories,
            partitions=partitions,
            purgatory=purgatory,
            fetch_sessions=FetchSessions(
                slots=self.settings.integer("max.incremental.fetch.session.cache.slots"),
                new_id=lambda: secrets.randbelow(INT32_MAX) + 1,
            ),
            producer_ids=producer_ids,
            topics=TopicAdmin(
                cluster, lambda: configs.settings, new_id=_new_id, start_index=random.randrange
            ),
            configs=configs,
            groups=groups.coordinator,
            transactions=transactions.coordinator,
            markers=transactions.markers,
            offload=offload,
            flusher=flusher,
            page_cache=PageCacheCare(self._files, PageCacheSettings.of(configs.settings)),
        )
        return services, groups, transactions

    def _bind(self, server: Server) -> list[Endpoint]:
        """Reserves every listener's address; gives what clients are told to connect to."""
        limits = _connection_limits(self.settings)
        advertised = advertised_endpoints(self.settings)
        endpoints = []
        for wanted in listener_endpoints(self.settings):
            port = server.bind(Listener(wanted.listener, wanted.host, wanted.port, limits))
            self.bound_ports[wanted.listener] = port
            host = "localhost" if wanted.host in WILDCARD_HOSTS else wanted.host
            told = advertised.get(wanted.listener)
            endpoints.append(
                Endpoint(wanted.listener, told.host if told else host, (told.port if told else 0) or port)
            )
        return endpoints

    async def _register(self, store: Store, cluster: Cluster) -> None:
        known = await store.exists(paths.CONTROLLER_EPOCH) is not None
        await cluster.commit(
            lambda image: register(
                image,
                node_id=self.node_id,
                endpoints=self.endpoints,
                rack=self.settings.optional_string("broker.rack"),
                now_ms=self._clock.now_ms(),
                controller_epoch_exists=known,
            )
        )
        await cluster.commit(lambda image: take_leadership(image, self.node_id))


def _new_id() -> Uuid:
    """A random topic or folder id; Kafka reserves those whose text begins with a dash."""
    while True:
        fresh = secrets.token_bytes(16)
        if not uuid_text(fresh).startswith("-"):
            return fresh


def _new_cluster_id() -> str:
    return uuid_text(_new_id())


def _connection_limits(settings: Settings) -> ConnectionLimits:
    return ConnectionLimits(
        request_bytes_max=settings.integer("socket.request.max.bytes"),
        requests_open_max=settings.integer("queued.max.requests"),
        idle_ms_max=settings.integer("connections.max.idle.ms"),
    )


def _server_limits(settings: Settings) -> ServerLimits:
    held = settings.integer("queued.max.request.bytes")
    return ServerLimits(
        connections_max=settings.integer("max.connections"),
        connections_per_host_max=settings.integer("max.connections.per.ip"),
        connections_per_host=_overrides(settings.items("max.connections.per.ip.overrides")),
        held_bytes_max=held if held > 0 else 2**63 - 1,
    )


def _overrides(items: tuple[str, ...]) -> dict[str, int]:
    return {host: int(count) for host, _, count in (item.rpartition(":") for item in items)}
