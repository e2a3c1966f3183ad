"""Tests of the producer's counters."""

import pytest

from barnabas.base.clock import ManualClock
from barnabas.client.producer_metrics import Average, ProducerMetrics, Rate


class TestAverage:
    def test_before_the_first_value_it_is_zero(self) -> None:
        assert (Average().mean, Average().most) == (0.0, 0.0)

    def test_mean_and_most(self) -> None:
        average = Average()
        average.add(2)
        average.add(5, 2)
        assert (average.mean, average.most, average.count) == (4.0, 5, 3)


class TestRate:
    def test_it_is_per_second_over_the_time_seen(self) -> None:
        rate = Rate(0)
        rate.add(100, 500)
        assert rate.per_second(10_000) == 10.0

    def test_the_first_second_counts_as_one(self) -> None:
        rate = Rate(0)
        rate.add(100, 0)
        assert rate.per_second(1) == 100.0

    def test_the_window_before_still_counts(self) -> None:
        rate = Rate(0)
        rate.add(300, 0)
        assert rate.per_second(30_000) == 10.0
        assert rate.per_second(59_999) == pytest.approx(5.0, rel=0.01)

    def test_older_ones_do_not(self) -> None:
        rate = Rate(0)
        rate.add(300, 0)
        assert rate.per_second(60_000) == 0.0


class TestSnapshot:
    def test_it_has_kafka_s_names(self) -> None:
        clock = ManualClock()
        metrics = ProducerMetrics(clock)
        metrics.sent(10, 1_000, clock.monotonic_ms())
        metrics.latency_ms.add(4)
        clock.advance(5_000)
        found = metrics.snapshot()
        assert found["record-send-total"] == 10
        assert found["record-send-rate"] == 2.0
        assert found["outgoing-byte-total"] == 1_000
        assert found["records-per-request-avg"] == 10
        assert found["request-latency-avg"] == 4
        assert found["compression-rate-avg"] == 1.0
        assert all(isinstance(value, int | float) for value in found.values())
