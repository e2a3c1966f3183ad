"""barnabas.broker.features: levels are ranges, and none is promised that is not served."""

from barnabas.broker.features import SUPPORTED_FEATURES


def test_each_is_a_range_of_levels() -> None:
    for name, (low, high) in SUPPORTED_FEATURES.items():
        assert name
        assert 0 <= low <= high
