"""What comes out of the job, read back as any consumer would read it, and counted."""

import json
import threading
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["Results", "Totals"]

_POLL_S: Final = 0.25


class Totals:
    """Sales by region, and whether an order came twice."""

    def __init__(self) -> None:
        self._seen = bytearray()
        self._regions: dict[str, tuple[int, float]] = {}
        self.orders = 0
        """Different orders."""
        self.repeated = 0

    def add(self, sale: Mapping[str, Any]) -> None:
        number = int(sale["order_id"].removeprefix("o-"))
        if number >= len(self._seen):
            self._seen.extend(bytes(max(number + 1 - len(self._seen), 4096)))
        if self._seen[number]:
            self.repeated += 1
            return
        self._seen[number] = 1
        self.orders += 1
        count, revenue = self._regions.get(sale["region"], (0, 0.0))
        self._regions[sale["region"]] = (count + 1, revenue + sale["total"])

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"region": region, "orders": count, "revenue": round(revenue, 2)}
            for region, (count, revenue) in sorted(self._regions.items())
        ]


class Results:
    """Follows the topic of sales on a thread of its own; what it holds may be read from any thread."""

    def __init__(self, address: str, topic: str) -> None:
        self._address = address
        self._topic = topic
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-results", daemon=True)
        self._totals = Totals()
        self.rows: list[dict[str, Any]] = []
        """Orders and revenue by region.  Replaced as a whole."""
        self.count = 0
        """Records read."""
        self.failure: Exception | None = None

    @property
    def orders(self) -> int:
        """Different orders among the sales."""
        return self._totals.orders

    @property
    def repeated(self) -> int:
        """Sales of orders that had one already."""
        return self._totals.repeated

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        from barnabas.base.types import TopicPartition
        from barnabas.client.consumer import Consumer

        settings = {
            "bootstrap.servers": self._address,
            "bootstrap.timeout.ms": "0",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
        try:
            with Consumer(settings) as consumer:
                parts = consumer.partitions_for(self._topic)
                consumer.assign([TopicPartition(self._topic, part.index) for part in parts])
                while not self._stopping.is_set():
                    records = consumer.poll(_POLL_S, 20_000)
                    for record in records:
                        self._totals.add(json.loads(record.value or b"{}"))
                    if records:
                        self.rows = self._totals.rows()
                        self.count += len(records)
        except Exception as error:  # shown by the main thread, which ends the demo
            self.failure = error
