"""Admin calls about features: levels that the whole cluster has agreed on, as transaction.version."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from barnabas._version import __version__
from barnabas.client.admin_base import AdminBase, answer_of
from barnabas.client.errors import error_for
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

__all__ = ["FeatureCalls", "FeatureChange", "FeatureLevel", "Features"]

_FIRST_KIND_VERSION: Final = 1


class FeatureChange(Enum):
    """What a change of levels may do.  An unsafe downgrade may lose what only the higher level keeps."""

    UPGRADE = 1
    DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class FeatureLevel:
    """A feature: the level in force (0: it is off), and those that the broker asked can serve."""

    name: str
    level: int
    lowest: int
    highest: int


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a cluster by name; the epoch rises with every change, -1 if there never was one."""

    epoch: int
    by_name: Mapping[str, FeatureLevel]

    def __getitem__(self, name: str) -> FeatureLevel:
        return self.by_name[name]


class FeatureCalls(AdminBase):
    """Calls about features."""

    async def describe_features(self, *, timeout_ms: int | None = None) -> Features:
        """The levels in force and those that a broker can serve."""
        await self.start()
        request = ApiVersionsRequest(
            client_software_name="barnabas", client_software_version=__version__.replace("+", ".")
        )

        async def attempt() -> Features:
            node = await self._cluster.any_node()
            answer = answer_of(await self._cluster.request(node, request), ApiVersionsResponse)
            if answer.error_code:
                raise error_for(answer.error_code, subject=f"features of broker {node}")
            return _features(answer)

        return await self._cluster.retry(attempt, timeout_ms=self._timeout_ms(timeout_ms))

    async def update_features(
        self,
        levels: Mapping[str, int],
        *,
        change: FeatureChange = FeatureChange.UPGRADE,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Gives features these levels, all or none; 0 switches one off.

        Clients learn of it when they connect.  Raises KafkaError with the code INVALID_UPDATE_VERSION for a
        level that cannot be, or not by such a change.
        """
        await self.start()
        limit_ms = self._timeout_ms(timeout_ms)

        async def attempt() -> None:
            node = await self._cluster.controller()
            await self._cluster.ready(node)
            version = self._cluster.version_of(node, ApiKey.UPDATE_FEATURES) or 0
            request = _request(levels, change, validate_only, limit_ms, version)
            answer = answer_of(
                await self._cluster.request(node, request, timeout_ms=limit_ms), UpdateFeaturesResponse
            )
            if answer.error_code:
                raise error_for(answer.error_code, answer.error_message, subject="features")
            for result in answer.results:
                if result.error_code:
                    raise error_for(result.error_code, result.error_message, subject=result.feature)

        await self._cluster.retry(attempt, timeout_ms=limit_ms)


def _request(
    levels: Mapping[str, int], change: FeatureChange, validate_only: bool, timeout_ms: int, version: int
) -> UpdateFeaturesRequest:
    updates = [FeatureUpdateKey(feature=name, max_version_level=level) for name, level in levels.items()]
    for update in updates:
        if version >= _FIRST_KIND_VERSION:
            update.upgrade_type = change.value
        else:
            update.allow_downgrade = change is not FeatureChange.UPGRADE
    return UpdateFeaturesRequest(timeout_ms=timeout_ms, feature_updates=updates, validate_only=validate_only)


def _features(answer: ApiVersionsResponse) -> Features:
    supported = {each.name: (each.min_version, each.max_version) for each in answer.supported_features}
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    found = {
        name: FeatureLevel(name, levels.get(name, 0), *supported.get(name, (0, levels.get(name, 0))))
        for name in sorted(supported | levels)
    }
    return Features(answer.finalized_features_epoch, found)
