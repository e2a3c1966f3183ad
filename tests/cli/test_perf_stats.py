"""barnabas.cli.perf_stats: what a measurement keeps."""

from barnabas.cli.perf_stats import Meter, Slice, Window, percentile


class Watch:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_counts_times_and_rates() -> None:
    watch = Watch()
    meter = Meter(4, now=watch)
    watch.now = 102.0
    meter.add(4, 2 << 20, [1.0, 2.0, 3.0, 10.0])
    assert (meter.records, meter.seconds, meter.records_per_s, meter.mb_per_s) == (4, 2.0, 2.0, 1.0)
    facts = meter.facts()
    assert facts["latency_ms"] == {
        "avg": 4.0,
        "max": 10.0,
        "p50": 3.0,
        "p95": 10.0,
        "p99": 10.0,
        "p99.9": 10.0,
    }


def test_windows_are_reported_once_they_are_long_enough() -> None:
    watch, seen = Watch(), list[tuple[Window, float]]()
    meter = Meter(10, every_s=5, report=lambda window, seconds: seen.append((window, seconds)), now=watch)
    for _ in range(3):
        watch.now += 3
        meter.add(2, 10, [1.0, 5.0])
    ((window, seconds),) = seen
    assert (seconds, window.records, window.size_bytes, window.total_ms, window.max_ms) == (
        6.0,
        4,
        20,
        12.0,
        5.0,
    )


def test_slices_cover_the_time_also_where_nothing_came() -> None:
    watch = Watch()
    meter = Meter(10, now=watch)
    for at in (0.1, 0.2, 0.8, 0.9):
        watch.now = 100 + at
        meter.add(1, 10, [1.0])
    meter.finish()
    assert [(round(s.seconds, 2), s.records) for s in meter.slices] == [
        (0.25, 2),
        (0.5, 0),
        (0.75, 0),
        (0.9, 2),
    ]
    assert isinstance(meter.slices[0], Slice)


def test_of_many_times_only_some_are_kept() -> None:
    meter = Meter(2_000_000)
    for _ in range(10):
        meter.add(7, 0, [float(number) for number in range(7)])
    assert len(meter.samples) == 18, "every fourth of seventy"
    assert (meter.measured, meter.max_ms) == (70, 6.0)


def test_nothing_measured_is_zero() -> None:
    assert percentile([], 0.5) == 0.0
    assert Meter(1).facts()["latency_ms"]["avg"] == 0.0
