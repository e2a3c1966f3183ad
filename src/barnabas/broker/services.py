"""Everything a handler may reach.  Filled by the node at start; handlers keep no state of their own."""

from dataclasses import dataclass

from barnabas.base.clock import Clock
from barnabas.base.config import Settings
from barnabas.broker.cluster import Cluster
from barnabas.broker.configs import ConfigAdmin
from barnabas.broker.delayed import Purgatory
from barnabas.broker.fetch_sessions import FetchSessions
from barnabas.broker.flushing import Flusher
from barnabas.broker.offload import Offload
from barnabas.broker.partitions import PartitionTable
from barnabas.broker.producer_ids import ProducerIds
from barnabas.broker.topics import TopicAdmin
from barnabas.broker.txn_markers import LocalMarkers
from barnabas.coordinator.service import GroupCoordinator
from barnabas.coordinator.transactions import TransactionCoordinator
from barnabas.log.directories import LogDirectories
from barnabas.log.page_cache import PageCacheCare
from barnabas.metadata.image import ClusterImage

__all__ = ["Services"]


@dataclass(slots=True)
class Services:
    """The parts of one running broker."""

    node_id: int
    clock: Clock
    cluster: Cluster
    directories: LogDirectories
    partitions: PartitionTable
    purgatory: Purgatory
    fetch_sessions: FetchSessions
    producer_ids: ProducerIds
    topics: TopicAdmin
    configs: ConfigAdmin
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    markers: LocalMarkers
    offload: Offload
    flusher: Flusher
    page_cache: PageCacheCare

    @property
    def image(self) -> ClusterImage:
        """The newest image; keep it in a variable when two look-ups must agree."""
        return self.cluster.image

    @property
    def settings(self) -> Settings:
        """The broker's settings in force."""
        return self.configs.settings
