"""Orders into a topic at a rate that swells and ebbs, on a thread of its own."""

import math
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from barnabas.cli.demo.orders import Orders

if TYPE_CHECKING:
    from barnabas.client.delivery import RecordMetadata
    from barnabas.client.errors import KafkaError
    from barnabas.client.producer import Producer

__all__ = ["Feed", "due"]

_TICK_S: Final = 0.02
_SWELL: Final = 0.3
_SWELL_S: Final = 20.0
_SHOWN: Final = 3


def due(seconds: float, rate: float) -> int:
    """How many orders there should be by now: `rate` per second, by turns 30 % more and less."""
    angle = 2 * math.pi / _SWELL_S
    return int(rate * (seconds + _SWELL * (1 - math.cos(angle * seconds)) / angle))


class Feed:
    """Sends orders from `start` to `stop`; the counts may be read from any thread."""

    def __init__(self, producer: "Producer", topic: str, rate: float) -> None:
        self._producer = producer
        self._topic = topic
        self._rate = rate
        self._orders = Orders()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-feed", daemon=True)
        self._sent = 0
        self._lock = threading.Lock()
        self.acknowledged = 0
        self.size_bytes = 0
        self.failure: Exception | None = None
        self.latest: deque[dict[str, Any]] = deque(maxlen=_SHOWN)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when all that was sent is acknowledged.  May be repeated."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            started = time.monotonic()
            while not self._stopping.wait(_TICK_S):
                self._send(due(time.monotonic() - started, self._rate) - self._sent)
            self._producer.flush()
        except Exception as error:  # shown by the main thread, which ends the demo
            self.failure = error

    def _send(self, count: int) -> None:
        now_ms = time.time_ns() // 1_000_000
        for _ in range(count):
            order = self._orders.next(now_ms)
            self._producer.send(self._topic, order.value, order.key, on_delivery=self._delivered)
            self.size_bytes += len(order.value) + len(order.key)
            self._sent += 1
        if count > 0:
            self.latest.appendleft(order.fields)

    def _delivered(self, metadata: "RecordMetadata", error: "KafkaError | None") -> None:
        with self._lock:
            if error is None:
                self.acknowledged += 1
            elif self.failure is None:
                self.failure = error
