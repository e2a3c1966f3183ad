"""The sending half of `perf produce`: payloads, a rate, and how long each record waited.

A batch is acknowledged as a whole, so that its records are counted together when it ends.
"""

import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

if TYPE_CHECKING:
    from barnabas.cli.connection import Connection
    from barnabas.cli.perf_stats import Meter
    from barnabas.client.errors import KafkaError
    from barnabas.client.hot import RecordFuture
    from barnabas.client.producer import Producer

__all__ = [
    "Sending",
    "Transactions",
    "numbered_payloads",
    "payloads_of",
    "random_payloads",
    "transactions_of",
]

_BLOCK_BYTES: Final = 1 << 20
_TRANSACTION_MS: Final = 3000
_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class _Flight:
    """Records of one batch: when each was sent, until the broker answers for all of them at once."""

    __slots__ = ("_counted", "_run", "ended_at", "error", "sent")

    def __init__(self, run: "Sending") -> None:
        self._run = run
        self._counted = 0
        self.sent: list[tuple[float, int]] = []
        self.ended_at: float | None = None
        self.error: KafkaError | None = None

    def end(self, future: "RecordFuture") -> None:
        """The broker has answered; called on the producer's thread."""
        self.error = future.exception()
        self.ended_at = time.perf_counter()
        self.count()

    def count(self) -> None:
        """Counts what was not counted yet: a record may be noted here only after its batch has ended."""
        with self._run.lock:
            new, ended_at = self.sent[self._counted :], self.ended_at
            self._counted += len(new)
            if new and ended_at is not None:
                times_ms = [max(ended_at - at, 0.0) * 1000 for at, _ in new]
                self._run.count(len(new), sum(size for _, size in new), times_ms, self.error)


class Sending:
    """Sends records and feeds the meter, once per batch: a callback for each record would cost too much."""

    def __init__(
        self,
        producer: "Producer",
        topic: str,
        meter: "Meter",
        *,
        warmup: int = 0,
        commit_every_s: float | None = None,
    ) -> None:
        """The first `warmup` records that are acknowledged do not count in `steady`.

        With `commit_every_s` all is sent in transactions, each at least so long.
        """
        self._producer = producer
        self._topic = topic
        self._meter = meter
        self._warmup_left = warmup
        self._commit_every_s = commit_every_s
        self._began_at: float | None = None
        self.steady: Meter | None = None
        """What came after the warm-up; None without one, or before its end."""
        self.lock = threading.Lock()
        """Batches end on the producer's thread, late records of them are counted on the caller's."""
        self.failed = 0
        self.error: KafkaError | None = None

    def send(
        self, count: int, payloads: Iterator[bytes], throughput: float, show: Callable[[int], None]
    ) -> None:
        """Returns when all are acknowledged or have failed."""
        send, topic, now = self._producer.send, self._topic, time.perf_counter
        started = now()
        flights: dict[object, _Flight] = {}
        for number in range(count):
            if throughput > 0 and (early_s := started + number / throughput - now()) > 0.001:
                time.sleep(early_s)
            payload = next(payloads)
            if self._commit_every_s is not None:
                self._begin_or_commit()
            sent_at = now()
            future = send(topic, payload)
            flight = flights.get(future.batch)
            if flight is None:
                flights = {batch: kept for batch, kept in flights.items() if kept.ended_at is None}
                flight = flights[future.batch] = _Flight(self)
                future.add_done_callback(flight.end)
            flight.sent.append((sent_at, len(payload)))
            if flight.ended_at is not None:
                flight.count()
            if number % 2048 == 0:
                show(number)
        if self._began_at is not None:
            self._producer.commit_transaction()
        self._flush()
        if self.steady is not None:
            self.steady.finish()

    def _begin_or_commit(self) -> None:
        """Keeps a transaction open; one that is old enough is committed first."""
        assert self._commit_every_s is not None
        now = time.perf_counter()
        if self._began_at is not None and now - self._began_at < self._commit_every_s:
            return
        if self._began_at is not None:
            self._producer.commit_transaction()
        self._producer.begin_transaction()
        self._began_at = now

    def _flush(self) -> None:
        from barnabas.client.errors import DeliveryFailed

        try:
            self._producer.flush()
        except DeliveryFailed as error:
            self.error = self.error or error  # counted batch by batch already

    def count(self, records: int, size_bytes: int, times_ms: list[float], error: "KafkaError | None") -> None:
        if error is None:
            self._meter.add(records, size_bytes, times_ms)
            self._add_steady(records, size_bytes, times_ms)
        else:
            self.failed += records
            self.error = self.error or error

    def _add_steady(self, records: int, size_bytes: int, times_ms: list[float]) -> None:
        """Counts what is beyond the warm-up; the batch in which it ends belongs to it."""
        from barnabas.cli.perf_stats import Meter

        if self.steady is not None:
            self.steady.add(records, size_bytes, times_ms)
        elif self._warmup_left > 0:
            self._warmup_left -= records
            if self._warmup_left <= 0:
                self.steady = Meter(0)


class Transactions(NamedTuple):
    """Whether records are sent in transactions: how long each takes (None: not at all), and the settings."""

    duration_s: float | None
    settings: dict[str, str]


def transactions_of(
    connection: "Connection", transactional_id: str | None, duration_ms: int | None
) -> Transactions:
    """Either flag switches them on, and so does the producer's setting."""
    named = transactional_id or connection.setting("transactional.id")
    if named is None and duration_ms is None:
        return Transactions(None, {})
    name = named or f"performance-producer-{uuid.uuid4()}"
    return Transactions((duration_ms or _TRANSACTION_MS) / 1000, {"transactional.id": name})


def random_payloads(size: int) -> Iterator[bytes]:
    """Values of random letters, cut from one block at changing places."""
    letters = bytes(_ALPHABET[number % len(_ALPHABET)] for number in range(256))
    # The same bytes in every run, so that runs can be compared.
    block = random.Random(0).randbytes(_BLOCK_BYTES + size).translate(letters)
    at = 0
    while True:
        yield block[at : at + size]
        at = (at + size + 7) % _BLOCK_BYTES


def numbered_payloads() -> Iterator[bytes]:
    number = 0
    while True:
        yield b"%d" % number
        number += 1


def payloads_of(path: Path, delimiter: bytes) -> Iterator[bytes]:
    lines = [line for line in path.read_bytes().split(delimiter) if line]
    if not lines:
        raise click.UsageError(f"{path} is empty.")
    chance = random.Random(0)
    return iter(lambda: chance.choice(lines), None)
