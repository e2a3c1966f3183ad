"""The per-record path of the producer in plain Python; the twin of `_hot.pyx`, and its documentation.

H1  `Appender.append` either adds the record to an open batch and gives its future, or changes nothing and
    gives None: then the caller takes the long way (metadata, room in the buffer, a new batch, an error)
H2  an open batch holds at least one record, so its size limit holds for every record added here
H3  an append is one step for everybody else: here under `lock`, in the compiled twin because it never gives
    up the GIL between its check that the batch is open and the last change

It takes exact bytes and plain pairs only; everything else is the long way's business.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from barnabas.base.clock import SystemClock
from barnabas.client import delivery
from barnabas.records._place_plain import murmur2
from barnabas.records.kernel import PayloadBuilder

if TYPE_CHECKING:
    from collections.abc import Generator

    from barnabas.base.clock import Clock
    from barnabas.client.delivery import OnDelivery, RecordMetadata
    from barnabas.client.errors import KafkaError

__all__ = ["Appender", "BatchBase", "Home", "Lane", "RecordFuture", "TopicLanes", "murmur2"]

HeaderPairs = tuple[tuple[str, bytes | None], ...]

_INT64_MAX: Final = 2**63 - 1
_NO_HEADERS: Final = ()


class Home(Protocol):
    """What a batch asks of the producer it belongs to."""

    def hasten(self, batch: "BatchBase") -> None:
        """A thread is about to wait for the batch.  Raises Misuse where waiting would never end."""

    def hasten_soon(self, batch: "BatchBase") -> None:
        """A task is about to await the batch."""


class BatchBase:
    """Records of one partition that travel together, and the outcome they share; see `client.delivery`."""

    __slots__ = (
        "append_time_ms",
        "base_offset",
        "builder",
        "callbacks",
        "count",
        "deliveries",
        "error",
        "home",
        "is_done",
        "partition",
        "parts",
        "seen",
        "topic",
        "waiters",
    )

    def __init__(self, topic: str, partition: int, builder: PayloadBuilder, home: Home) -> None:
        self.topic = topic
        self.partition = partition
        self.builder = builder
        self.home = home
        self.count = 0
        self.is_done = False
        self.error: KafkaError | None = None
        self.base_offset = -1
        self.append_time_ms = -1
        self.parts: list[tuple[int, BatchBase]] | None = None
        self.seen: set[int] | None = None
        self.waiters: list[Any] = []
        self.deliveries: list[tuple[OnDelivery, RecordFuture]] = []
        self.callbacks: list[tuple[Callable[[RecordFuture], object], RecordFuture]] = []

    def add(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: HeaderPairs,
        on_delivery: "OnDelivery | None",
    ) -> "RecordFuture | None":
        """Adds a record and gives its future, or None when it does not fit."""
        if not self.builder.append(timestamp, key, value, headers):
            return None
        future = RecordFuture(
            self, self.count, timestamp, -1 if key is None else len(key), -1 if value is None else len(value)
        )
        self.count += 1
        if on_delivery is not None:
            self.deliveries.append((on_delivery, future))
        return future


class RecordFuture:
    """The outcome of one record, there at once and filled when the broker answers.  Any thread may ask."""

    __slots__ = ("batch", "index", "key_size", "timestamp", "value_size")

    def __init__(self, batch: BatchBase, index: int, timestamp: int, key_size: int, value_size: int) -> None:
        self.batch = batch
        self.index = index
        self.timestamp = timestamp
        self.key_size = key_size
        self.value_size = value_size

    def done(self) -> bool:
        """Whether the record was acknowledged or has failed."""
        return delivery.is_done(self)

    def result(self, timeout: float | None = None) -> "RecordMetadata":
        """Waits for the outcome; raises the record's error, or TimeoutError after `timeout` seconds.

        A batch that somebody waits for does not linger.  Await the future instead where an event loop runs.
        """
        return delivery.result_of(self, timeout)

    def exception(self, timeout: float | None = None) -> "KafkaError | None":
        """Waits for the outcome; the record's error, None when it was written."""
        return delivery.exception_of(self, timeout)

    def add_done_callback(self, callback: "Callable[[RecordFuture], object]") -> None:
        """Calls `callback(future)` on the client's thread once the outcome is known, at once if it is."""
        delivery.add_done_callback(self, callback)

    def __await__(self) -> "Generator[Any, None, RecordMetadata]":
        return delivery.await_result(self)

    def __repr__(self) -> str:
        return delivery.text_of(self)


class Lane:
    """One partition of a topic as the hot path sees it: the batch that takes records now, if any."""

    __slots__ = ("open",)

    def __init__(self) -> None:
        self.open: BatchBase | None = None


class TopicLanes:
    """The partitions of one topic; `sticky` is the one that takes records without a key, -1 for none."""

    __slots__ = ("lanes", "name", "sticky")

    def __init__(self, name: str, lanes: "list[Lane]") -> None:
        self.name = name
        self.lanes = lanes
        self.sticky = -1


class Appender:
    """Finds the open batch for a record and adds it.

    `lock` is the one lock of the long way.  With `hashes_keys` off, records with a key and no partition take
    the long way.  `clock` stands in for the system's in tests.
    """

    __slots__ = ("_now_ms", "hashes_keys", "lock", "topics")

    def __init__(self, *, hashes_keys: bool, clock: "Clock | None" = None) -> None:
        self.topics: dict[str, TopicLanes] = {}
        self.hashes_keys = hashes_keys
        self.lock = threading.Lock()
        self._now_ms = (clock or SystemClock()).now_ms

    def append(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Any,
        partition: int | None,
        timestamp_ms: int | None,
        on_delivery: "OnDelivery | None",
    ) -> RecordFuture | None:
        if type(topic) is not str or not (value is None or type(value) is bytes):
            return None
        if not (key is None or type(key) is bytes):
            return None
        lanes = self.topics.get(topic)
        if lanes is None:
            return None
        pairs = _NO_HEADERS if headers is None else _exact_headers(headers)
        if pairs is None:
            return None
        if timestamp_ms is None:
            timestamp_ms = self._now_ms()
        elif type(timestamp_ms) is not int or not 0 <= timestamp_ms <= _INT64_MAX:
            return None
        if partition is not None:
            if type(partition) is not int:
                return None
        elif key is not None:
            if not self.hashes_keys or not lanes.lanes:
                return None
            partition = (murmur2(key) & 0x7FFF_FFFF) % len(lanes.lanes)
        with self.lock:
            place = lanes.sticky if partition is None else partition
            if not 0 <= place < len(lanes.lanes):
                return None
            batch = lanes.lanes[place].open
            if batch is None:
                return None
            return batch.add(timestamp_ms, key, value, pairs, on_delivery)


def _exact_headers(headers: object) -> HeaderPairs | None:
    """The pairs if they are plain enough to be taken as they are, else None."""
    if type(headers) is dict:
        pairs = tuple(headers.items())
    elif type(headers) is list or type(headers) is tuple:
        pairs = tuple(headers)
    else:
        return None
    for pair in pairs:
        if type(pair) is not tuple or len(pair) != 2:
            return None
        name, data = pair
        if type(name) is not str or not (data is None or type(data) is bytes):
            return None
        try:
            name.encode()
        except UnicodeEncodeError:
            return None
    return pairs
