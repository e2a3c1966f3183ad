"""barnabas.broker.features: what a new cluster begins with, and what an old one keeps."""

from pathlib import Path

import pytest

from barnabas.broker.features import SUPPORTED_FEATURES, TRANSACTION_VERSION
from barnabas.testing import Broker
from tests.broker._calls import image_of


def test_a_new_cluster_begins_with_the_highest_level(folder: Path) -> None:
    with Broker(data_dir=str(folder)) as broker:
        image = image_of(broker)
        assert image.features == {TRANSACTION_VERSION: SUPPORTED_FEATURES[TRANSACTION_VERSION][1]}
        assert image.features_epoch == 0


@pytest.mark.parametrize("level", [0, 1])
def test_what_it_began_with_stays(folder: Path, level: int) -> None:
    with Broker({"barnabas.transaction.version": str(level)}, data_dir=str(folder)) as broker:
        assert image_of(broker).features.get(TRANSACTION_VERSION, 0) == level
    with Broker(data_dir=str(folder)) as broker:
        assert image_of(broker).features.get(TRANSACTION_VERSION, 0) == level
        assert image_of(broker).features_epoch == 0
