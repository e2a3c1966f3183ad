"""Which levels of the features are in force in the cluster; they are finalized once, when it begins.

F1  A finalized level is one that every broker supports.  With a single broker, its own levels are the bound.
"""

from collections.abc import Mapping

from barnabas.controller.changes import Change
from barnabas.metadata.deltas import FeaturesChanged
from barnabas.store import paths
from barnabas.store.documents import FinalizedFeatures
from barnabas.store.tree import Create

__all__ = ["finalize_features"]

FIRST_EPOCH = 0  # the version of a node that was just created


def finalize_features(levels: Mapping[str, int]) -> Change:
    """Writes the first levels of a cluster that has none; a level of 0 is a feature that is off."""
    on = {name: level for name, level in levels.items() if level > 0}
    document = FinalizedFeatures(is_enabled=True, levels=on)
    return Change((Create(paths.FEATURE, document.encode()),), (FeaturesChanged(on, FIRST_EPOCH),))
