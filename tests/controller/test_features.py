"""barnabas.controller.features: the first feature levels of a cluster, and their changes."""

import pytest

from barnabas.controller.changes import Change, CommandRefused
from barnabas.controller.features import (
    FeatureUpdate,
    InvalidFeatureLevel,
    UpdateKind,
    finalize_features,
    update_features,
)
from barnabas.metadata.deltas import FeaturesChanged, apply
from barnabas.metadata.image import ClusterImage
from barnabas.store import paths
from barnabas.store.documents import FinalizedFeatures
from barnabas.store.tree import Create, SetData

SUPPORTED = {"a": (0, 2), "b": (0, 1)}
UP, DOWN, UNSAFE = UpdateKind


def image(epoch: int = 4, **levels: int) -> ClusterImage:
    return apply(ClusterImage(), [FeaturesChanged(levels, epoch)])


def test_levels_above_0_are_written_and_known() -> None:
    change = finalize_features({"transaction.version": 2, "off": 0})
    (operation,) = change.operations
    assert isinstance(operation, Create)
    assert operation.path == paths.FEATURE
    assert FinalizedFeatures.decode(operation.data) == FinalizedFeatures(True, {"transaction.version": 2})
    assert change.deltas == (FeaturesChanged({"transaction.version": 2}, 0),)


def test_a_change_is_written_over_the_levels_it_was_decided_on() -> None:
    updates = [FeatureUpdate("a", 2, UP), FeatureUpdate("b", 0, DOWN)]
    change = update_features(image(a=1, b=1), updates, SUPPORTED)
    (operation,) = change.operations
    assert isinstance(operation, SetData)
    assert (operation.path, operation.version) == (paths.FEATURE, 4)
    assert FinalizedFeatures.decode(operation.data).levels == {"a": 2}
    assert change.deltas == (FeaturesChanged({"a": 2}, 5),)


@pytest.mark.parametrize("kind", [UP, DOWN, UNSAFE])
def test_nothing_is_written_for_what_is_so_already(kind: int) -> None:
    updates = [FeatureUpdate("a", 1, kind), FeatureUpdate("b", 0, kind)]
    assert update_features(image(a=1), updates, SUPPORTED) == Change((), ())


@pytest.mark.parametrize(
    ("update", "text"),
    [
        (FeatureUpdate("c", 1, UP), "there is no feature 'c' here"),
        (FeatureUpdate("a", 3, UP), "a: level 3 is not one of 0 to 2"),
        (FeatureUpdate("a", -1, DOWN), "a: level -1 is not one of 0 to 2"),
        (FeatureUpdate("a", 0, UP), "a: level 0 is below 1; ask for a downgrade"),
        (FeatureUpdate("a", 2, DOWN), "a: level 2 is above 1; ask for an upgrade"),
        (FeatureUpdate("a", 2, UNSAFE), "a: level 2 is above 1; ask for an upgrade"),
        (FeatureUpdate("a", 2, 0), "a: 0 is no kind of change"),
    ],
)
def test_what_cannot_be_is_refused_with_all_others(update: FeatureUpdate, text: str) -> None:
    with pytest.raises(InvalidFeatureLevel) as caught:
        update_features(image(a=1), [FeatureUpdate("b", 1, UP), update], SUPPORTED)
    assert str(caught.value) == text


def test_a_feature_is_named_once() -> None:
    with pytest.raises(CommandRefused, match="more than once"):
        update_features(image(), [FeatureUpdate("a", 1, UP)] * 2, SUPPORTED)
