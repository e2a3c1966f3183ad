"""Which levels of the features are in force in the cluster: what it begins with, and how they change.

F1  A finalized level is one that every broker supports.  With a single broker, its own levels are the bound.
F2  A change of several features is made whole or not at all.
F3  The epoch of the levels is the version of their node, so it rises with every change.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from barnabas.controller.changes import Change, CommandRefused
from barnabas.metadata.deltas import FeaturesChanged
from barnabas.metadata.image import ClusterImage
from barnabas.store import paths
from barnabas.store.documents import FinalizedFeatures
from barnabas.store.tree import Create, SetData

__all__ = [
    "FeatureUpdate",
    "InvalidFeatureLevel",
    "UpdateKind",
    "finalize_features",
    "update_features",
]

FIRST_EPOCH = 0  # the version of a node that was just created


class UpdateKind(IntEnum):
    """What a change of a level may do; the numbers are those of UpdateFeatures."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


_KINDS = frozenset(int(kind) for kind in UpdateKind)


class FeatureUpdate(NamedTuple):
    """A level that a feature shall have; 0 switches it off."""

    name: str
    level: int
    kind: int


class InvalidFeatureLevel(CommandRefused):
    """A feature cannot have the level asked for, or not in this way."""


def finalize_features(levels: Mapping[str, int]) -> Change:
    """Writes the first levels of a cluster that has none; a level of 0 is a feature that is off."""
    on = {name: level for name, level in levels.items() if level > 0}
    document = FinalizedFeatures(is_enabled=True, levels=on)
    return Change((Create(paths.FEATURE, document.encode()),), (FeaturesChanged(on, FIRST_EPOCH),))


def update_features(
    image: ClusterImage, updates: Sequence[FeatureUpdate], supported: Mapping[str, tuple[int, int]]
) -> Change:
    """Changes levels (F2); nothing is written when all of them are so already.

    `supported` is the lowest and highest level of each feature.  Raises InvalidFeatureLevel, CommandRefused.
    """
    names = [update.name for update in updates]
    if len(set(names)) < len(names):
        raise CommandRefused("the request names a feature more than once")
    levels = dict(image.features)
    for update in updates:
        _check(update, levels.get(update.name, 0), supported)
        levels[update.name] = update.level
    levels = {name: level for name, level in levels.items() if level > 0}
    if levels == image.features:
        return Change((), ())
    data = FinalizedFeatures(is_enabled=True, levels=levels).encode()
    return Change(
        (SetData(paths.FEATURE, data, image.features_epoch),),
        (FeaturesChanged(levels, image.features_epoch + 1),),
    )


def _check(update: FeatureUpdate, current: int, supported: Mapping[str, tuple[int, int]]) -> None:
    name, level, kind = update
    if name not in supported:
        raise InvalidFeatureLevel(f"there is no feature {name!r} here")
    if kind not in _KINDS:
        raise InvalidFeatureLevel(f"{name}: {kind} is no kind of change")
    lowest, highest = supported[name]
    if not lowest <= level <= highest:
        raise InvalidFeatureLevel(f"{name}: level {level} is not one of {lowest} to {highest}")
    if kind == UpdateKind.UPGRADE and level < current:
        raise InvalidFeatureLevel(f"{name}: level {level} is below {current}; ask for a downgrade")
    if kind != UpdateKind.UPGRADE and level > current:
        raise InvalidFeatureLevel(f"{name}: level {level} is above {current}; ask for an upgrade")
