"""Consumers for tests: short waits, and reading until something holds."""

import time
from collections.abc import Callable, Iterable

from barnabas.base.types import TopicPartition
from barnabas.client.consumer import Consumer
from barnabas.records.record import Record
from tests.client._kit import settings_for

LIMIT_S = 45.0


def consumer_of(bootstrap: str, **more: object) -> Consumer:
    """A consumer from the start of the log, that notices things soon."""
    chosen: dict[str, object] = {
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": 50,
        "session_timeout_ms": 6000,
        "fetch_max_wait_ms": 50,
        **more,
    }
    return Consumer(settings_for(bootstrap), **chosen)  # type: ignore[arg-type]  # settings of any type


def read(consumer: Consumer, count: int) -> list[Record]:
    """Polls until `count` records came; fails when they do not."""
    records: list[Record] = []
    deadline = time.monotonic() + LIMIT_S
    while len(records) < count:
        assert time.monotonic() < deadline, f"only {len(records)} of {count} records came"
        records += consumer.poll(0.2, count - len(records))
    return records


def poll_until(consumers: Iterable[Consumer], holds: Callable[[], object]) -> list[Record]:
    """Polls all of them in turn until `holds()`; the result is what came."""
    records: list[Record] = []
    everyone = list(consumers)
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, "what was waited for did not come"
        for consumer in everyone:
            records += consumer.poll(0.02)
    return records


def parts(topic: str, *numbers: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in numbers]


class Told:
    """A listener that writes down what it hears."""

    def __init__(self) -> None:
        self.events: list[tuple[str, list[int]]] = []

    def on_assigned(self, partitions: list[TopicPartition]) -> None:
        self.events.append(("assigned", [tp.partition for tp in partitions]))

    def on_revoked(self, partitions: list[TopicPartition]) -> None:
        self.events.append(("revoked", [tp.partition for tp in partitions]))

    def on_lost(self, partitions: list[TopicPartition]) -> None:
        self.events.append(("lost", [tp.partition for tp in partitions]))
