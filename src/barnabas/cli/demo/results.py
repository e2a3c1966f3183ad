"""What comes out of the job, read back as any consumer would read it."""

import json
import threading
from typing import Any, Final

__all__ = ["Results"]

_POLL_S: Final = 0.25


class Results:
    """Follows the topic of results on a thread of its own; the newest row of each key is kept."""

    def __init__(self, address: str, topic: str) -> None:
        self._address = address
        self._topic = topic
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-results", daemon=True)
        self.rows: dict[str, dict[str, Any]] = {}
        """Key -> its newest row.  Replaced as a whole, so that it may be read from any thread."""
        self.count = 0
        self.failure: Exception | None = None

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
                consumer.assign([TopicPartition(self._topic, 0)])
                while not self._stopping.is_set():
                    records = consumer.poll(_POLL_S)
                    if records:
                        newest = {(r.key or b"").decode(): json.loads(r.value or b"{}") for r in records}
                        self.rows = dict(sorted({**self.rows, **newest}.items()))
                        self.count += len(records)
        except Exception as error:  # shown by the main thread, which ends the demo
            self.failure = error
