"""UpdateFeatures (key 57), v0-2: switches the levels of the cluster's features, all named ones or none.

v0 knows only whether a level may fall; v1 says how (upgrade, safe and unsafe downgrade) and may only check.
v2 has no results per feature: the error counts for all.  Clients learn of a new level when they connect.
"""

from barnabas.base.errors import BarnabasError
from barnabas.broker.context import Context
from barnabas.broker.error_codes import code_of
from barnabas.broker.features import SUPPORTED_FEATURES
from barnabas.controller.changes import Change
from barnabas.controller.features import FeatureUpdate, UpdateKind, update_features
from barnabas.metadata.image import ClusterImage
from barnabas.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

FIRST_KIND_VERSION = 1
FIRST_SINGLE_RESULT_VERSION = 2


async def handle(request: UpdateFeaturesRequest, ctx: Context) -> UpdateFeaturesResponse:
    updates = [_update(each, ctx.version) for each in request.feature_updates]

    def decide(image: ClusterImage) -> Change:
        change = update_features(image, updates, SUPPORTED_FEATURES)
        return Change((), ()) if request.validate_only else change

    try:
        await ctx.services.cluster.commit(decide)
    except BarnabasError as error:
        return UpdateFeaturesResponse(error_code=code_of(error), error_message=str(error))
    if ctx.version >= FIRST_SINGLE_RESULT_VERSION:
        return UpdateFeaturesResponse()
    return UpdateFeaturesResponse(results=[UpdatableFeatureResult(feature=each.name) for each in updates])


def _update(asked: FeatureUpdateKey, version: int) -> FeatureUpdate:
    kind = asked.upgrade_type
    if version < FIRST_KIND_VERSION and asked.allow_downgrade:
        kind = UpdateKind.SAFE_DOWNGRADE
    return FeatureUpdate(asked.feature, asked.max_version_level, kind)
