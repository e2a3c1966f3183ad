"""What a producer counts, under Kafka's names, so that existing dashboards read them.

Totals never fall.  Averages and maxima of sizes and times are over all requests or batches so far; rates are
per second over the last 30 to 60 seconds.  Written on the event loop only; any thread may read.
"""

from dataclasses import dataclass, field
from typing import Final

from barnabas.base.clock import Clock

__all__ = ["Average", "ProducerMetrics", "Rate"]

_WINDOW_MS: Final = 30_000


@dataclass(slots=True)
class Average:
    """Mean and largest of the values seen; 0 before the first."""

    count: int = 0
    total: float = 0.0
    most: float = 0.0

    def add(self, value: float, count: int = 1) -> None:
        self.count += count
        self.total += value * count
        self.most = max(self.most, value)

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0


class Rate:
    """How fast a total grows: over the window under way and the one before it."""

    __slots__ = ("_before", "_now", "_since_ms")

    def __init__(self, now_ms: int) -> None:
        self._since_ms = now_ms
        self._before = 0
        self._now = 0

    def add(self, count: int, now_ms: int) -> None:
        self._roll(now_ms)
        self._now += count

    def per_second(self, now_ms: int) -> float:
        self._roll(now_ms)
        elapsed_ms = now_ms - self._since_ms + (_WINDOW_MS if self._before else 0)
        return 1000 * (self._before + self._now) / max(elapsed_ms, 1000)

    def _roll(self, now_ms: int) -> None:
        passed = (now_ms - self._since_ms) // _WINDOW_MS
        if passed > 0:
            self._before = self._now if passed == 1 else 0
            self._now = 0
            self._since_ms += passed * _WINDOW_MS


@dataclass(slots=True)
class ProducerMetrics:
    """The counters of one producer."""

    clock: Clock
    records_sent: int = 0
    bytes_sent: int = 0
    requests: int = 0
    retries: int = 0
    errors: int = 0
    splits: int = 0
    latency_ms: Average = field(default_factory=Average)
    queue_ms: Average = field(default_factory=Average)
    batch_bytes: Average = field(default_factory=Average)
    request_bytes: Average = field(default_factory=Average)
    request_records: Average = field(default_factory=Average)
    compression: Average = field(default_factory=Average)
    throttle_ms: Average = field(default_factory=Average)
    _sends: Rate = field(init=False)
    _bytes: Rate = field(init=False)

    def __post_init__(self) -> None:
        now_ms = self.clock.monotonic_ms()
        self._sends = Rate(now_ms)
        self._bytes = Rate(now_ms)

    def sent(self, records: int, size: int, now_ms: int) -> None:
        """One request left."""
        self.requests += 1
        self.records_sent += records
        self.bytes_sent += size
        self.request_bytes.add(size)
        self.request_records.add(records)
        self._sends.add(records, now_ms)
        self._bytes.add(size, now_ms)

    def snapshot(self) -> dict[str, float]:
        now_ms = self.clock.monotonic_ms()
        return {
            "record-send-total": self.records_sent,
            "record-send-rate": self._sends.per_second(now_ms),
            "record-error-total": self.errors,
            "record-retry-total": self.retries,
            "batch-split-total": self.splits,
            "outgoing-byte-total": self.bytes_sent,
            "outgoing-byte-rate": self._bytes.per_second(now_ms),
            "request-total": self.requests,
            "request-latency-avg": self.latency_ms.mean,
            "request-latency-max": self.latency_ms.most,
            "request-size-avg": self.request_bytes.mean,
            "request-size-max": self.request_bytes.most,
            "records-per-request-avg": self.request_records.mean,
            "batch-size-avg": self.batch_bytes.mean,
            "batch-size-max": self.batch_bytes.most,
            "record-queue-time-avg": self.queue_ms.mean,
            "record-queue-time-max": self.queue_ms.most,
            "compression-rate-avg": self.compression.mean if self.compression.count else 1.0,
            "produce-throttle-time-avg": self.throttle_ms.mean,
            "produce-throttle-time-max": self.throttle_ms.most,
        }
