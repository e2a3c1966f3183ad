"""barnabas.broker.handlers.update_features: levels of features are switched, kept and told."""

from pathlib import Path

import pytest

from barnabas.controller.features import UpdateKind
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from barnabas.testing import Broker
from tests.broker._wire import WireClient

FEATURE = "transaction.version"
VERSIONS = range(3)
HIGHEST = 2


def update(
    client: WireClient,
    level: int,
    kind: UpdateKind,
    version: int = 2,
    *,
    name: str = FEATURE,
    validate_only: bool = False,
) -> UpdateFeaturesResponse:
    key = FeatureUpdateKey(feature=name, max_version_level=level)
    if version == 0:
        key.allow_downgrade = kind is not UpdateKind.UPGRADE
    else:
        key.upgrade_type = kind
    request = UpdateFeaturesRequest(feature_updates=[key], validate_only=validate_only)
    return client.call(request, version, UpdateFeaturesResponse)


def told(client: WireClient) -> tuple[int, int]:
    """The level and its epoch, as a client that connects learns them."""
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = client.call(request, 4, ApiVersionsResponse)
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    return levels.get(FEATURE, 0), answer.finalized_features_epoch


@pytest.mark.parametrize("version", VERSIONS)
def test_a_level_falls_rises_and_stays(folder: Path, version: int) -> None:
    with Broker(data_dir=str(folder)) as broker, WireClient(broker.bootstrap_servers) as client:
        answer = update(client, 0, UpdateKind.SAFE_DOWNGRADE, version)
        assert answer.error_code == 0
        assert [each.feature for each in answer.results] == ([FEATURE] if version < 2 else [])
        assert told(client) == (0, 1)
        assert update(client, 1, UpdateKind.UPGRADE, version).error_code == 0
        assert told(client) == (1, 2)
    with Broker(data_dir=str(folder)) as broker, WireClient(broker.bootstrap_servers) as client:
        assert told(client) == (1, 2)
        assert update(client, HIGHEST, UpdateKind.UPGRADE, version).error_code == 0
        assert told(client) == (HIGHEST, 3)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_cannot_be_is_refused(client: WireClient, version: int) -> None:
    before = told(client)
    for level, kind, name in (
        (3, UpdateKind.UPGRADE, FEATURE),
        (1, UpdateKind.UPGRADE, FEATURE),
        (1, UpdateKind.UPGRADE, "metadata.version"),
    ):
        answer = update(client, level, kind, version, name=name)
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert answer.error_message
    assert told(client) == before


def test_a_check_alone_changes_nothing(client: WireClient) -> None:
    before = told(client)
    assert update(client, 1, UpdateKind.SAFE_DOWNGRADE, validate_only=True).error_code == 0
    refused = update(client, 3, UpdateKind.UPGRADE, validate_only=True)
    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert told(client) == before


def test_a_feature_is_named_once(client: WireClient) -> None:
    keys = [FeatureUpdateKey(feature=FEATURE, max_version_level=2)] * 2
    answer = client.call(UpdateFeaturesRequest(feature_updates=keys), 2, UpdateFeaturesResponse)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
