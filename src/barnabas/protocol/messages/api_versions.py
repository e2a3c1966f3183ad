"""ApiVersions (key 18), v0-4, flexible from v3."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.fields import array, boolean, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, request, response


@request(ApiKey.API_VERSIONS, versions="0-4", flexible="3+")
class ApiVersionsRequest(Message):
    client_software_name: str = string(versions="3+", ignorable=True)
    client_software_version: str = string(versions="3+", ignorable=True)


class ApiVersion(Struct):
    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


class SupportedFeatureKey(Struct):
    name: str = string(versions="3+")
    min_version: int = int16(versions="3+")
    max_version: int = int16(versions="3+")


class FinalizedFeatureKey(Struct):
    name: str = string(versions="3+")
    max_version_level: int = int16(versions="3+")
    min_version_level: int = int16(versions="3+")


@response(ApiKey.API_VERSIONS, versions="0-4", flexible="3+")
class ApiVersionsResponse(Message):
    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(
        SupportedFeatureKey, versions="3+", tag=0, ignorable=True
    )
    finalized_features_epoch: int = int64(versions="3+", default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = array(
        FinalizedFeatureKey, versions="3+", tag=2, ignorable=True
    )
    zk_migration_ready: bool = boolean(versions="3+", tag=3, ignorable=True)
