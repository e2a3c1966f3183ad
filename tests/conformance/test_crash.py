"""kill -9 under load: what was acknowledged is there, once, and groups go on where they committed.

Three loads run through every kill: an idempotent producer, a plain one with acks=all, and a group that reads
and commits.  Each notes what the broker acknowledged; the notes are the only truth that counts afterwards.
"""

import random
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.conformance._client import eventually
from tests.conformance._servers import BarnabasServer, make_server
from tests.conformance._servers import Server as AnyServer

pytestmark = pytest.mark.timeout(900)
ACKED_BETWEEN_KILLS = 400


class Load:
    """Something that works in a thread of its own until `stop`; a fault in it fails the test."""

    def __init__(self, server: AnyServer) -> None:
        self._settings: dict[str, Any] = {
            "bootstrap.servers": server.bootstrap_servers,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.failure: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(120)
        assert not self._thread.is_alive(), "the load ends when it is told to"

    def _run(self) -> None:
        try:
            self.work()
        except BaseException as error:
            self.failure = error

    def work(self) -> None:
        raise NotImplementedError


class Producing(Load):
    """Sends numbers in order to one partition; `acked` are those the broker confirmed."""

    def __init__(self, server: AnyServer, topic: str, *, idempotent: bool) -> None:
        super().__init__(server)
        self._topic = topic
        self._producer = Producer(
            {
                **self._settings,
                "acks": "all",
                "enable.idempotence": idempotent,
                "linger.ms": 2,
                "retry.backoff.ms": 20,
                "message.timeout.ms": 300_000,
                "batch.num.messages": 50,
            }
        )
        self.acked: list[int] = []

    def work(self) -> None:
        number = 0
        while not self._stopping.is_set():
            try:
                self._producer.produce(self._topic, b"%d" % number, partition=0, on_delivery=self._delivered)
                number += 1
            except BufferError:
                self._producer.poll(0.05)
            self._producer.poll(0)
            if number - len(self.acked) > 2000:
                self._producer.poll(0.05)
        left = self._producer.flush(100)
        assert left == 0, f"{left} messages were never answered"

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            raise KafkaException(error)
        self.acked.append(int(message.value()))


class Committing(Load):
    """Reads a topic in a group and commits after each poll; `committed` is the last confirmed offset."""

    def __init__(self, server: AnyServer, topic: str, group: str) -> None:
        super().__init__(server)
        self._topic = topic
        self.committed = 0
        self._consumer = Consumer(
            {
                **self._settings,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 200,
            }
        )

    def work(self) -> None:
        self._consumer.subscribe([self._topic])
        try:
            while not self._stopping.is_set():
                messages = [each for each in self._consumer.consume(200, 0.05) if each.error() is None]
                if messages:
                    self._commit((messages[-1].offset() or 0) + 1)
        finally:
            self._consumer.close()

    def _commit(self, offset: int) -> None:
        try:
            self._consumer.commit(offsets=[TopicPartition(self._topic, 0, offset)], asynchronous=False)
        except KafkaException as refused:
            # The broker is gone or does not know the member yet: read on, and commit more later.
            if refused.args[0].fatal():
                raise
        else:
            self.committed = max(self.committed, offset)


def read_numbers(server: AnyServer, topic: str) -> list[int]:
    """Every record of partition 0, from first to last."""
    consumer = Consumer(
        {"bootstrap.servers": server.bootstrap_servers, "group.id": "reader", "enable.auto.commit": False}
    )
    try:
        _first, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), 20)
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[int] = []
        deadline = time.monotonic() + 60
        while len(found) < end:
            assert time.monotonic() < deadline, f"{len(found)} of {end} records came"
            for message in consumer.consume(5000, 0.2):
                assert message.error() is None, message.error()
                assert message.offset() == len(found)
                found.append(int(message.value() or b""))
        return found
    finally:
        consumer.close()


def committed_offset(server: AnyServer, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": group, "log_level": 0})
    try:
        [found] = consumer.committed([TopicPartition(topic, 0)], 20)
        return int(found.offset)
    finally:
        consumer.close()


@pytest.fixture
def server() -> Iterator[BarnabasServer]:
    made = make_server("barnabas")
    assert isinstance(made, BarnabasServer)
    try:
        made.start()
        yield made
    finally:
        made.close()


def run_rounds(server: BarnabasServer, rounds: int) -> None:
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    print(f"seed {seed}")
    with (
        Producing(server, "once", idempotent=True) as once,
        Producing(server, "plain", idempotent=False) as plain,
        Committing(server, "once", "readers") as readers,
    ):
        loads = (once, plain, readers)
        for number in range(rounds):
            acked = [len(once.acked), len(plain.acked)]
            committed = readers.committed
            wanted = chance.randrange(ACKED_BETWEEN_KILLS)

            def moved(acked: list[int] = acked, committed: int = committed, wanted: int = wanted) -> bool:
                assert [each.failure for each in loads] == [None] * 3
                return (
                    len(once.acked) > acked[0] + wanted
                    and len(plain.acked) > acked[1] + wanted
                    and readers.committed > committed
                )

            eventually(moved, timeout_s=60, what=f"progress after kill {number} (seed {seed})")
            confirmed = readers.committed
            server.kill()
            server.start()
            assert committed_offset(server, "readers", "once") >= confirmed
        once.stop()
        plain.stop()
        # Everything once written is read and committed in the end.
        eventually(lambda: readers.committed >= len(once.acked), timeout_s=60, what="the group at the end")
        readers.stop()
    assert [each.failure for each in loads] == [None] * 3
    stored = read_numbers(server, "once")
    assert stored == list(range(len(stored))), "each once and in order"
    assert len(stored) == len(once.acked)
    missing = set(plain.acked) - set(read_numbers(server, "plain"))
    assert not missing
    assert committed_offset(server, "readers", "once") == len(stored)


def test_what_was_acknowledged_survives_kills_and_is_there_once(server: BarnabasServer) -> None:
    run_rounds(server, 3)


@pytest.mark.soak
def test_what_was_acknowledged_survives_twenty_kills_and_is_there_once(server: BarnabasServer) -> None:
    run_rounds(server, 20)


@pytest.mark.soak
def test_a_gigabyte_that_was_never_flushed_is_there_after_a_kill(server: BarnabasServer) -> None:
    payload = random.Random(1).randbytes(100_000)
    producer = Producer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "acks": "all",
            "linger.ms": 5,
            "queue.buffering.max.kbytes": 200_000,
        }
    )
    count = 10_500
    for number in range(count):
        while True:
            try:
                producer.produce("large", b"%d " % number + payload, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0
    server.kill()
    server.start(timeout_s=30)
    consumer = Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "reader"})
    consumer.assign([TopicPartition("large", 0, 0)])
    seen = 0
    deadline = time.monotonic() + 120
    while seen < count and time.monotonic() < deadline:
        for message in consumer.consume(100, 1):
            assert message.error() is None, message.error()
            assert message.value() == b"%d " % seen + payload
            seen += 1
    consumer.close()
    assert seen == count
