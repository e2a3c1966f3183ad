"""Tests of the rules between the producer's settings."""

import pytest

from barnabas.base.errors import ConfigFault
from barnabas.client.config import PRODUCER, ClientSettings, parse
from barnabas.client.producer_settings import limits_of, sender_settings_of, uses_idempotence
from barnabas.records.codecs import Codec


def settings(**more: object) -> ClientSettings:
    return parse(PRODUCER, {"bootstrap.servers": "a:1", **more})


class TestIdempotence:
    def test_it_is_the_default(self) -> None:
        assert uses_idempotence(settings())

    @pytest.mark.parametrize(
        "given",
        [{"acks": 1}, {"acks": 0}, {"retries": 0}, {"max_in_flight_requests_per_connection": 6}],
    )
    def test_settings_it_cannot_live_with_switch_it_off(self, given: dict[str, object]) -> None:
        assert not uses_idempotence(settings(**given))
        with pytest.raises(ConfigFault, match=r"enable\.idempotence: needs"):
            uses_idempotence(settings(enable_idempotence=True, **given))

    def test_all_conflicts_are_named(self) -> None:
        with pytest.raises(ConfigFault, match=r"needs acks=all and retries above 0"):
            uses_idempotence(settings(enable_idempotence=True, acks=1, retries=0))

    def test_it_can_be_switched_off(self) -> None:
        assert not uses_idempotence(settings(enable_idempotence=False))


class TestLimits:
    def test_they_are_the_settings(self) -> None:
        limits = limits_of(settings(batch_size=5, linger_ms=6, max_request_size=7))
        assert (limits.batch_bytes, limits.linger_ms, limits.request_bytes_max) == (5, 6, 7)
        assert limits.delivery_timeout_ms == 120_000

    def test_a_delivery_timeout_that_is_too_short_is_refused(self) -> None:
        with pytest.raises(ConfigFault, match=r"which is 30005; 10 is less"):
            limits_of(settings(delivery_timeout_ms=10))

    def test_the_default_makes_way_for_longer_waits(self) -> None:
        assert limits_of(settings(request_timeout_ms=300_000)).delivery_timeout_ms == 300_005


class TestSending:
    @pytest.mark.parametrize(("given", "acks"), [("all", -1), (-1, -1), (0, 0), ("1", 1)])
    def test_acks(self, given: object, acks: int) -> None:
        assert sender_settings_of(settings(acks=given)).acks == acks

    def test_compression_with_and_without_a_level(self) -> None:
        assert sender_settings_of(settings()).compression == (Codec.NONE, None)
        assert sender_settings_of(settings(compression_type="zstd")).compression == (Codec.ZSTD, None)
        given = sender_settings_of(settings(compression_type="zstd", compression_zstd_level=9))
        assert given.compression == (Codec.ZSTD, 9)
        default = sender_settings_of(settings(compression_type="gzip", compression_gzip_level=-1))
        assert default.compression == (Codec.GZIP, None)
        snappy = sender_settings_of(settings(compression_type="snappy", compression_zstd_level=9))
        assert snappy.compression == (Codec.SNAPPY, None)
