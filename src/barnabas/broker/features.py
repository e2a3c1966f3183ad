"""Feature levels this broker can serve; which of them are switched on is in the cluster image."""

from barnabas.base.config import Settings
from barnabas.broker.cluster import Cluster
from barnabas.controller.features import finalize_features

__all__ = ["NOT_FINALIZED", "SUPPORTED_FEATURES", "TRANSACTION_VERSION", "finalize_if_new"]

TRANSACTION_VERSION = "transaction.version"
# 1: records of __transaction_state with tagged fields; 2: epochs rise with every transaction (KIP-890).
SUPPORTED_FEATURES: dict[str, tuple[int, int]] = {TRANSACTION_VERSION: (0, 2)}
NOT_FINALIZED = -1


async def finalize_if_new(cluster: Cluster, settings: Settings) -> None:
    """Gives a cluster that never had any its first feature levels."""
    if cluster.image.features_epoch == NOT_FINALIZED:
        levels = {TRANSACTION_VERSION: settings.integer("barnabas.transaction.version")}
        await cluster.commit(lambda _: finalize_features(levels))
