"""barnabas.controller.features: the first feature levels of a cluster."""

from barnabas.controller.features import finalize_features
from barnabas.metadata.deltas import FeaturesChanged
from barnabas.store import paths
from barnabas.store.documents import FinalizedFeatures
from barnabas.store.tree import Create


def test_levels_above_0_are_written_and_known() -> None:
    change = finalize_features({"transaction.version": 2, "off": 0})
    (operation,) = change.operations
    assert isinstance(operation, Create)
    assert operation.path == paths.FEATURE
    assert FinalizedFeatures.decode(operation.data) == FinalizedFeatures(True, {"transaction.version": 2})
    assert change.deltas == (FeaturesChanged({"transaction.version": 2}, 0),)
