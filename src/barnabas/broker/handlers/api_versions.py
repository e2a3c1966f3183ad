"""ApiVersions (key 18), v0-4.

Lists what HANDLERS serves, and the feature levels.  A version above ours is answered in v0 with
UNSUPPORTED_VERSION and our own range, by the dispatcher, so that the client can ask again.
v3 adds client software names and features; v4 lifts the rule that hides features whose lowest level is 0.
"""

import re

from barnabas.broker.context import Context
from barnabas.broker.features import SUPPORTED_FEATURES
from barnabas.broker.handlers import HANDLERS
from barnabas.protocol.api import ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

_KEYS = [ApiVersion(api_key=h.key, min_version=h.lowest, max_version=h.highest) for h in HANDLERS]


def handle(request: ApiVersionsRequest, ctx: Context) -> ApiVersionsResponse:
    if ctx.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    image = ctx.services.image
    return ApiVersionsResponse(
        error_code=ErrorCode.NONE,
        api_keys=_KEYS,
        supported_features=[
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
            if low > 0 or ctx.version >= 4
        ],
        finalized_features_epoch=image.features_epoch,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in image.features.items()
            if level > 0
        ],
    )


def unsupported() -> ApiVersionsResponse:
    """The v0 answer to a version we do not know: only our own range of this API."""
    own = [key for key in _KEYS if key.api_key == ApiKey.API_VERSIONS]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)
